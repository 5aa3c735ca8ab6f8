-- What an entry means (its kind), what points where, what is due and what was before. The table of
-- entries is built anew: the value must stay its last column.

CREATE TABLE new_entries (
    number INTEGER PRIMARY KEY,
    tenant TEXT NOT NULL,
    id TEXT NOT NULL,
    tier TEXT NOT NULL,
    owner TEXT NOT NULL,
    agent_id TEXT NOT NULL,
    namespace TEXT NOT NULL,
    key TEXT NOT NULL,
    task_id TEXT,
    intent_id TEXT,
    session_id TEXT,
    tags TEXT NOT NULL,
    ttl TEXT,
    expires_at TEXT,
    version INTEGER NOT NULL,
    pinned INTEGER NOT NULL,
    priority INTEGER NOT NULL,
    sensitivity TEXT NOT NULL,
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL,
    accessed_at TEXT NOT NULL,
    created_by TEXT NOT NULL,
    curated_by TEXT,
    provenance TEXT NOT NULL,
    size INTEGER NOT NULL,
    sealing_key TEXT,
    kind TEXT,
    kind_version INTEGER NOT NULL DEFAULT 0,
    status TEXT,
    state TEXT NOT NULL DEFAULT 'live',
    listed INTEGER NOT NULL DEFAULT 1,
    subjects TEXT NOT NULL DEFAULT '[]',
    edges TEXT NOT NULL DEFAULT '[]',
    due_at TEXT,
    value BLOB NOT NULL
) STRICT;

INSERT INTO new_entries (number, tenant, id, tier, owner, agent_id, namespace, key, task_id,
    intent_id, session_id, tags, ttl, expires_at, version, pinned, priority, sensitivity,
    created_at, updated_at, accessed_at, created_by, curated_by, provenance, size, sealing_key,
    edges, value)
SELECT number, tenant, id, tier, owner, agent_id, namespace, key, task_id, intent_id, session_id,
    tags, ttl, expires_at, version, pinned, priority, sensitivity, created_at, updated_at,
    accessed_at, created_by, curated_by, provenance, size, sealing_key,
    coalesce((SELECT json_group_array(json_array('derived_from', source)) FROM (
        SELECT DISTINCT value ->> 'id' AS source FROM json_each(provenance, '$.derived_from'))),
        '[]'),
    value
FROM entries;

DROP TABLE entries;
ALTER TABLE new_entries RENAME TO entries;

CREATE UNIQUE INDEX entries_by_id ON entries (tenant, id);
-- A name is unique within a session, and among what is bound to no session.
CREATE UNIQUE INDEX entries_by_name
    ON entries (tenant, tier, owner, namespace, key, coalesce(session_id, ''));
CREATE INDEX entries_by_owner ON entries (tenant, owner, tier, id);
CREATE INDEX entries_by_task ON entries (tenant, task_id, tier, expires_at, listed, size)
    WHERE task_id IS NOT NULL;
CREATE INDEX entries_by_intent ON entries (tenant, intent_id, tier, id, owner)
    WHERE intent_id IS NOT NULL;
CREATE INDEX entries_by_expiry ON entries (tenant, expires_at) WHERE expires_at IS NOT NULL;
CREATE INDEX entries_by_eviction ON entries (tenant, owner, priority, accessed_at, id)
    WHERE tier = 'episodic' AND pinned = 0 AND listed = 1;
CREATE INDEX entries_by_scope ON entries (tenant, namespace, expires_at, listed, size)
    WHERE tier = 'shared' AND owner = '';
CREATE INDEX entries_by_kind ON entries (tenant, kind, status, id) WHERE kind IS NOT NULL;
CREATE INDEX entries_by_due ON entries (tenant, due_at, id) WHERE due_at IS NOT NULL;

-- Derived from the column `edges` of entries, which holds the same as a list of pairs.
CREATE TABLE edges (
    tenant TEXT NOT NULL,
    relation TEXT NOT NULL,
    target TEXT NOT NULL,
    entry TEXT NOT NULL,
    PRIMARY KEY (tenant, relation, target, entry)
) STRICT, WITHOUT ROWID;

CREATE INDEX edges_by_entry ON edges (tenant, entry, relation, target);

INSERT INTO edges (tenant, relation, target, entry)
SELECT e.tenant, pair.value ->> 0, pair.value ->> 1, e.id
FROM entries e, json_each(e.edges) pair
WHERE e.edges <> '[]';

-- Versions that changes have replaced, in tiers that keep them. `body` is the entry without its
-- value, which is sealed as it was.
CREATE TABLE entry_history (
    tenant TEXT NOT NULL,
    entry TEXT NOT NULL,
    version INTEGER NOT NULL,
    replaced_at TEXT NOT NULL,
    body TEXT NOT NULL,
    value BLOB NOT NULL,
    PRIMARY KEY (tenant, entry, version)
) STRICT;

ALTER TABLE api_keys ADD COLUMN subjects TEXT NOT NULL DEFAULT '[]';
