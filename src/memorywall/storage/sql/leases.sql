-- name: columns
tenant, id, token, kind, place, name, holder, purpose, acquired_at, renewed_at, expires_at

-- name: acquire
-- Only one transaction of a tenant writes at a time, which keeps others from the counter. `true`
-- tells SQLite that ON belongs to no join.
INSERT INTO leases ({columns})
SELECT ?1, ?2,
    coalesce((SELECT value FROM counters WHERE tenant = ?1 AND name = 'fencing'), 0) + 1,
    ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10
WHERE true
ON CONFLICT (tenant, kind, place, name) DO UPDATE SET id = excluded.id, token = excluded.token,
    holder = excluded.holder, purpose = excluded.purpose, acquired_at = excluded.acquired_at,
    renewed_at = excluded.renewed_at, expires_at = excluded.expires_at
WHERE leases.tenant = ?1 AND leases.expires_at <= ?11
RETURNING {columns};

-- name: count
INSERT INTO counters (tenant, name, value) VALUES (?1, 'fencing', ?2)
ON CONFLICT (tenant, name) DO UPDATE SET value = excluded.value;

-- name: current
SELECT {columns} FROM leases WHERE tenant = ?1 AND kind = ?2 AND place = ?3 AND name = ?4;

-- name: get
SELECT {columns} FROM leases WHERE tenant = ?1 AND id = ?2;

-- name: by_token
SELECT {columns} FROM leases WHERE tenant = ?1 AND token = ?2;

-- name: extend
UPDATE leases SET expires_at = ?4, renewed_at = ?5
WHERE tenant = ?1 AND token = ?2 AND holder = ?3 AND expires_at > ?5
RETURNING {columns};

-- name: end
DELETE FROM leases WHERE tenant = ?1 AND token = ?2 RETURNING 1;

-- name: list
SELECT {columns} FROM leases WHERE tenant = ?1 AND kind = ?2 AND place = ?3 ORDER BY token;

-- name: of_holder
SELECT {columns} FROM leases INDEXED BY leases_by_holder
WHERE tenant = ?1 AND kind = ?2 AND holder = ?3 ORDER BY token;

-- name: count_held_by
SELECT count(*) FROM leases INDEXED BY leases_by_holder
WHERE tenant = ?1 AND kind = ?2 AND holder = ?3 AND expires_at > ?4;

-- name: expired
SELECT {columns} FROM leases INDEXED BY leases_by_expiry
WHERE tenant = ?1 AND expires_at <= ?2 ORDER BY expires_at, token LIMIT ?3;
