-- Schemas for the values of a namespace. `namespaces.schemas` is a digest of the schemas of a
-- namespace, NULL without any, so that a write that reads the namespace knows whether it has to
-- read them.

CREATE TABLE value_schemas (
    tenant text COLLATE "C" NOT NULL,
    namespace text COLLATE "C" NOT NULL,
    id text COLLATE "C" NOT NULL,
    name text COLLATE "C" NOT NULL,
    version text COLLATE "C" NOT NULL,
    document text COLLATE "C" NOT NULL,
    updated_at text COLLATE "C" NOT NULL,
    key_pattern text COLLATE "C",
    PRIMARY KEY (tenant, namespace, id)
);

ALTER TABLE value_schemas ENABLE ROW LEVEL SECURITY;
ALTER TABLE value_schemas FORCE ROW LEVEL SECURITY;
CREATE POLICY own_tenant ON value_schemas
    USING (tenant = nullif(current_setting('memorywall.tenant', true), ''));
GRANT SELECT, INSERT, UPDATE, DELETE ON value_schemas TO memorywall_app;

ALTER TABLE namespaces ADD COLUMN schemas text COLLATE "C";
