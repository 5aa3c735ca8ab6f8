-- name: last_seq
SELECT max(seq) FROM events WHERE tenant = ?1;

-- name: append
INSERT INTO events (tenant, seq, type, stream, agent_id, actor, entry_id, tier, namespace, key,
    version, previous_version, tags, task_id, intent_id, timestamp)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: list
SELECT tenant, seq, type, stream, agent_id, actor, entry_id, tier, namespace, key, version,
    previous_version, tags, task_id, intent_id, timestamp
FROM events INDEXED BY events_by_stream
WHERE tenant = ?1 AND stream = ?2 AND seq > ?3 ORDER BY seq LIMIT ?4;

-- name: latest
SELECT tenant, seq, type, stream, agent_id, actor, entry_id, tier, namespace, key, version,
    previous_version, tags, task_id, intent_id, timestamp
FROM events WHERE tenant = ?1 ORDER BY seq DESC LIMIT 1;

-- name: by_entry
SELECT tenant, seq, type, stream, agent_id, actor, entry_id, tier, namespace, key, version,
    previous_version, tags, task_id, intent_id, timestamp
FROM events WHERE tenant = ?1 ORDER BY entry_id, seq;
