-- name: naming
-- The pending tasks whose body holds this id, in whatever field, so that only these are decoded.
SELECT {shown} FROM tasks INDEXED BY tasks_by_intent
WHERE tenant = ?1 AND intent_id = ?2 AND status = 'pending' AND instr(body, ?3) > 0
ORDER BY id;

-- name: completed
SELECT id FROM (SELECT value AS wanted FROM json_each(?2))
CROSS JOIN tasks ON tenant = ?1 AND id = wanted
WHERE status = 'completed';
