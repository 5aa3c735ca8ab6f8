"""Who may do what: keys, sessions, groups, subjects, and the facts of access decisions."""
