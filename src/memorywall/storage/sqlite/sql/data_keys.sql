-- name: get
SELECT tenant, id, wrapped, wrapped_by, created_at FROM data_keys WHERE tenant = ?1 AND id = ?2;

-- name: current
SELECT tenant, id, wrapped, wrapped_by, created_at FROM data_keys WHERE tenant = ?1
ORDER BY id DESC LIMIT 1;

-- name: add
INSERT INTO data_keys (tenant, id, wrapped, wrapped_by, created_at) VALUES (?1, ?2, ?3, ?4, ?5);

-- name: any
SELECT tenant, id, wrapped, wrapped_by, created_at FROM data_keys ORDER BY tenant, id LIMIT 1;
