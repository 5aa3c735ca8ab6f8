-- The log becomes a hash chain: an event is an envelope, which stays, and a content with its salt,
-- which can be erased. What was logged before is moved over by the server when it starts, because
-- the hashes are not made in SQL.

-- What a data key is for: NULL for sealing.
ALTER TABLE data_keys ADD COLUMN purpose TEXT;

DROP INDEX events_by_stream;
DROP INDEX events_by_intent;
ALTER TABLE events RENAME TO legacy_events;

CREATE TABLE events (
    tenant TEXT NOT NULL,
    seq INTEGER NOT NULL,
    format INTEGER NOT NULL,
    id TEXT NOT NULL,
    type TEXT NOT NULL,
    timestamp TEXT NOT NULL,
    entry_id TEXT NOT NULL,
    tier TEXT NOT NULL,
    version INTEGER NOT NULL,
    previous_version INTEGER,
    task_id TEXT,
    intent_id TEXT,
    digest_key TEXT NOT NULL,
    digest BLOB NOT NULL,
    previous BLOB NOT NULL,
    stream TEXT NOT NULL,
    agent_id TEXT NOT NULL,
    PRIMARY KEY (tenant, seq)
) STRICT, WITHOUT ROWID;

CREATE INDEX events_by_stream ON events (tenant, stream, seq);
CREATE INDEX events_by_intent ON events (tenant, intent_id, seq) WHERE intent_id IS NOT NULL;

CREATE TABLE event_contents (
    tenant TEXT NOT NULL,
    seq INTEGER NOT NULL,
    salt BLOB NOT NULL,
    content BLOB NOT NULL,
    PRIMARY KEY (tenant, seq)
) STRICT, WITHOUT ROWID;
