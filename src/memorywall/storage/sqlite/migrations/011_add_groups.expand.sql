-- Groups of principals, and which grants of a namespace open episodic memory to a group. NULL in
-- the rows of servers of earlier schemas means that a grant does not.

CREATE TABLE principal_groups (
    tenant TEXT NOT NULL,
    name TEXT NOT NULL,
    kind TEXT NOT NULL,
    created_by TEXT NOT NULL,
    created_at TEXT NOT NULL,
    PRIMARY KEY (tenant, name)
) STRICT, WITHOUT ROWID;

CREATE TABLE group_members (
    tenant TEXT NOT NULL,
    name TEXT NOT NULL,
    principal TEXT NOT NULL,
    added_by TEXT NOT NULL,
    added_at TEXT NOT NULL,
    PRIMARY KEY (tenant, name, principal)
) STRICT, WITHOUT ROWID;

CREATE INDEX group_members_by_principal ON group_members (tenant, principal, name);

ALTER TABLE namespace_grants ADD COLUMN episodic INTEGER;
