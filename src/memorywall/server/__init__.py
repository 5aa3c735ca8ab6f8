"""HTTP: a route validates, calls one operation, renders the result."""
