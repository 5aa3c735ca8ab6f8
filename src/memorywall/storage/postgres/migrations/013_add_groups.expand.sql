-- Groups of principals, and which grants of a namespace open episodic memory to a group. NULL in
-- the rows of servers of earlier schemas means that a grant does not.

CREATE TABLE principal_groups (
    tenant text COLLATE "C" NOT NULL,
    name text COLLATE "C" NOT NULL,
    kind text COLLATE "C" NOT NULL,
    created_by text COLLATE "C" NOT NULL,
    created_at text COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant, name)
);

ALTER TABLE principal_groups ENABLE ROW LEVEL SECURITY;
ALTER TABLE principal_groups FORCE ROW LEVEL SECURITY;
CREATE POLICY own_tenant ON principal_groups
    USING (tenant = nullif(current_setting('memorywall.tenant', true), ''));
GRANT SELECT, INSERT, UPDATE, DELETE ON principal_groups TO memorywall_app;

CREATE TABLE group_members (
    tenant text COLLATE "C" NOT NULL,
    name text COLLATE "C" NOT NULL,
    principal text COLLATE "C" NOT NULL,
    added_by text COLLATE "C" NOT NULL,
    added_at text COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant, name, principal)
);

CREATE INDEX group_members_by_principal ON group_members (tenant, principal, name);

ALTER TABLE group_members ENABLE ROW LEVEL SECURITY;
ALTER TABLE group_members FORCE ROW LEVEL SECURITY;
CREATE POLICY own_tenant ON group_members
    USING (tenant = nullif(current_setting('memorywall.tenant', true), ''));
GRANT SELECT, INSERT, UPDATE, DELETE ON group_members TO memorywall_app;

ALTER TABLE namespace_grants ADD COLUMN episodic bigint;
