-- The key that a rotation made in the place of a key. NULL for a key without one.
ALTER TABLE api_keys ADD COLUMN successor text COLLATE "C";
