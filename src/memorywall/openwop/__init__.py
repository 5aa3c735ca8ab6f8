"""OpenWOP v1: an agent-memory host over sessions and entries. Everything maps onto what exists."""
