-- Background jobs of each tenant: who runs one, how far it has come, what came of the last run.

CREATE TABLE jobs (
    tenant text COLLATE "C" NOT NULL,
    name text COLLATE "C" NOT NULL,
    due text COLLATE "C" NOT NULL,
    holder text COLLATE "C" NOT NULL,
    held_until text COLLATE "C" NOT NULL,
    token bigint NOT NULL,
    cursor text COLLATE "C" NOT NULL,
    done bigint NOT NULL,
    error text COLLATE "C" NOT NULL,
    ran_at text COLLATE "C",
    paused integer NOT NULL,
    PRIMARY KEY (tenant, name)
) WITH (fillfactor = 50);

ALTER TABLE jobs ENABLE ROW LEVEL SECURITY;
ALTER TABLE jobs FORCE ROW LEVEL SECURITY;
CREATE POLICY own_tenant ON jobs
    USING (tenant = nullif(current_setting('memorywall.tenant', true), ''));
GRANT SELECT, INSERT, UPDATE, DELETE ON jobs TO memorywall_app;
