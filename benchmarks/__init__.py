"""How fast the server is, beside a raw ASGI application and the protocol's reference server."""
