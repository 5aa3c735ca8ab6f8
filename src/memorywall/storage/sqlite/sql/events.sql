-- name: append
INSERT INTO events (tenant, seq, format, id, type, timestamp, entry_id, tier, version,
    previous_version, task_id, intent_id, digest_key, digest, previous, stream, agent_id)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: append_content
INSERT INTO event_contents (tenant, seq, salt, content) VALUES (?, ?, ?, ?);

-- name: containing
SELECT {columns} FROM events e
JOIN event_contents c ON c.tenant = ?1 AND c.seq = e.seq
WHERE e.tenant = ?1 AND e.seq > ?3 AND (?5 IS NULL OR e.type = ?5)
    AND EXISTS (SELECT 1 FROM json_each(?2) WHERE instr(c.content, CAST(value AS BLOB)))
ORDER BY e.seq LIMIT ?4;

-- name: list_forgotten
SELECT {columns} FROM events e INDEXED BY events_forgotten
JOIN event_contents c ON c.tenant = ?1 AND c.seq = e.seq
WHERE e.tenant = ?1 AND e.type = 'subject.forgotten' AND e.timestamp >= ?3
    AND EXISTS (SELECT 1 FROM json_each(?2) WHERE instr(c.content, CAST(value AS BLOB)))
ORDER BY e.timestamp;

-- name: list_of_entries
-- In the order of the key, without an index of its own, which every append would pay for.
SELECT e.seq, e.entry_id, e.tier, e.agent_id, e.version, e.type, n.kind
FROM events e LEFT JOIN entries n ON n.tenant = ?1 AND n.id = e.entry_id
WHERE e.tenant = ?1 AND e.seq > ?2 AND e.tier <> ''
    AND e.type IN ('memory.created', 'memory.updated', 'memory.deleted', 'memory.archived',
        'memory.evicted', 'memory.expired')
ORDER BY e.seq LIMIT ?3;

-- name: end_of_log
SELECT coalesce(max(seq), 0) FROM events WHERE tenant = ?1;
