-- name: columns
prefix, digest, tenant, principal, kind, permissions, created_at, revoked_at, subjects,
namespaces, expires_at, last_used_at, successor

-- name: tenants
-- The binding is the tenant of the transaction, or NULL for all tenants in one of the registry.
SELECT name FROM tenants WHERE CAST(?1 AS text) IS NULL OR name = ?1 ORDER BY name;

-- name: add_tenant
INSERT INTO tenants (name, created_at) VALUES (?1, ?2) ON CONFLICT DO NOTHING RETURNING 1;

-- name: add_principal
INSERT INTO principals (tenant, id, kind, created_at) VALUES (?1, ?2, ?3, ?4)
ON CONFLICT DO NOTHING RETURNING kind;

-- name: principal_kind
SELECT kind FROM principals WHERE tenant = ?1 AND id = ?2;

-- name: add_key
INSERT INTO api_keys ({columns}) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12,
    ?13);

-- name: find_key
-- A key tells its tenant, so it alone is found without one. Of two keys that came by one prefix in
-- different tenants the elder is found, so that no key stops working.
SELECT {columns} FROM api_keys
WHERE prefix = ?1 AND (CAST(?2 AS text) IS NULL OR tenant = ?2)
ORDER BY created_at, tenant LIMIT 1;

-- name: keys
SELECT {columns} FROM api_keys WHERE tenant = ?1 ORDER BY created_at, prefix;

-- name: keys_of_all
-- For the registry alone.
SELECT {columns} FROM api_keys ORDER BY created_at, prefix;

-- name: revoke_key
UPDATE api_keys SET revoked_at = coalesce(revoked_at, ?3) WHERE tenant = ?1 AND prefix = ?2
RETURNING 1;

-- name: end_key
UPDATE api_keys
SET successor = ?3, expires_at = CASE WHEN expires_at < ?4 THEN expires_at ELSE ?4 END
WHERE tenant = ?1 AND prefix = ?2 AND successor IS NULL
RETURNING 1;

-- name: touch_key
UPDATE api_keys SET last_used_at = ?3
WHERE tenant = ?1 AND prefix = ?2 AND (last_used_at IS NULL OR last_used_at < ?3);

-- name: limits
SELECT episodic_capacity, pinned_namespaces FROM agent_limits WHERE tenant = ?1 AND agent = ?2;

-- name: set_limits
INSERT INTO agent_limits (tenant, agent, episodic_capacity, pinned_namespaces)
VALUES (?1, ?2, ?3, ?4)
ON CONFLICT (tenant, agent) DO UPDATE SET episodic_capacity = excluded.episodic_capacity,
    pinned_namespaces = excluded.pinned_namespaces;

-- name: clear_limits
DELETE FROM agent_limits WHERE tenant = ?1 AND agent = ?2;
