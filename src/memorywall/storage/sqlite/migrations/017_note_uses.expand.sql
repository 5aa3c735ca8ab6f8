-- When entries were used last, how long they waited for it, and the vectors of recent searches. NULL
-- in `used_at` means that an earlier version counted the uses.
ALTER TABLE entry_uses ADD COLUMN used_at TEXT;

CREATE TABLE reuse_histograms (
    tenant TEXT NOT NULL,
    namespace TEXT NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (tenant, namespace)
) STRICT;

CREATE TABLE query_vectors (
    tenant TEXT NOT NULL,
    id TEXT NOT NULL,
    body TEXT NOT NULL,
    sealing_key TEXT,
    sealed BLOB,
    PRIMARY KEY (tenant, id)
) STRICT;

CREATE INDEX query_vectors_unsealed ON query_vectors (tenant, id)
    WHERE sealing_key IS NULL;

CREATE INDEX query_vectors_by_sealing_key ON query_vectors (tenant, sealing_key, id)
    WHERE sealing_key > '';
