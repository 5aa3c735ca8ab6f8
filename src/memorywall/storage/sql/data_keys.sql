-- name: columns
tenant, id, subject, wrapped, wrapped_by, created_at, purpose

-- name: get
SELECT {columns} FROM data_keys WHERE tenant = ?1 AND id = ?2;

-- name: add
INSERT INTO data_keys ({columns}) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7);

-- name: remove
DELETE FROM data_keys WHERE tenant = ?1 AND subject = ?2
    AND (purpose IS NULL OR purpose = 'replaced') RETURNING 1;

-- name: of_tenant
SELECT {columns} FROM data_keys WHERE tenant = ?1 ORDER BY id;

-- name: replace
UPDATE data_keys SET wrapped = ?3, wrapped_by = ?4, purpose = ?5 WHERE tenant = ?1 AND id = ?2
RETURNING 1;

-- name: wrapped_otherwise
SELECT {columns} FROM data_keys WHERE tenant = ?1 AND id > ?3 AND wrapped_by <> ?2
ORDER BY id LIMIT ?4;

-- name: replaced
SELECT {columns} FROM data_keys INDEXED BY data_keys_replaced
WHERE tenant = ?1 AND purpose = 'replaced' ORDER BY id;

-- name: first
SELECT {columns} FROM data_keys
WHERE tenant = ?1 AND subject = '' AND (purpose IS NULL OR purpose <> 'digest')
ORDER BY id LIMIT 1;

-- name: discard
DELETE FROM data_keys WHERE tenant = ?1 AND id = ?2 RETURNING 1;

-- name: any
-- The binding is the tenant of the transaction, or NULL for all tenants in one of the registry.
SELECT {columns} FROM data_keys WHERE CAST(?1 AS text) IS NULL OR tenant = ?1
ORDER BY tenant, id LIMIT 1;

-- name: current
SELECT {columns} FROM data_keys
WHERE tenant = ?1 AND subject = ?2 AND purpose IS NOT DISTINCT FROM CAST(?3 AS text)
ORDER BY id DESC LIMIT 1;

-- name: wrappers
-- The binding is the same as that of `any`.
SELECT wrapped_by, count(*) FROM data_keys WHERE CAST(?1 AS text) IS NULL OR tenant = ?1
GROUP BY wrapped_by;
