-- name: naming
-- The pending tasks whose body holds this id, in whatever field, so that only these are decoded.
SELECT {shown} FROM tasks
WHERE tenant = $1 AND intent_id = $2 AND status = 'pending' AND strpos(body, $3) > 0
ORDER BY id;

-- name: completed
SELECT id FROM tasks WHERE tenant = $1 AND id = ANY($2::text[]) AND status = 'completed';
