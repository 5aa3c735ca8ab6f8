-- name: columns
tenant, id, subject, wrapped, wrapped_by, created_at

-- name: get
SELECT {columns} FROM data_keys WHERE tenant = $1 AND id = $2;

-- name: current
SELECT {columns} FROM data_keys WHERE tenant = $1 AND subject = $2 ORDER BY id DESC LIMIT 1;

-- name: add
INSERT INTO data_keys ({columns}) VALUES ($1, $2, $3, $4, $5, $6);

-- name: remove
DELETE FROM data_keys WHERE tenant = $1 AND subject = $2 RETURNING 1;

-- name: any
-- Given the tenant of the transaction, which is NULL in the registry's: then it is any tenant's.
SELECT {columns} FROM data_keys WHERE $1::text IS NULL OR tenant = $1 ORDER BY tenant, id LIMIT 1;
