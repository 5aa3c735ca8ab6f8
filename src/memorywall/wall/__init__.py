"""ENFORCES: every operation on memory, behind one door.

An operation decides first (`policy`), checks limits, seals what is sensitive, and then changes
state and log in one transaction. No surface reaches a store any other way.
"""
