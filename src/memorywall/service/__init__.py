"""Enforcement: the runner of all operations, and the rules that operations obey.

An operation takes an access decision (`policy`), checks limits, seals sensitive values, and changes
entries and the event log in one transaction. No surface uses a store in any other way.
"""
