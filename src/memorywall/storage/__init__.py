"""Storage: `port` is the contract of a backend; `sqlite` and `postgres` are the backends."""
