-- The bytes of a tenant's quota. A row of tier_limits whose tier is the name of a source is a quota;
-- servers of earlier schemas look only at the rows of tiers.

ALTER TABLE tier_limits ADD COLUMN bytes INTEGER;
