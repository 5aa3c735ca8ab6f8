-- Schemas for the values of a namespace. `namespaces.schemas` is a digest of the schemas of a
-- namespace, NULL without any, so that a write that reads the namespace knows whether it has to
-- read them.

CREATE TABLE value_schemas (
    tenant TEXT NOT NULL,
    namespace TEXT NOT NULL,
    id TEXT NOT NULL,
    name TEXT NOT NULL,
    version TEXT NOT NULL,
    document TEXT NOT NULL,
    updated_at TEXT NOT NULL,
    key_pattern TEXT,
    PRIMARY KEY (tenant, namespace, id)
) STRICT, WITHOUT ROWID;

ALTER TABLE namespaces ADD COLUMN schemas TEXT;
