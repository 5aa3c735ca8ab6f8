-- A data key belongs to an agent, or as those there are to the tenant as a whole.

CREATE TABLE new_data_keys (
    tenant TEXT NOT NULL,
    id TEXT NOT NULL,
    subject TEXT NOT NULL,
    wrapped BLOB NOT NULL,
    wrapped_by TEXT NOT NULL,
    created_at TEXT NOT NULL,
    PRIMARY KEY (tenant, id)
) STRICT, WITHOUT ROWID;

INSERT INTO new_data_keys (tenant, id, subject, wrapped, wrapped_by, created_at)
SELECT tenant, id, '', wrapped, wrapped_by, created_at FROM data_keys;

DROP TABLE data_keys;
ALTER TABLE new_data_keys RENAME TO data_keys;

CREATE INDEX data_keys_by_subject ON data_keys (tenant, subject, id);
