-- The rule for writes of a tier that the tenant has closed to direct writes, or NULL.

ALTER TABLE tier_limits ADD COLUMN admission text COLLATE "C";
