"""The speed of the server, beside a raw ASGI application and the protocol's reference server."""
