-- Those of the registry (tenants, find_key) are given the tenant of the transaction. Where that is
-- the registry's own it is NULL, and they are about all tenants.

-- name: add_tenant
INSERT INTO tenants (name, created_at) VALUES ($1, $2) ON CONFLICT DO NOTHING RETURNING 1;

-- name: tenants
SELECT name FROM tenants WHERE $1::text IS NULL OR name = $1 ORDER BY name;

-- name: add_principal
INSERT INTO principals (tenant, id, kind, created_at) VALUES ($1, $2, $3, $4)
ON CONFLICT DO NOTHING RETURNING kind;

-- name: principal_kind
SELECT kind FROM principals WHERE tenant = $1 AND id = $2;

-- name: columns
prefix, digest, tenant, principal, kind, permissions, created_at, revoked_at

-- name: add_key
INSERT INTO api_keys ({columns}) VALUES ($1, $2, $3, $4, $5, $6, $7, $8);

-- name: note_key_change
UPDATE heads SET key_changes = key_changes + 1 WHERE tenant = $1;

-- name: find_key
-- It tells the tenant in the first place, so it alone is found without one. Of two keys that came
-- by one prefix in different tenants the elder is found, so that no key stops working.
SELECT {columns}
FROM api_keys WHERE prefix = $1 AND ($2::text IS NULL OR tenant = $2)
ORDER BY created_at, tenant LIMIT 1;

-- name: keys
SELECT {columns} FROM api_keys WHERE tenant = $1 ORDER BY created_at, prefix;

-- name: keys_of_all
-- For the registry alone.
SELECT {columns} FROM api_keys ORDER BY created_at, prefix;

-- name: revoke_key
UPDATE api_keys SET revoked_at = coalesce(revoked_at, $3) WHERE tenant = $1 AND prefix = $2
RETURNING 1;

-- name: limits
SELECT episodic_capacity, pinned_namespaces FROM agent_limits WHERE tenant = $1 AND agent = $2;

-- name: set_limits
INSERT INTO agent_limits (tenant, agent, episodic_capacity, pinned_namespaces)
VALUES ($1, $2, $3, $4)
ON CONFLICT (tenant, agent) DO UPDATE SET episodic_capacity = excluded.episodic_capacity,
    pinned_namespaces = excluded.pinned_namespaces;

-- name: clear_limits
DELETE FROM agent_limits WHERE tenant = $1 AND agent = $2;
