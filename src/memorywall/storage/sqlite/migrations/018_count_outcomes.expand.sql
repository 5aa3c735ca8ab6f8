-- How contexts ended that contained an entry, and those whose feedback named it as used. NULL is 0.
ALTER TABLE entry_uses ADD COLUMN succeeded INTEGER;
ALTER TABLE entry_uses ADD COLUMN failed INTEGER;
ALTER TABLE entry_uses ADD COLUMN helped INTEGER;
ALTER TABLE entry_uses ADD COLUMN harmed INTEGER;
