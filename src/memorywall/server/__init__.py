"""HTTP: an endpoint decodes a request, runs one operation and renders the result."""
