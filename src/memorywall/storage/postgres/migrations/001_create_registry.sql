-- Tenants, who may ask, the keys their data is sealed with, and where each tenant's log ends. Every
-- key and index begins with the tenant, with one exception, which tells the tenant in the first
-- place. Text compares by code point, which collation "C" of UTF-8 is.

CREATE TABLE tenants (
    name text COLLATE "C" NOT NULL PRIMARY KEY,
    created_at text COLLATE "C" NOT NULL
);

CREATE TABLE principals (
    tenant text COLLATE "C" NOT NULL,
    id text COLLATE "C" NOT NULL,
    kind text COLLATE "C" NOT NULL,
    created_at text COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant, id)
);

CREATE TABLE api_keys (
    tenant text COLLATE "C" NOT NULL,
    prefix text COLLATE "C" NOT NULL,
    digest bytea NOT NULL,
    principal text COLLATE "C" NOT NULL,
    kind text COLLATE "C" NOT NULL,
    permissions text COLLATE "C" NOT NULL,
    created_at text COLLATE "C" NOT NULL,
    revoked_at text COLLATE "C",
    PRIMARY KEY (tenant, prefix)
);

-- The exception: a request names its key and not its tenant, so a key is found by its prefix before
-- the tenant is known. Not unique, for what one tenant has must not refuse anything to another.
CREATE INDEX api_keys_by_prefix ON api_keys (prefix);

CREATE TABLE agent_limits (
    tenant text COLLATE "C" NOT NULL,
    agent text COLLATE "C" NOT NULL,
    episodic_capacity bigint,
    pinned_namespaces text COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant, agent)
);

CREATE TABLE data_keys (
    tenant text COLLATE "C" NOT NULL,
    id text COLLATE "C" NOT NULL,
    subject text COLLATE "C" NOT NULL,
    wrapped bytea NOT NULL,
    wrapped_by text COLLATE "C" NOT NULL,
    created_at text COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant, id)
);

CREATE INDEX data_keys_by_subject ON data_keys (tenant, subject, id);

-- The last number given, by what is numbered; a number is never given twice.
CREATE TABLE counters (
    tenant text COLLATE "C" NOT NULL,
    name text COLLATE "C" NOT NULL,
    value bigint NOT NULL,
    PRIMARY KEY (tenant, name)
);

-- The end of each tenant's log. Who writes for a tenant locks its row here first, so that its
-- writers come one after another, whatever process they are in.
-- commits: how many there have been, for those who wait for the next
-- key_changes: how often an API key was added or revoked; other servers look at the sum of it to
-- know when to forget what they remember of keys
CREATE TABLE heads (
    tenant text COLLATE "C" NOT NULL PRIMARY KEY,
    seq bigint NOT NULL,
    commits bigint NOT NULL,
    key_changes bigint NOT NULL
) WITH (fillfactor = 50);
