-- What is asked of namespaces and their grants beside what follows from their declaration.

-- name: grants
SELECT agent, access FROM namespace_grants WHERE tenant = ?1 AND name = ?2 ORDER BY place;

-- name: list_for
SELECT n.tenant, n.name, n.default_access, n.version, n.created_at, n.updated_at,
    n.last_write_wins, n.indexes, g.agent, g.access
FROM namespaces n
LEFT JOIN namespace_grants g
    ON g.tenant = n.tenant AND g.tenant = ?1 AND g.name = n.name AND g.agent = ?2
WHERE n.tenant = ?1 ORDER BY n.name;

-- name: save
INSERT INTO namespaces (tenant, name, default_access, version, created_at, updated_at,
    last_write_wins, indexes)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
ON CONFLICT (tenant, name) DO UPDATE SET default_access = excluded.default_access,
    version = excluded.version, updated_at = excluded.updated_at,
    last_write_wins = excluded.last_write_wins, indexes = excluded.indexes;

-- name: clear_grants
DELETE FROM namespace_grants WHERE tenant = ?1 AND name = ?2;
