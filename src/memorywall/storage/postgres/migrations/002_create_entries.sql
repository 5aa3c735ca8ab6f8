-- Memory: entries, what is kept about them, the log, namespaces, and first replies.
--
-- Every key and index begins with the tenant. Text sorts and compares by code point. Tables whose
-- rows are changed leave room on their pages, so that a change of what no index holds stays on its
-- page and costs no index anything; that is also why no index holds sizes.

CREATE TABLE entries (
    tenant text COLLATE "C" NOT NULL,
    id text COLLATE "C" NOT NULL,
    tier text COLLATE "C" NOT NULL,
    owner text COLLATE "C" NOT NULL,
    agent_id text COLLATE "C" NOT NULL,
    namespace text COLLATE "C" NOT NULL,
    key text COLLATE "C" NOT NULL,
    task_id text COLLATE "C",
    intent_id text COLLATE "C",
    session_id text COLLATE "C",
    tags text COLLATE "C" NOT NULL,
    ttl text COLLATE "C",
    expires_at text COLLATE "C",
    version bigint NOT NULL,
    pinned integer NOT NULL,
    priority integer NOT NULL,
    sensitivity text COLLATE "C" NOT NULL,
    created_at text COLLATE "C" NOT NULL,
    updated_at text COLLATE "C" NOT NULL,
    accessed_at text COLLATE "C" NOT NULL,
    created_by text COLLATE "C" NOT NULL,
    curated_by text COLLATE "C",
    provenance text COLLATE "C" NOT NULL,
    size bigint NOT NULL,
    sealing_key text COLLATE "C",
    value bytea STORAGE EXTERNAL NOT NULL
) WITH (fillfactor = 90);

-- While the planner knows nothing of a table, all indexes promise it the same, and it takes the one
-- that was made last: so they are made in this order. The index by owner could stand in for most of
-- the others, badly: with its predicate, which always holds, only a statement that repeats it is
-- served by it. The one by name serves the counting of a namespace and of a scope too.
CREATE UNIQUE INDEX entries_by_name ON entries (tenant, tier, owner, namespace, key);
ALTER TABLE entries ADD PRIMARY KEY (tenant, id);
CREATE INDEX entries_by_owner ON entries (tenant, owner, tier, id) WHERE created_at >= '';
CREATE INDEX entries_by_task ON entries (tenant, task_id, tier, id) WHERE task_id IS NOT NULL;
CREATE INDEX entries_by_intent ON entries (tenant, intent_id, tier, id)
    WHERE intent_id IS NOT NULL;
CREATE INDEX entries_by_expiry ON entries (tenant, expires_at, id) WHERE expires_at IS NOT NULL;
CREATE INDEX entries_by_eviction ON entries (tenant, owner, priority, accessed_at, id)
    WHERE tier = 'episodic' AND pinned = 0;

-- A search by tags reads the key of this table alone wherever a vacuum has been since the last
-- change, so vacuums come early.
CREATE TABLE entry_tags (
    tenant text COLLATE "C" NOT NULL,
    owner text COLLATE "C" NOT NULL,
    tag text COLLATE "C" NOT NULL,
    entry text COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant, owner, tag, entry)
) WITH (autovacuum_vacuum_insert_scale_factor = 0.05, autovacuum_vacuum_scale_factor = 0.05);

CREATE TABLE usage (
    tenant text COLLATE "C" NOT NULL,
    owner text COLLATE "C" NOT NULL,
    tier text COLLATE "C" NOT NULL,
    entries bigint NOT NULL,
    bytes bigint NOT NULL,
    pinned bigint NOT NULL,
    PRIMARY KEY (tenant, owner, tier)
) WITH (fillfactor = 50);

CREATE TABLE events (
    tenant text COLLATE "C" NOT NULL,
    seq bigint NOT NULL,
    type text COLLATE "C" NOT NULL,
    stream text COLLATE "C" NOT NULL,
    agent_id text COLLATE "C" NOT NULL,
    actor text COLLATE "C" NOT NULL,
    entry_id text COLLATE "C" NOT NULL,
    tier text COLLATE "C" NOT NULL,
    namespace text COLLATE "C" NOT NULL,
    key text COLLATE "C" NOT NULL,
    version bigint NOT NULL,
    previous_version bigint,
    tags text COLLATE "C" NOT NULL,
    task_id text COLLATE "C",
    intent_id text COLLATE "C",
    timestamp text COLLATE "C" NOT NULL,
    data bytea,
    PRIMARY KEY (tenant, seq)
);

CREATE INDEX events_by_stream ON events (tenant, stream, seq);
CREATE INDEX events_by_intent ON events (tenant, intent_id, seq) WHERE intent_id IS NOT NULL;

-- The last number that each writer has given, which tells a lost acknowledgement from a lost write.
CREATE TABLE writers (
    tenant text COLLATE "C" NOT NULL,
    writer text COLLATE "C" NOT NULL,
    number bigint NOT NULL,
    PRIMARY KEY (tenant, writer)
) WITH (fillfactor = 50);

CREATE TABLE namespaces (
    tenant text COLLATE "C" NOT NULL,
    name text COLLATE "C" NOT NULL,
    default_access text COLLATE "C" NOT NULL,
    version bigint NOT NULL,
    created_at text COLLATE "C" NOT NULL,
    updated_at text COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant, name)
);

CREATE TABLE namespace_grants (
    tenant text COLLATE "C" NOT NULL,
    name text COLLATE "C" NOT NULL,
    place integer NOT NULL,
    agent text COLLATE "C" NOT NULL,
    access text COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant, name, agent)
);

-- A search that names no namespace asks for every grant of an agent.
CREATE INDEX namespace_grants_by_agent ON namespace_grants (tenant, agent, name);

CREATE TABLE kept_replies (
    tenant text COLLATE "C" NOT NULL,
    principal text COLLATE "C" NOT NULL,
    key text COLLATE "C" NOT NULL,
    fingerprint bytea NOT NULL,
    status integer NOT NULL,
    reply bytea,
    sealing_key text COLLATE "C" NOT NULL,
    created_at text COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant, principal, key)
);

CREATE INDEX kept_replies_by_age ON kept_replies (tenant, created_at);

CREATE TABLE kept_reply_entries (
    tenant text COLLATE "C" NOT NULL,
    entry_id text COLLATE "C" NOT NULL,
    principal text COLLATE "C" NOT NULL,
    key text COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant, entry_id, principal, key)
);

CREATE INDEX kept_reply_entries_by_reply ON kept_reply_entries (tenant, principal, key);
