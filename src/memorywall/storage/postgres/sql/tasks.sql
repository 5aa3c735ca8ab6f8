-- name: get
SELECT body FROM tasks WHERE tenant = $1 AND id = $2;

-- name: insert
INSERT INTO tasks (tenant, id, intent_id, status, assigned_agent, body)
VALUES ($1, $2, $3, $4, $5, $6);

-- name: replace
UPDATE tasks SET intent_id = $3, status = $4, assigned_agent = $5, body = $6
WHERE tenant = $1 AND id = $2 RETURNING 1;

-- name: list
SELECT body FROM tasks WHERE tenant = $1 AND intent_id = $2
ORDER BY id LIMIT $3 OFFSET $4;

-- name: list_in
-- With the status on its own the index alone tells which rows to read.
SELECT body FROM tasks WHERE tenant = $1 AND intent_id = $2 AND status = $3
ORDER BY id LIMIT $4 OFFSET $5;

-- name: count
SELECT count(*) FROM tasks WHERE tenant = $1 AND intent_id = $2;

-- name: assigned
SELECT body FROM tasks WHERE tenant = $1 AND assigned_agent = $2
ORDER BY id LIMIT $3 OFFSET $4;

-- name: assigned_in
SELECT body FROM tasks WHERE tenant = $1 AND assigned_agent = $2 AND status = $3
ORDER BY id LIMIT $4 OFFSET $5;

-- name: open_of
SELECT body FROM tasks
WHERE tenant = $1 AND assigned_agent = $2
    AND status NOT IN ('completed', 'failed', 'cancelled', 'skipped')
ORDER BY id;

-- name: intents_of
SELECT DISTINCT intent_id FROM tasks WHERE tenant = $1 AND assigned_agent = $2 ORDER BY intent_id;

-- name: works_in
SELECT 1 FROM tasks WHERE tenant = $1 AND assigned_agent = $2 AND intent_id = $3 LIMIT 1;

-- name: unassigned
SELECT body FROM tasks
WHERE tenant = $1 AND intent_id = ANY($2::text[]) AND status = 'ready' AND assigned_agent IS NULL
ORDER BY id LIMIT $3;
