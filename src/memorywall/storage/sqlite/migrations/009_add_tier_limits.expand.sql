-- How each tenant narrows its tiers.

CREATE TABLE tier_limits (
    tenant TEXT NOT NULL,
    tier TEXT NOT NULL,
    capacity INTEGER,
    default_ttl TEXT,
    eviction TEXT,
    PRIMARY KEY (tenant, tier)
) STRICT, WITHOUT ROWID;
