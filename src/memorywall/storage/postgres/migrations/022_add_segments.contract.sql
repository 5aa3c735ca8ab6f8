-- Parts of the search index, each of entries of one tier of one owner that follow each other by id.
-- A server of the previous schema would change entries and leave their segments, so it cannot
-- continue.
CREATE TABLE index_segments (
    tenant text COLLATE "C" NOT NULL,
    owner text COLLATE "C" NOT NULL,
    tier text COLLATE "C" NOT NULL,
    first text COLLATE "C" NOT NULL,
    last text COLLATE "C" NOT NULL,
    form text COLLATE "C" NOT NULL,
    entries bigint NOT NULL,
    listed bigint NOT NULL,
    content bytea STORAGE EXTERNAL NOT NULL,
    PRIMARY KEY (tenant, owner, tier, first)
);

ALTER TABLE index_segments ENABLE ROW LEVEL SECURITY;
ALTER TABLE index_segments FORCE ROW LEVEL SECURITY;
CREATE POLICY own_tenant ON index_segments
    USING (tenant = nullif(current_setting('memorywall.tenant', true), ''));
GRANT SELECT, INSERT, UPDATE, DELETE ON index_segments TO memorywall_app;
