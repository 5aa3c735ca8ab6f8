-- name: columns
prefix, digest, tenant, principal, kind, permissions, created_at, revoked_at, subjects,
namespaces, expires_at, last_used_at

-- name: add_tenant
INSERT INTO tenants (name, created_at) VALUES (?1, ?2) ON CONFLICT DO NOTHING RETURNING 1;

-- name: add_principal
INSERT INTO principals (tenant, id, kind, created_at) VALUES (?1, ?2, ?3, ?4)
ON CONFLICT DO NOTHING RETURNING kind;

-- name: principal_kind
SELECT kind FROM principals WHERE tenant = ?1 AND id = ?2;

-- name: add_key
INSERT INTO api_keys ({columns}) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12);

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
