"""RFC-0015 over HTTP, endpoint by endpoint."""
