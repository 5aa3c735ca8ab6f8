-- When entries were used last, how long they waited for it, and the vectors of recent searches. NULL
-- in `used_at` means that an earlier version counted the uses.
ALTER TABLE entry_uses ADD COLUMN used_at text COLLATE "C";

CREATE TABLE reuse_histograms (
    tenant text COLLATE "C" NOT NULL,
    namespace text COLLATE "C" NOT NULL,
    body text COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant, namespace)
);

ALTER TABLE reuse_histograms ENABLE ROW LEVEL SECURITY;
ALTER TABLE reuse_histograms FORCE ROW LEVEL SECURITY;
CREATE POLICY own_tenant ON reuse_histograms
    USING (tenant = nullif(current_setting('memorywall.tenant', true), ''));
GRANT SELECT, INSERT, UPDATE, DELETE ON reuse_histograms TO memorywall_app;

CREATE TABLE query_vectors (
    tenant text COLLATE "C" NOT NULL,
    id text COLLATE "C" NOT NULL,
    body text COLLATE "C" NOT NULL,
    sealing_key text COLLATE "C",
    sealed bytea,
    PRIMARY KEY (tenant, id)
);

CREATE INDEX query_vectors_unsealed ON query_vectors (tenant, id)
    WHERE sealing_key IS NULL;

CREATE INDEX query_vectors_by_sealing_key ON query_vectors (tenant, sealing_key, id)
    WHERE sealing_key > '';

ALTER TABLE query_vectors ENABLE ROW LEVEL SECURITY;
ALTER TABLE query_vectors FORCE ROW LEVEL SECURITY;
CREATE POLICY own_tenant ON query_vectors
    USING (tenant = nullif(current_setting('memorywall.tenant', true), ''));
GRANT SELECT, INSERT, UPDATE, DELETE ON query_vectors TO memorywall_app;
