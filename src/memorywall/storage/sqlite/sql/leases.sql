-- name: columns
tenant, id, token, kind, place, name, holder, purpose, acquired_at, renewed_at, expires_at

-- name: take
INSERT INTO leases (tenant, id, token, kind, place, name, holder, purpose, acquired_at, renewed_at,
    expires_at)
VALUES (?1, ?2, coalesce((SELECT value FROM counters WHERE tenant = ?1 AND name = 'fencing'), 0) + 1,
    ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)
ON CONFLICT (tenant, kind, place, name) DO UPDATE SET id = excluded.id, token = excluded.token,
    holder = excluded.holder, purpose = excluded.purpose, acquired_at = excluded.acquired_at,
    renewed_at = excluded.renewed_at, expires_at = excluded.expires_at
WHERE leases.expires_at <= ?11
RETURNING {columns};

-- name: count
INSERT INTO counters (tenant, name, value) VALUES (?1, 'fencing', ?2)
ON CONFLICT (tenant, name) DO UPDATE SET value = excluded.value;

-- name: current
SELECT {columns} FROM leases WHERE tenant = ?1 AND kind = ?2 AND place = ?3 AND name = ?4;

-- name: get
SELECT {columns} FROM leases WHERE tenant = ?1 AND id = ?2;

-- name: held
SELECT {columns} FROM leases
WHERE tenant = ?1 AND token = ?2 AND holder = ?3 AND expires_at > ?4;

-- name: extend
UPDATE leases SET expires_at = ?4, renewed_at = ?5
WHERE tenant = ?1 AND token = ?2 AND holder = ?3 AND expires_at > ?5
RETURNING {columns};

-- name: end
DELETE FROM leases WHERE tenant = ?1 AND token = ?2 RETURNING 1;

-- name: list
-- The plus keeps it to the key: most leases of a tenant are live, few are over one place.
SELECT {columns} FROM leases
WHERE tenant = ?1 AND kind = ?2 AND place = ?3 AND +expires_at > ?4 ORDER BY token;

-- name: held_by
SELECT {columns} FROM leases INDEXED BY leases_by_holder
WHERE tenant = ?1 AND kind = ?2 AND holder = ?3 AND expires_at > ?4 ORDER BY token;

-- name: count_held_by
SELECT count(*) FROM leases INDEXED BY leases_by_holder
WHERE tenant = ?1 AND kind = ?2 AND holder = ?3 AND expires_at > ?4;

-- name: lapsed
SELECT {columns} FROM leases INDEXED BY leases_by_expiry
WHERE tenant = ?1 AND expires_at <= ?2 ORDER BY expires_at, token LIMIT ?3;
