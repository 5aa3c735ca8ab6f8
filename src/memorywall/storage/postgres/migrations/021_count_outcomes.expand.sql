-- How contexts ended that contained an entry, and those whose feedback named it as used. NULL is 0.
ALTER TABLE entry_uses
    ADD COLUMN succeeded bigint,
    ADD COLUMN failed bigint,
    ADD COLUMN helped bigint,
    ADD COLUMN harmed bigint;
