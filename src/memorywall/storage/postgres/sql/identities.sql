-- Those of the registry (tenants, find_key) are given the tenant of the transaction. Where that is
-- the registry's own it is NULL, and they are about all tenants.

-- name: tenants
SELECT name FROM tenants WHERE $1::text IS NULL OR name = $1 ORDER BY name;

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
