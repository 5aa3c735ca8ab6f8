-- What is asked of namespaces and their grants beside what follows from their declaration.

-- name: grants
SELECT agent, access, episodic FROM namespace_grants WHERE tenant = ?1 AND name = ?2 ORDER BY place;

-- name: save
INSERT INTO namespaces (tenant, name, default_access, version, created_at, updated_at,
    last_write_wins, schemas, indexes)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)
ON CONFLICT (tenant, name) DO UPDATE SET default_access = excluded.default_access,
    version = excluded.version, updated_at = excluded.updated_at,
    last_write_wins = excluded.last_write_wins, schemas = excluded.schemas,
    indexes = excluded.indexes;

-- name: clear_schemas
DELETE FROM value_schemas WHERE tenant = ?1 AND namespace = ?2;

-- name: clear_grants
DELETE FROM namespace_grants WHERE tenant = ?1 AND name = ?2;
