-- Work: intents, tasks, coordinators, leases, attachments, and the log of an intent. A record that
-- is read whole is kept whole, as JSON, in `body`; the columns beside it are what it is found by.

ALTER TABLE events ADD COLUMN data BLOB;

CREATE INDEX events_by_intent ON events (tenant, intent_id, seq) WHERE intent_id IS NOT NULL;

-- What a task's entries take, which every create in a task asks, is read from this index alone.
DROP INDEX entries_by_task;
CREATE INDEX entries_by_task ON entries (tenant, task_id, tier, expires_at, size)
    WHERE task_id IS NOT NULL;

-- Whose entries are bound to an intent is read from this index alone.
DROP INDEX entries_by_intent;
CREATE INDEX entries_by_intent ON entries (tenant, intent_id, tier, id, owner)
    WHERE intent_id IS NOT NULL;

-- A scope of shared state is counted at every create in it.
CREATE INDEX entries_by_scope ON entries (tenant, namespace, expires_at, size)
    WHERE tier = 'shared' AND owner = '';

CREATE TABLE new_agent_limits (
    tenant TEXT NOT NULL,
    agent TEXT NOT NULL,
    episodic_capacity INTEGER,
    pinned_namespaces TEXT NOT NULL,
    PRIMARY KEY (tenant, agent)
) STRICT, WITHOUT ROWID;

INSERT INTO new_agent_limits (tenant, agent, episodic_capacity, pinned_namespaces)
SELECT tenant, agent, episodic_capacity, '[]' FROM agent_limits;

DROP TABLE agent_limits;
ALTER TABLE new_agent_limits RENAME TO agent_limits;

-- The last number given, by what is numbered; a number is never given twice.
CREATE TABLE counters (
    tenant TEXT NOT NULL,
    name TEXT NOT NULL,
    value INTEGER NOT NULL,
    PRIMARY KEY (tenant, name)
) STRICT, WITHOUT ROWID;

CREATE TABLE leases (
    tenant TEXT NOT NULL,
    kind TEXT NOT NULL,
    place TEXT NOT NULL,
    name TEXT NOT NULL,
    id TEXT NOT NULL,
    token INTEGER NOT NULL,
    holder TEXT NOT NULL,
    purpose TEXT,
    acquired_at TEXT NOT NULL,
    renewed_at TEXT NOT NULL,
    expires_at TEXT NOT NULL,
    PRIMARY KEY (tenant, kind, place, name)
) STRICT, WITHOUT ROWID;

CREATE UNIQUE INDEX leases_by_id ON leases (tenant, id);
CREATE UNIQUE INDEX leases_by_token ON leases (tenant, token);
CREATE INDEX leases_by_holder ON leases (tenant, kind, holder, expires_at);
CREATE INDEX leases_by_expiry ON leases (tenant, expires_at, token);

CREATE TABLE intents (
    tenant TEXT NOT NULL,
    id TEXT NOT NULL,
    created_by TEXT NOT NULL,
    default_policy TEXT NOT NULL,
    status TEXT NOT NULL,
    parent_intent_id TEXT,
    body TEXT NOT NULL,
    PRIMARY KEY (tenant, id)
) STRICT;

CREATE INDEX intents_by_creator ON intents (tenant, created_by, id, status);
CREATE INDEX intents_by_policy ON intents (tenant, default_policy, id, status);
CREATE INDEX intents_by_parent ON intents (tenant, parent_intent_id, id)
    WHERE parent_intent_id IS NOT NULL;

CREATE TABLE intent_needs (
    tenant TEXT NOT NULL,
    needed TEXT NOT NULL,
    intent_id TEXT NOT NULL,
    PRIMARY KEY (tenant, needed, intent_id)
) STRICT, WITHOUT ROWID;

CREATE INDEX intent_needs_by_intent ON intent_needs (tenant, intent_id);

CREATE TABLE intent_grants (
    tenant TEXT NOT NULL,
    intent_id TEXT NOT NULL,
    id TEXT NOT NULL,
    principal_id TEXT NOT NULL,
    principal_type TEXT NOT NULL,
    access TEXT NOT NULL,
    granted_by TEXT NOT NULL,
    granted_at TEXT NOT NULL,
    expires_at TEXT,
    reason TEXT,
    PRIMARY KEY (tenant, intent_id, id)
) STRICT, WITHOUT ROWID;

CREATE INDEX intent_grants_by_principal ON intent_grants (tenant, principal_id, intent_id, id);

CREATE TABLE tasks (
    tenant TEXT NOT NULL,
    id TEXT NOT NULL,
    intent_id TEXT NOT NULL,
    status TEXT NOT NULL,
    assigned_agent TEXT,
    body TEXT NOT NULL,
    PRIMARY KEY (tenant, id)
) STRICT;

CREATE INDEX tasks_by_intent ON tasks (tenant, intent_id, id, status);
CREATE INDEX tasks_by_agent ON tasks (tenant, assigned_agent, id, status)
    WHERE assigned_agent IS NOT NULL;
CREATE INDEX tasks_open ON tasks (tenant, assigned_agent, id)
    WHERE assigned_agent IS NOT NULL
    AND status NOT IN ('completed', 'failed', 'cancelled', 'skipped');
-- Whether an agent has a part in an intent is asked with nearly every request about it.
CREATE INDEX tasks_by_worker ON tasks (tenant, assigned_agent, intent_id)
    WHERE assigned_agent IS NOT NULL;
CREATE INDEX tasks_unassigned ON tasks (tenant, intent_id, status, id)
    WHERE assigned_agent IS NULL;

CREATE TABLE coordinators (
    tenant TEXT NOT NULL,
    id TEXT NOT NULL,
    intent_id TEXT NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (tenant, id)
) STRICT;

CREATE INDEX coordinators_by_intent ON coordinators (tenant, intent_id, id);

CREATE TABLE attachments (
    tenant TEXT NOT NULL,
    id TEXT NOT NULL,
    intent_id TEXT NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (tenant, id)
) STRICT;

CREATE INDEX attachments_by_intent ON attachments (tenant, intent_id, id);

CREATE TABLE attachment_pieces (
    tenant TEXT NOT NULL,
    attachment_id TEXT NOT NULL,
    place INTEGER NOT NULL,
    content BLOB NOT NULL,
    PRIMARY KEY (tenant, attachment_id, place)
) STRICT;
