-- name: get
SELECT body FROM coordinators WHERE tenant = $1 AND id = $2;

-- name: insert
INSERT INTO coordinators (tenant, id, intent_id, body) VALUES ($1, $2, $3, $4);

-- name: replace
UPDATE coordinators SET intent_id = $3, body = $4 WHERE tenant = $1 AND id = $2 RETURNING 1;

-- name: list
SELECT body FROM coordinators WHERE tenant = $1 AND intent_id = $2 ORDER BY id;
