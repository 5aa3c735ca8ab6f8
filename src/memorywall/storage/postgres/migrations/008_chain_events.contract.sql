-- The log becomes a hash chain: an event is an envelope, which stays, and a content with its salt,
-- which can be erased. What was logged before is moved over by the server when it starts, because
-- the hashes are not made in SQL. The head holds the hash of the last event; where it is NULL the
-- next writer works it out.

-- What a data key is for: NULL for sealing.
ALTER TABLE data_keys ADD COLUMN purpose text COLLATE "C";
ALTER TABLE heads ADD COLUMN hash bytea;

DROP INDEX events_by_stream;
DROP INDEX events_by_intent;
ALTER TABLE events RENAME TO legacy_events;
ALTER TABLE legacy_events RENAME CONSTRAINT events_pkey TO legacy_events_pkey;

CREATE TABLE events (
    tenant text COLLATE "C" NOT NULL,
    seq bigint NOT NULL,
    format bigint NOT NULL,
    id text COLLATE "C" NOT NULL,
    type text COLLATE "C" NOT NULL,
    timestamp text COLLATE "C" NOT NULL,
    entry_id text COLLATE "C" NOT NULL,
    tier text COLLATE "C" NOT NULL,
    version bigint NOT NULL,
    previous_version bigint,
    task_id text COLLATE "C",
    intent_id text COLLATE "C",
    digest_key text COLLATE "C" NOT NULL,
    digest bytea NOT NULL,
    previous bytea NOT NULL,
    stream text COLLATE "C" NOT NULL,
    agent_id text COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant, seq)
);

CREATE INDEX events_by_stream ON events (tenant, stream, seq);
CREATE INDEX events_by_intent ON events (tenant, intent_id, seq) WHERE intent_id IS NOT NULL;

CREATE TABLE event_contents (
    tenant text COLLATE "C" NOT NULL,
    seq bigint NOT NULL,
    salt bytea NOT NULL,
    content bytea NOT NULL,
    PRIMARY KEY (tenant, seq)
);

DO $$
DECLARE
    table_name text;
BEGIN
    FOREACH table_name IN ARRAY ARRAY['events', 'event_contents'] LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', table_name);
        EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', table_name);
        EXECUTE format('CREATE POLICY own_tenant ON %I'
            ' USING (tenant = nullif(current_setting(''memorywall.tenant'', true), ''''))', table_name);
        EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON %I TO memorywall_app', table_name);
    END LOOP;
END
$$;
