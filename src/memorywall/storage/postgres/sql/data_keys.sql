-- name: any
-- Given the tenant of the transaction, which is NULL in the registry's: then it is any tenant's.
SELECT {columns} FROM data_keys WHERE $1::text IS NULL OR tenant = $1 ORDER BY tenant, id LIMIT 1;

-- name: of_tenant
SELECT {columns} FROM data_keys WHERE tenant = $1 ORDER BY id;

-- name: current
SELECT {columns} FROM data_keys WHERE tenant = $1 AND subject = $2 AND purpose IS NOT DISTINCT FROM $3::text
ORDER BY id DESC LIMIT 1;

-- name: wrappers
-- Given the tenant of the transaction, as for any.
SELECT wrapped_by, count(*) FROM data_keys WHERE $1::text IS NULL OR tenant = $1
GROUP BY wrapped_by;
