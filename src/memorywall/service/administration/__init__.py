"""Tenants, keys, master keys, and the permissions and schemas of namespaces."""
