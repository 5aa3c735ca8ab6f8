-- What is asked of tasks beside what follows from their declaration. {shown} are the columns that a
-- task is decoded from.

-- name: list
SELECT {shown} FROM tasks INDEXED BY tasks_by_intent
WHERE tenant = ?1 AND intent_id = ?2 ORDER BY id LIMIT ?3 OFFSET ?4;

-- name: list_in
SELECT {shown} FROM tasks INDEXED BY tasks_by_intent
WHERE tenant = ?1 AND intent_id = ?2 AND status = ?3 ORDER BY id LIMIT ?4 OFFSET ?5;

-- name: count
SELECT count(*) FROM tasks INDEXED BY tasks_by_intent WHERE tenant = ?1 AND intent_id = ?2;

-- name: assigned
SELECT {shown} FROM tasks INDEXED BY tasks_by_agent
WHERE tenant = ?1 AND assigned_agent = ?2 ORDER BY id LIMIT ?3 OFFSET ?4;

-- name: assigned_in
SELECT {shown} FROM tasks INDEXED BY tasks_by_agent
WHERE tenant = ?1 AND assigned_agent = ?2 AND status = ?3 ORDER BY id LIMIT ?4 OFFSET ?5;

-- name: open_of
SELECT {shown} FROM tasks INDEXED BY tasks_open
WHERE tenant = ?1 AND assigned_agent = ?2
    AND status NOT IN ('completed', 'failed', 'cancelled', 'skipped')
ORDER BY id;

-- name: intents_of
SELECT DISTINCT intent_id FROM tasks INDEXED BY tasks_by_worker
WHERE tenant = ?1 AND assigned_agent = ?2 ORDER BY intent_id;

-- name: works_in
SELECT 1 FROM tasks INDEXED BY tasks_by_worker
WHERE tenant = ?1 AND assigned_agent = ?2 AND intent_id = ?3 LIMIT 1;

-- name: unassigned
SELECT {shown} FROM tasks INDEXED BY tasks_unassigned
WHERE tenant = ?1 AND intent_id IN {list ?2} AND status = 'ready' AND assigned_agent IS NULL
ORDER BY id LIMIT ?3;
