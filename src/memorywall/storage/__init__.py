"""Where entries are kept: `port` says what a backend owes, each other folder is one backend."""
