-- The counters of sessions, which every turn changes, so that it never writes the entry of its
-- session; and the index by which the turns, checkpoints and summaries of a session are read.

CREATE TABLE session_counters (
    tenant text COLLATE "C" NOT NULL,
    session_id text COLLATE "C" NOT NULL,
    last_sequence bigint NOT NULL,
    turn_count bigint NOT NULL,
    token_usage bigint NOT NULL,
    last_activity_at text COLLATE "C" NOT NULL,
    summarized_through bigint NOT NULL,
    summarized_tokens bigint NOT NULL,
    checkpoints bigint NOT NULL,
    checkpointed_through bigint NOT NULL,
    checkpointed_at text COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant, session_id)
);

ALTER TABLE session_counters ENABLE ROW LEVEL SECURITY;
ALTER TABLE session_counters FORCE ROW LEVEL SECURITY;
CREATE POLICY own_tenant ON session_counters
    USING (tenant = nullif(current_setting('memorywall.tenant', true), ''));
GRANT SELECT, INSERT, UPDATE, DELETE ON session_counters TO memorywall_app;

CREATE INDEX entries_by_session ON entries (tenant, session_id, kind, owner, key)
    WHERE session_id IS NOT NULL AND kind IS NOT NULL;
