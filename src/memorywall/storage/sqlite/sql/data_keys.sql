-- name: columns
tenant, id, subject, wrapped, wrapped_by, created_at

-- name: get
SELECT {columns} FROM data_keys WHERE tenant = ?1 AND id = ?2;

-- name: current
SELECT {columns} FROM data_keys WHERE tenant = ?1 AND subject = ?2 ORDER BY id DESC LIMIT 1;

-- name: add
INSERT INTO data_keys (tenant, id, subject, wrapped, wrapped_by, created_at)
VALUES (?1, ?2, ?3, ?4, ?5, ?6);

-- name: remove
DELETE FROM data_keys WHERE tenant = ?1 AND subject = ?2 RETURNING 1;

-- name: any
SELECT {columns} FROM data_keys ORDER BY tenant, id LIMIT 1;
