-- The counters of sessions, which every turn changes, so that it never writes the entry of its
-- session; and the index by which the turns, checkpoints and summaries of a session are read.

CREATE TABLE session_counters (
    tenant TEXT NOT NULL,
    session_id TEXT NOT NULL,
    last_sequence INTEGER NOT NULL,
    turn_count INTEGER NOT NULL,
    token_usage INTEGER NOT NULL,
    last_activity_at TEXT NOT NULL,
    summarized_through INTEGER NOT NULL,
    summarized_tokens INTEGER NOT NULL,
    checkpoints INTEGER NOT NULL,
    checkpointed_through INTEGER NOT NULL,
    checkpointed_at TEXT NOT NULL,
    PRIMARY KEY (tenant, session_id)
) STRICT, WITHOUT ROWID;

CREATE INDEX entries_by_session ON entries (tenant, session_id, kind, owner, key)
    WHERE session_id IS NOT NULL AND kind IS NOT NULL;
