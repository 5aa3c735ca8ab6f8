"""Work that memory depends on: intents, tasks, coordinators, leases, claims, attachments.

This package implements the parts of RFC-0001, 0003, 0005, 0011, 0012 and 0013 that RFC-0015 relies
on. Every write is a transaction function with the rules of memory: authorization, fencing, events.
"""
