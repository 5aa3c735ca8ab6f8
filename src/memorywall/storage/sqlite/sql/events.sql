-- An event is an envelope and, until it is erased, a content: see `records/event_chain.py`.

-- name: columns
e.tenant, e.seq, e.type, e.entry_id, e.tier, e.version, e.previous_version, e.task_id, e.intent_id,
e.timestamp, c.content

-- name: envelope
e.tenant, e.seq, e.format, e.id, e.type, e.timestamp, e.entry_id, e.tier, e.version,
e.previous_version, e.task_id, e.intent_id, e.digest_key, e.digest, e.previous, e.stream, e.agent_id

-- name: last_envelope
SELECT {envelope}, NULL, NULL FROM events e WHERE e.tenant = ?1 ORDER BY e.seq DESC LIMIT 1;

-- name: log
SELECT {envelope}, c.salt, c.content FROM events e
LEFT JOIN event_contents c ON c.tenant = ?1 AND c.seq = e.seq
WHERE e.tenant = ?1 ORDER BY e.seq;

-- name: append
INSERT INTO events (tenant, seq, format, id, type, timestamp, entry_id, tier, version,
    previous_version, task_id, intent_id, digest_key, digest, previous, stream, agent_id)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: append_content
INSERT INTO event_contents (tenant, seq, salt, content) VALUES (?, ?, ?, ?);

-- name: erase_content
DELETE FROM event_contents
WHERE tenant = ?1 AND seq IN (SELECT value FROM json_each(?2));

-- name: clear_columns
UPDATE events SET stream = '', agent_id = '',
    task_id = CASE WHEN seq IN (SELECT value FROM json_each(?3)) THEN NULL ELSE task_id END,
    intent_id = CASE WHEN seq IN (SELECT value FROM json_each(?4)) THEN NULL ELSE intent_id END
WHERE tenant = ?1 AND seq IN (SELECT value FROM json_each(?2));

-- name: contents
SELECT seq, content FROM event_contents
WHERE tenant = ?1 AND seq IN (SELECT value FROM json_each(?2));

-- name: list
SELECT {columns} FROM events e INDEXED BY events_by_stream
LEFT JOIN event_contents c ON c.tenant = ?1 AND c.seq = e.seq
WHERE e.tenant = ?1 AND e.stream = ?2 AND e.seq > ?3 ORDER BY e.seq LIMIT ?4;

-- name: list_from
SELECT {columns} FROM events e
LEFT JOIN event_contents c ON c.tenant = ?1 AND c.seq = e.seq
WHERE e.tenant = ?1 AND e.seq >= ?2 ORDER BY e.seq LIMIT ?3;

-- name: containing
SELECT {columns} FROM events e
JOIN event_contents c ON c.tenant = ?1 AND c.seq = e.seq
WHERE e.tenant = ?1 AND e.seq > ?3 AND (?5 IS NULL OR e.type = ?5)
    AND EXISTS (SELECT 1 FROM json_each(?2) WHERE instr(c.content, CAST(value AS BLOB)))
ORDER BY e.seq LIMIT ?4;

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

-- name: list_of_intent
SELECT {columns} FROM events e INDEXED BY events_by_intent
LEFT JOIN event_contents c ON c.tenant = ?1 AND c.seq = e.seq
WHERE e.tenant = ?1 AND e.intent_id = ?2 AND e.seq > ?3
    AND (?5 IS NULL OR e.type = ?5) AND (?6 IS NULL OR e.timestamp >= ?6)
ORDER BY e.seq LIMIT ?4;

-- name: latest
SELECT {columns} FROM events e
LEFT JOIN event_contents c ON c.tenant = ?1 AND c.seq = e.seq
WHERE e.tenant = ?1 ORDER BY e.seq DESC LIMIT 1;

-- name: by_entry
SELECT {columns} FROM events e
LEFT JOIN event_contents c ON c.tenant = ?1 AND c.seq = e.seq
WHERE e.tenant = ?1 ORDER BY e.entry_id, e.seq;

-- name: legacy
SELECT tenant, seq, type, stream, agent_id, actor, entry_id, tier, namespace, key, version,
    previous_version, tags, task_id, intent_id, timestamp, data
FROM legacy_events WHERE tenant = ?1 ORDER BY seq LIMIT ?2;

-- name: drop_legacy
DELETE FROM legacy_events WHERE tenant = ?1 AND seq <= ?2;

-- name: of_entries
SELECT seq FROM events
WHERE tenant = ?1 AND entry_id IN (SELECT value FROM json_each(?2)) ORDER BY seq;
