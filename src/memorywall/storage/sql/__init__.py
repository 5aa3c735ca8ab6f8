"""Code for both databases: statements, declared records and repositories."""
