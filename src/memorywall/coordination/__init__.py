"""Work, only as far as memory needs it: intents, tasks, coordinators, leases, claims, attachments.

What RFC-0015 presumes of RFC-0001, 0003, 0005, 0011, 0012 and 0013. Every write here is a script
over the port and goes through the same door as memory: `authorize`, fencing, the one log.
"""
