-- name: any
SELECT {columns} FROM data_keys ORDER BY tenant, id LIMIT 1;

-- name: current
SELECT {columns} FROM data_keys WHERE tenant = ?1 AND subject = ?2 AND purpose IS ?3
ORDER BY id DESC LIMIT 1;

-- name: wrappers
SELECT wrapped_by, count(*) FROM data_keys WHERE ?1 IS NULL OR tenant = ?1 GROUP BY wrapped_by;
