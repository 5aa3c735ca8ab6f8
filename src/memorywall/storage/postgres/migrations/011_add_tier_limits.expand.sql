-- How each tenant narrows its tiers.

CREATE TABLE tier_limits (
    tenant text COLLATE "C" NOT NULL,
    tier text COLLATE "C" NOT NULL,
    capacity bigint,
    default_ttl text COLLATE "C",
    eviction text COLLATE "C",
    PRIMARY KEY (tenant, tier)
);

ALTER TABLE tier_limits ENABLE ROW LEVEL SECURITY;
ALTER TABLE tier_limits FORCE ROW LEVEL SECURITY;
CREATE POLICY own_tenant ON tier_limits
    USING (tenant = nullif(current_setting('memorywall.tenant', true), ''));
GRANT SELECT, INSERT, UPDATE, DELETE ON tier_limits TO memorywall_app;
