-- Whether a namespace lets a write without a precondition replace an entry. NULL in the
-- rows of servers of earlier schemas means that it does not.

ALTER TABLE namespaces ADD COLUMN last_write_wins bigint;
