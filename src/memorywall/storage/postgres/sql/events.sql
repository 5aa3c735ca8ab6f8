-- name: containing
SELECT {columns} FROM events e
JOIN event_contents c ON c.tenant = $1 AND c.seq = e.seq
WHERE e.tenant = $1 AND e.seq > $3 AND ($5::text IS NULL OR e.type = $5)
    AND EXISTS (SELECT 1 FROM unnest($2::text[]) AS t (sought)
        WHERE position(convert_to(sought, 'UTF8') IN c.content) > 0)
ORDER BY e.seq LIMIT $4;

-- name: list_forgotten
SELECT {columns} FROM events e
JOIN event_contents c ON c.tenant = $1 AND c.seq = e.seq
WHERE e.tenant = $1 AND e.type = 'subject.forgotten' AND e.timestamp >= $3
    AND EXISTS (SELECT 1 FROM unnest($2::text[]) AS t (sought)
        WHERE position(convert_to(sought, 'UTF8') IN c.content) > 0)
ORDER BY e.timestamp;

-- name: list_of_entries
-- In the order of the key, without an index of its own, which every append would pay for.
-- The first column, which is in a row without a change too, is the end of the log.
SELECT log.seq, e.seq, e.entry_id, e.tier, e.agent_id, e.version, e.type, n.kind
FROM (SELECT coalesce(max(seq), 0) AS seq FROM events WHERE tenant = $1) log
LEFT JOIN (
    SELECT tenant, seq, entry_id, tier, agent_id, version, type FROM events
    WHERE tenant = $1 AND seq > $2 AND tier <> ''
        AND type IN ('memory.created', 'memory.updated', 'memory.deleted', 'memory.archived',
            'memory.evicted', 'memory.expired')
    ORDER BY seq LIMIT $3
) e ON e.tenant = $1
LEFT JOIN entries n ON n.tenant = $1 AND n.id = e.entry_id
ORDER BY e.seq;
