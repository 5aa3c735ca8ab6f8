-- The whole store. Every key and index begins with the tenant.

CREATE TABLE tenants (
    name TEXT PRIMARY KEY,
    created_at TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE principals (
    tenant TEXT NOT NULL,
    id TEXT NOT NULL,
    kind TEXT NOT NULL,
    created_at TEXT NOT NULL,
    PRIMARY KEY (tenant, id)
) STRICT, WITHOUT ROWID;

-- A key names its tenant, so it is found by its prefix before the tenant is known.
CREATE TABLE api_keys (
    prefix TEXT PRIMARY KEY,
    digest BLOB NOT NULL,
    tenant TEXT NOT NULL,
    principal TEXT NOT NULL,
    kind TEXT NOT NULL,
    permissions TEXT NOT NULL,
    created_at TEXT NOT NULL,
    revoked_at TEXT
) STRICT, WITHOUT ROWID;

CREATE TABLE agent_limits (
    tenant TEXT NOT NULL,
    agent TEXT NOT NULL,
    episodic_capacity INTEGER NOT NULL,
    PRIMARY KEY (tenant, agent)
) STRICT, WITHOUT ROWID;

CREATE TABLE data_keys (
    tenant TEXT NOT NULL,
    id TEXT NOT NULL,
    wrapped BLOB NOT NULL,
    wrapped_by TEXT NOT NULL,
    created_at TEXT NOT NULL,
    PRIMARY KEY (tenant, id)
) STRICT, WITHOUT ROWID;

-- The value comes last, so that reading the columns before it never walks its overflow pages.
CREATE TABLE entries (
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
    value BLOB NOT NULL
) STRICT;

CREATE UNIQUE INDEX entries_by_id ON entries (tenant, id);
CREATE UNIQUE INDEX entries_by_name ON entries (tenant, tier, owner, namespace, key);
CREATE INDEX entries_by_owner ON entries (tenant, owner, tier, id);
-- Counting a task's entries, which every create in a task does, reads this index alone.
CREATE INDEX entries_by_task ON entries (tenant, task_id, tier, expires_at)
    WHERE task_id IS NOT NULL;
CREATE INDEX entries_by_intent ON entries (tenant, intent_id) WHERE intent_id IS NOT NULL;
CREATE INDEX entries_by_expiry ON entries (tenant, expires_at) WHERE expires_at IS NOT NULL;
CREATE INDEX entries_by_eviction ON entries (tenant, owner, priority, accessed_at, id)
    WHERE tier = 'episodic' AND pinned = 0;

-- Each tag of an owner stands here once, with how many entries have it: a query starts from the
-- rarest. The index over entries then holds numbers only, which makes it small and quick to run
-- through. A tag that no entry has any more is deleted like everything else.
CREATE TABLE tags (
    number INTEGER PRIMARY KEY,
    tenant TEXT NOT NULL,
    owner TEXT NOT NULL,
    tag TEXT NOT NULL,
    entries INTEGER NOT NULL
) STRICT;

CREATE UNIQUE INDEX tags_by_name ON tags (tenant, owner, tag);

CREATE TABLE entry_tags (
    tenant TEXT NOT NULL,
    tag INTEGER NOT NULL,
    entry INTEGER NOT NULL,
    PRIMARY KEY (tenant, tag, entry)
) STRICT, WITHOUT ROWID;

CREATE TABLE usage (
    tenant TEXT NOT NULL,
    owner TEXT NOT NULL,
    tier TEXT NOT NULL,
    entries INTEGER NOT NULL,
    bytes INTEGER NOT NULL,
    pinned INTEGER NOT NULL,
    PRIMARY KEY (tenant, owner, tier)
) STRICT, WITHOUT ROWID;

CREATE TABLE events (
    tenant TEXT NOT NULL,
    seq INTEGER NOT NULL,
    type TEXT NOT NULL,
    stream TEXT NOT NULL,
    agent_id TEXT NOT NULL,
    actor TEXT NOT NULL,
    entry_id TEXT NOT NULL,
    tier TEXT NOT NULL,
    namespace TEXT NOT NULL,
    key TEXT NOT NULL,
    version INTEGER NOT NULL,
    previous_version INTEGER,
    tags TEXT NOT NULL,
    task_id TEXT,
    intent_id TEXT,
    timestamp TEXT NOT NULL,
    PRIMARY KEY (tenant, seq)
) STRICT, WITHOUT ROWID;

CREATE INDEX events_by_stream ON events (tenant, stream, seq);

CREATE TABLE namespaces (
    tenant TEXT NOT NULL,
    name TEXT NOT NULL,
    default_access TEXT NOT NULL,
    version INTEGER NOT NULL,
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL,
    PRIMARY KEY (tenant, name)
) STRICT, WITHOUT ROWID;

CREATE TABLE namespace_grants (
    tenant TEXT NOT NULL,
    name TEXT NOT NULL,
    place INTEGER NOT NULL,
    agent TEXT NOT NULL,
    access TEXT NOT NULL,
    PRIMARY KEY (tenant, name, agent)
) STRICT, WITHOUT ROWID;

CREATE TABLE kept_replies (
    tenant TEXT NOT NULL,
    principal TEXT NOT NULL,
    key TEXT NOT NULL,
    fingerprint BLOB NOT NULL,
    status INTEGER NOT NULL,
    reply BLOB,
    sealing_key TEXT NOT NULL,
    created_at TEXT NOT NULL,
    PRIMARY KEY (tenant, principal, key)
) STRICT, WITHOUT ROWID;

CREATE INDEX kept_replies_by_age ON kept_replies (tenant, created_at);

CREATE TABLE kept_reply_entries (
    tenant TEXT NOT NULL,
    entry_id TEXT NOT NULL,
    principal TEXT NOT NULL,
    key TEXT NOT NULL,
    PRIMARY KEY (tenant, entry_id, principal, key)
) STRICT, WITHOUT ROWID;

CREATE INDEX kept_reply_entries_by_reply ON kept_reply_entries (tenant, principal, key);
