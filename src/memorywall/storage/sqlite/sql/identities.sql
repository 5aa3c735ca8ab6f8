-- name: tenants
SELECT name FROM tenants ORDER BY name;

-- name: find_key
SELECT {columns} FROM api_keys WHERE prefix = ?1;

-- name: keys
SELECT {columns} FROM api_keys WHERE ?1 IS NULL OR tenant = ?1 ORDER BY created_at, prefix;

-- name: revoke_key
UPDATE api_keys SET revoked_at = coalesce(revoked_at, ?2) WHERE prefix = ?1 RETURNING 1;
