-- Work: intents, tasks, coordinators, leases and attachments. A record that is read whole is kept
-- whole, as JSON text, in `body`; the columns beside it are what it is found by.

CREATE TABLE leases (
    tenant text COLLATE "C" NOT NULL,
    kind text COLLATE "C" NOT NULL,
    place text COLLATE "C" NOT NULL,
    name text COLLATE "C" NOT NULL,
    id text COLLATE "C" NOT NULL,
    token bigint NOT NULL,
    holder text COLLATE "C" NOT NULL,
    purpose text COLLATE "C",
    acquired_at text COLLATE "C" NOT NULL,
    renewed_at text COLLATE "C" NOT NULL,
    expires_at text COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant, kind, place, name)
);

CREATE UNIQUE INDEX leases_by_id ON leases (tenant, id);
CREATE UNIQUE INDEX leases_by_token ON leases (tenant, token);
CREATE INDEX leases_by_holder ON leases (tenant, kind, holder, token);
CREATE INDEX leases_by_expiry ON leases (tenant, expires_at, token);

CREATE TABLE intents (
    tenant text COLLATE "C" NOT NULL,
    id text COLLATE "C" NOT NULL,
    created_by text COLLATE "C" NOT NULL,
    default_policy text COLLATE "C" NOT NULL,
    status text COLLATE "C" NOT NULL,
    parent_intent_id text COLLATE "C",
    body text COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant, id)
);

-- A page of intents and their number are read from these two alone.
CREATE INDEX intents_by_creator ON intents (tenant, created_by, id, status);
CREATE INDEX intents_by_policy ON intents (tenant, default_policy, id, status, created_by);
CREATE INDEX intents_by_parent ON intents (tenant, parent_intent_id, id)
    WHERE parent_intent_id IS NOT NULL;

CREATE TABLE intent_needs (
    tenant text COLLATE "C" NOT NULL,
    needed text COLLATE "C" NOT NULL,
    intent_id text COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant, needed, intent_id)
);

CREATE INDEX intent_needs_by_intent ON intent_needs (tenant, intent_id);

-- reason: in the words of who granted it, in UTF-8. They may hold U+0000, which `text` cannot.
CREATE TABLE intent_grants (
    tenant text COLLATE "C" NOT NULL,
    intent_id text COLLATE "C" NOT NULL,
    id text COLLATE "C" NOT NULL,
    principal_id text COLLATE "C" NOT NULL,
    principal_type text COLLATE "C" NOT NULL,
    access text COLLATE "C" NOT NULL,
    granted_by text COLLATE "C" NOT NULL,
    granted_at text COLLATE "C" NOT NULL,
    expires_at text COLLATE "C",
    reason bytea,
    PRIMARY KEY (tenant, intent_id, id)
);

CREATE INDEX intent_grants_by_principal ON intent_grants (tenant, principal_id, intent_id, id);

CREATE TABLE tasks (
    tenant text COLLATE "C" NOT NULL,
    id text COLLATE "C" NOT NULL,
    intent_id text COLLATE "C" NOT NULL,
    status text COLLATE "C" NOT NULL,
    assigned_agent text COLLATE "C",
    body text COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant, id)
);

CREATE INDEX tasks_by_intent ON tasks (tenant, intent_id, id, status);
CREATE INDEX tasks_by_agent ON tasks (tenant, assigned_agent, id, status)
    WHERE assigned_agent IS NOT NULL;
CREATE INDEX tasks_open ON tasks (tenant, assigned_agent, id)
    WHERE assigned_agent IS NOT NULL
    AND status NOT IN ('completed', 'failed', 'cancelled', 'skipped');
-- Whether an agent has a part in an intent is asked with nearly every request about it.
CREATE INDEX tasks_by_worker ON tasks (tenant, assigned_agent, intent_id)
    WHERE assigned_agent IS NOT NULL;
CREATE INDEX tasks_unassigned ON tasks (tenant, intent_id, id)
    WHERE assigned_agent IS NULL AND status = 'ready';

CREATE TABLE coordinators (
    tenant text COLLATE "C" NOT NULL,
    id text COLLATE "C" NOT NULL,
    intent_id text COLLATE "C" NOT NULL,
    body text COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant, id)
);

CREATE INDEX coordinators_by_intent ON coordinators (tenant, intent_id, id);

CREATE TABLE attachments (
    tenant text COLLATE "C" NOT NULL,
    id text COLLATE "C" NOT NULL,
    intent_id text COLLATE "C" NOT NULL,
    body text COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant, id)
);

CREATE INDEX attachments_by_intent ON attachments (tenant, intent_id, id);

CREATE TABLE attachment_pieces (
    tenant text COLLATE "C" NOT NULL,
    attachment_id text COLLATE "C" NOT NULL,
    place integer NOT NULL,
    content bytea NOT NULL,
    PRIMARY KEY (tenant, attachment_id, place)
);
