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

-- name: erase_content
DELETE FROM event_contents WHERE tenant = ?1 AND seq IN {numbers ?2};

-- name: clear_columns
UPDATE events SET stream = '', agent_id = '',
    task_id = CASE WHEN seq IN {numbers ?3} THEN NULL ELSE task_id END,
    intent_id = CASE WHEN seq IN {numbers ?4} THEN NULL ELSE intent_id END
WHERE tenant = ?1 AND seq IN {numbers ?2};

-- name: contents
SELECT seq, content FROM event_contents WHERE tenant = ?1 AND seq IN {numbers ?2};

-- name: list
SELECT {columns} FROM events e INDEXED BY events_by_stream
LEFT JOIN event_contents c ON c.tenant = ?1 AND c.seq = e.seq
WHERE e.tenant = ?1 AND e.stream = ?2 AND e.seq > ?3 ORDER BY e.seq LIMIT ?4;

-- name: list_from
SELECT {columns} FROM events e
LEFT JOIN event_contents c ON c.tenant = ?1 AND c.seq = e.seq
WHERE e.tenant = ?1 AND e.seq >= ?2 ORDER BY e.seq LIMIT ?3;

-- name: list_of_intent
SELECT {columns} FROM events e INDEXED BY events_by_intent
LEFT JOIN event_contents c ON c.tenant = ?1 AND c.seq = e.seq
WHERE e.tenant = ?1 AND e.intent_id = ?2 AND e.seq > ?3
    AND (CAST(?5 AS text) IS NULL OR e.type = ?5)
    AND (CAST(?6 AS text) IS NULL OR e.timestamp >= ?6)
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
SELECT seq FROM events WHERE tenant = ?1 AND entry_id IN {list ?2} ORDER BY seq;
