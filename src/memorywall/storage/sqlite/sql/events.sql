-- name: columns
tenant, seq, type, stream, agent_id, actor, entry_id, tier, namespace, key, version,
previous_version, tags, task_id, intent_id, timestamp, data

-- name: last_seq
SELECT max(seq) FROM events WHERE tenant = ?1;

-- name: append
INSERT INTO events (tenant, seq, type, stream, agent_id, actor, entry_id, tier, namespace, key,
    version, previous_version, tags, task_id, intent_id, timestamp, data)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: list
SELECT {columns} FROM events INDEXED BY events_by_stream
WHERE tenant = ?1 AND stream = ?2 AND seq > ?3 ORDER BY seq LIMIT ?4;

-- name: list_of_entries
-- In the order of the key, without an index of its own, which every append would pay for.
SELECT seq, entry_id, tier, agent_id, version, type FROM events
WHERE tenant = ?1 AND seq > ?2 AND tier <> ''
    AND type IN ('memory.created', 'memory.updated', 'memory.deleted', 'memory.archived',
        'memory.evicted', 'memory.expired')
ORDER BY seq LIMIT ?3;

-- name: list_of_intent
SELECT {columns} FROM events INDEXED BY events_by_intent
WHERE tenant = ?1 AND intent_id = ?2 AND seq > ?3
    AND (?5 IS NULL OR type = ?5) AND (?6 IS NULL OR timestamp >= ?6)
ORDER BY seq LIMIT ?4;

-- name: latest
SELECT {columns} FROM events WHERE tenant = ?1 ORDER BY seq DESC LIMIT 1;

-- name: by_entry
SELECT {columns} FROM events WHERE tenant = ?1 ORDER BY entry_id, seq;
