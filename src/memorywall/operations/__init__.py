"""What can be asked: one file a noun, each function bound to its record of the table in `wire/`."""
