-- name: columns
tenant, id, tier, owner, agent_id, namespace, key, task_id, intent_id, session_id, tags, ttl,
expires_at, version, pinned, priority, sensitivity, created_at, updated_at, created_by,
curated_by, provenance, size, sealing_key, value, kind, kind_version, status, state, listed,
subjects, edges, due_at

-- name: expired
SELECT {columns} FROM entries
WHERE tenant = ?1 AND expires_at <= ?2 ORDER BY expires_at, id LIMIT ?3;

-- name: due
SELECT {columns} FROM entries INDEXED BY entries_by_due
WHERE tenant = ?1 AND due_at <= ?2 AND (CAST(?4 AS text) IS NULL OR kind = ?4)
ORDER BY due_at, id LIMIT ?3;

-- name: of_task
SELECT {columns} FROM entries INDEXED BY entries_by_task
WHERE tenant = ?1 AND task_id = ?3 AND tier = ?2 ORDER BY id;

-- name: of_task_in_every_tier
SELECT {columns} FROM entries INDEXED BY entries_by_task
WHERE tenant = ?1 AND task_id = ?2 ORDER BY id;

-- name: of_session
SELECT {columns} FROM entries INDEXED BY entries_by_session
WHERE tenant = ?1 AND session_id = ?2 AND kind = ?3 AND owner = ?4 AND key > ?5 AND key < ?6
ORDER BY key LIMIT ?7;

-- name: of_session_newest_first
SELECT {columns} FROM entries INDEXED BY entries_by_session
WHERE tenant = ?1 AND session_id = ?2 AND kind = ?3 AND owner = ?4 AND key > ?5 AND key < ?6
ORDER BY key DESC LIMIT ?7;

-- name: walk
SELECT {columns} FROM entries WHERE tenant = ?1 AND id > ?2 ORDER BY id LIMIT ?3;

-- name: fullest_owners
SELECT u.owner, u.entries FROM usage u
LEFT JOIN agent_limits l ON l.tenant = u.tenant AND l.agent = u.owner
WHERE u.tenant = ?1 AND u.tier = ?2 AND u.owner <> ''
    AND (u.entries >= ?3 OR l.episodic_capacity IS NOT NULL)
ORDER BY u.entries DESC, u.owner LIMIT ?4;

-- name: usage_by_tier
SELECT tier, CAST(sum(entries) AS bigint), CAST(sum(bytes) AS bigint),
    CAST(sum(pinned) AS bigint)
FROM usage WHERE tenant = ?1 GROUP BY tier HAVING sum(entries) > 0;

-- name: rename
UPDATE entries SET namespace = ?4, key = ?5
WHERE tenant = ?1 AND id = ?2 AND version = ?3 RETURNING 1;

-- name: reseal
UPDATE entries SET sealing_key = ?4, value = ?5
WHERE tenant = ?1 AND id = ?2 AND version = ?3 RETURNING 1;
