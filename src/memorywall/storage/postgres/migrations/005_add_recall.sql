-- What recall keeps beside the entries. None of it is text of theirs, and all of it goes with them.

-- The model stands before the entry, so that a whole model is found at its own end of the key.
CREATE TABLE entry_vectors (
    tenant text COLLATE "C" NOT NULL,
    entry text COLLATE "C" NOT NULL,
    model text COLLATE "C" NOT NULL,
    vector bytea STORAGE EXTERNAL NOT NULL,
    PRIMARY KEY (tenant, model, entry)
);

CREATE TABLE entry_uses (
    tenant text COLLATE "C" NOT NULL,
    entry text COLLATE "C" NOT NULL,
    uses bigint NOT NULL,
    PRIMARY KEY (tenant, entry)
) WITH (fillfactor = 90);

-- There is a row for every model under which vectors are kept, so that the vectors of an entry are
-- found without an index for it, and cost nothing where there are none.
CREATE TABLE embedding_positions (
    tenant text COLLATE "C" NOT NULL,
    model text COLLATE "C" NOT NULL,
    position bigint NOT NULL,
    holder text COLLATE "C" NOT NULL,
    held_until text COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant, model)
) WITH (fillfactor = 50);

DO $$
DECLARE
    table_name text;
BEGIN
    FOREACH table_name IN ARRAY ARRAY['entry_vectors', 'entry_uses', 'embedding_positions'] LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', table_name);
        EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', table_name);
        EXECUTE format('CREATE POLICY own_tenant ON %I'
            ' USING (tenant = nullif(current_setting(''memorywall.tenant'', true), ''''))', table_name);
        EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON %I TO memorywall_app', table_name);
    END LOOP;
END
$$;
