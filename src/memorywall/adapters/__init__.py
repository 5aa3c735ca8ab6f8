"""Adapters: memorywall behind the interfaces of agent frameworks, each an extra of its own.

An adapter stands on the SDK, so that it works over HTTP and in process, and the rules of the server
apply to it.
"""
