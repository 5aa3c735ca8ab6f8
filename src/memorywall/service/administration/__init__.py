"""Tenants, keys and master keys, managed without a request."""
