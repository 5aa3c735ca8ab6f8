"""Working memory of tasks: items, steps, ticks and overflow (memory wall 11.2)."""
