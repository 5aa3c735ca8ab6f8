-- The order of the bindings of `keep` is that of rows.history_to_row.

-- name: add_edge
INSERT INTO edges (tenant, relation, target, entry) VALUES (?1, ?2, ?3, ?4)
ON CONFLICT DO NOTHING;

-- name: remove_edge
DELETE FROM edges WHERE tenant = ?1 AND relation = ?2 AND target = ?3 AND entry = ?4;

-- name: remove_edges
DELETE FROM edges WHERE tenant = ?1 AND entry = ?2;

-- name: keep
INSERT INTO entry_history (tenant, entry, version, replaced_at, body, value)
VALUES (?1, ?2, ?3, ?4, ?5, ?6);

-- name: forget
DELETE FROM entry_history WHERE tenant = ?1 AND entry = ?2;

-- name: about
SELECT body, value FROM entry_history
WHERE tenant = ?1 AND EXISTS (
    SELECT 1 FROM json_each(body, '$.subjects')
    WHERE json_each.value IN (SELECT value FROM json_each(?2)))
ORDER BY entry, version LIMIT ?3;

-- The planner would read the edges of all entries in order: `CROSS JOIN` begins with the targets.
-- name: sources
SELECT DISTINCT e.entry
FROM (SELECT value AS wanted FROM json_each(?3))
CROSS JOIN edges e ON e.tenant = ?1 AND e.relation = ?2 AND e.target = wanted AND e.entry > ?4
ORDER BY e.entry LIMIT ?5;

-- name: as_of
SELECT h.entry, min(h.version), h.body, h.value
FROM (SELECT value AS wanted FROM json_each(?2))
CROSS JOIN entry_history h ON h.tenant = ?1 AND h.entry = wanted
WHERE h.replaced_at > ?3
GROUP BY h.entry;

-- name: blank_reply
UPDATE kept_replies SET reply = NULL WHERE tenant = ?1 AND principal = ?2 AND key = ?3;
