-- name: put_vector
INSERT INTO entry_vectors (tenant, entry, model, vector)
SELECT tenant, id, ?2, ?5 FROM entries
WHERE tenant = ?1 AND id = ?3 AND version = ?4 AND sealing_key IS NULL
    AND sensitivity NOT IN ('confidential', 'restricted')
ON CONFLICT (tenant, model, entry) DO UPDATE SET vector = excluded.vector;

-- name: vectors
SELECT entry, vector FROM (SELECT value AS wanted FROM json_each(?3))
CROSS JOIN entry_vectors ON tenant = ?1 AND model = ?2 AND entry = wanted;

-- name: remove_vectors
DELETE FROM entry_vectors
WHERE tenant = ?1 AND entry = ?2
    AND model IN (SELECT model FROM embedding_positions WHERE tenant = ?1);

-- name: remove_uses
DELETE FROM entry_uses WHERE tenant = ?1 AND entry = ?2;

-- name: remove_some_of_model
DELETE FROM entry_vectors
WHERE tenant = ?1 AND model = ?2 AND entry IN (
    SELECT entry FROM entry_vectors WHERE tenant = ?1 AND model = ?2 LIMIT ?3)
RETURNING 1;

-- name: add_uses
INSERT INTO entry_uses (tenant, entry, uses, used_at)
SELECT tenant, id, ?4, ?2 FROM entries WHERE tenant = ?1 AND id = ?3
ON CONFLICT (tenant, entry) DO UPDATE
SET uses = uses + excluded.uses, used_at = coalesce(excluded.used_at, used_at);

-- name: last_uses
SELECT e.id, coalesce(e.kind, ''), e.namespace,
    CASE WHEN coalesce(u.uses, 0) = 0 THEN e.created_at ELSE u.used_at END
FROM (SELECT value AS wanted FROM json_each(?2))
CROSS JOIN entries e ON e.tenant = ?1 AND e.id = wanted
LEFT JOIN entry_uses u ON u.tenant = ?1 AND u.entry = e.id;

-- name: add_outcomes
INSERT INTO entry_uses (tenant, entry, uses, succeeded, failed, helped, harmed)
SELECT tenant, id, 0, ?3, ?4, ?5, ?6 FROM entries WHERE tenant = ?1 AND id = ?2
ON CONFLICT (tenant, entry) DO UPDATE
SET succeeded = coalesce(succeeded, 0) + excluded.succeeded,
    failed = coalesce(failed, 0) + excluded.failed,
    helped = coalesce(helped, 0) + excluded.helped,
    harmed = coalesce(harmed, 0) + excluded.harmed;

-- name: uses
SELECT entry, uses, coalesce(succeeded, 0), coalesce(failed, 0), coalesce(helped, 0),
    coalesce(harmed, 0)
FROM (SELECT value AS wanted FROM json_each(?2))
CROSS JOIN entry_uses ON tenant = ?1 AND entry = wanted;

-- name: put_segment
INSERT INTO index_segments (tenant, owner, tier, first, last, form, entries, listed, content)
SELECT ?1, ?2, ?3, ?4, ?5, ?6, count(*), sum(listed), ?7 FROM entries INDEXED BY entries_by_owner
WHERE tenant = ?1 AND owner = ?2 AND tier = ?3 AND id BETWEEN ?4 AND ?5
HAVING count(*) = (SELECT count(*)
        FROM (SELECT key AS wanted, value AS wanted_version FROM json_each(?8))
        CROSS JOIN entries e
            ON e.tenant = ?1 AND e.id = wanted AND e.version = wanted_version)
    AND count(*) = (SELECT count(*) FROM json_each(?8))
RETURNING 1;

-- name: next_segment
SELECT first, last, content FROM index_segments s
WHERE tenant = ?1 AND owner = ?2 AND tier = ?3 AND first > ?5 AND form = ?4
    AND entries = (SELECT count(*) FROM entries e INDEXED BY entries_by_owner
        WHERE e.tenant = ?1 AND e.owner = ?2 AND e.tier = ?3 AND e.id BETWEEN s.first AND s.last)
ORDER BY first LIMIT 1;
