"""Background work. Every step is idempotent: several processes may run it, any number of times."""
