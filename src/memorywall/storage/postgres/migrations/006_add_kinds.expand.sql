-- What an entry means (its kind), what points where, what is due and what was before. A server of
-- the schema before this one runs on it: every new column has a default.

ALTER TABLE entries
    ADD COLUMN kind text COLLATE "C",
    ADD COLUMN kind_version bigint NOT NULL DEFAULT 0,
    ADD COLUMN status text COLLATE "C",
    ADD COLUMN state text COLLATE "C" NOT NULL DEFAULT 'live',
    ADD COLUMN listed integer NOT NULL DEFAULT 1,
    ADD COLUMN subjects text COLLATE "C" NOT NULL DEFAULT '[]',
    ADD COLUMN edges text COLLATE "C" NOT NULL DEFAULT '[]',
    ADD COLUMN due_at text COLLATE "C";

ALTER TABLE api_keys ADD COLUMN subjects text COLLATE "C" NOT NULL DEFAULT '[]';

-- A name is unique within a session, and among what is bound to no session. With its predicate,
-- which always holds, only a statement that repeats it is served by the index.
CREATE UNIQUE INDEX entries_by_session_name
    ON entries (tenant, tier, owner, namespace, key, coalesce(session_id, '')) WHERE key >= '';
CREATE INDEX entries_by_kind ON entries (tenant, kind, status, id) WHERE kind IS NOT NULL;
CREATE INDEX entries_by_due ON entries (tenant, due_at, id) WHERE due_at IS NOT NULL;

-- Derived from the column `edges` of entries, which holds the same as a list of pairs.
CREATE TABLE edges (
    tenant text COLLATE "C" NOT NULL,
    relation text COLLATE "C" NOT NULL,
    target text COLLATE "C" NOT NULL,
    entry text COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant, relation, target, entry)
);

CREATE INDEX edges_by_entry ON edges (tenant, entry, relation, target) WHERE entry >= '';

-- Versions that changes have replaced, in tiers that keep them. `body` is the entry without its
-- value, which is sealed as it was.
CREATE TABLE entry_history (
    tenant text COLLATE "C" NOT NULL,
    entry text COLLATE "C" NOT NULL,
    version bigint NOT NULL,
    replaced_at text COLLATE "C" NOT NULL,
    body text COLLATE "C" NOT NULL,
    value bytea STORAGE EXTERNAL NOT NULL,
    PRIMARY KEY (tenant, entry, version)
);

DO $$
DECLARE
    table_name text;
BEGIN
    FOREACH table_name IN ARRAY ARRAY['edges', 'entry_history'] LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', table_name);
        EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', table_name);
        EXECUTE format('CREATE POLICY own_tenant ON %I'
            ' USING (tenant = nullif(current_setting(''memorywall.tenant'', true), ''''))', table_name);
        EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON %I TO memorywall_app', table_name);
    END LOOP;
END
$$;
