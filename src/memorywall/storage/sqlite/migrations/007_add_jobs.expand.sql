-- Background jobs of each tenant: who runs one, how far it has come, what came of the last run.

CREATE TABLE jobs (
    tenant TEXT NOT NULL,
    name TEXT NOT NULL,
    due TEXT NOT NULL,
    holder TEXT NOT NULL,
    held_until TEXT NOT NULL,
    token INTEGER NOT NULL,
    cursor TEXT NOT NULL,
    done INTEGER NOT NULL,
    error TEXT NOT NULL,
    ran_at TEXT,
    paused INTEGER NOT NULL,
    PRIMARY KEY (tenant, name)
) STRICT, WITHOUT ROWID;
