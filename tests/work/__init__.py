"""Work as far as memory needs it: intents, tasks, coordinators, leases, claims, shared state."""
