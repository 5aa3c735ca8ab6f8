"""The operation functions: one file per record, each function bound to a record of the operations
table."""
