"""What both databases have in common: statements, declared records and the repositories of work."""
