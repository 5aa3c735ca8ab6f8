-- What is looked for in lists is bound as arrays, and said twice where there are several, so that a
-- plan that was made on small tables looks it up too.

-- name: put_vector
INSERT INTO entry_vectors (tenant, entry, model, vector)
SELECT $1, e.id, $2, made.vector
FROM unnest($3::text[], $4::bigint[], $5::bytea[]) AS made (entry, version, vector)
JOIN entries e ON e.tenant = $1 AND e.id = made.entry
WHERE e.id = ANY($3::text[]) AND e.version = made.version AND e.sealing_key IS NULL
    AND e.sensitivity <> ALL('{confidential, restricted}'::text[])
ON CONFLICT (tenant, model, entry) DO UPDATE SET vector = excluded.vector;

-- name: vectors
SELECT entry, vector FROM entry_vectors
WHERE tenant = $1 AND model = $2 AND entry = ANY($3::text[]);

-- name: remove_vectors
DELETE FROM entry_vectors
WHERE tenant = $1 AND entry = ANY($2::text[])
    AND model = ANY(ARRAY(SELECT model FROM embedding_positions WHERE tenant = $1));

-- name: put_segment
INSERT INTO index_segments (tenant, owner, tier, first, last, form, entries, listed, content)
SELECT $1, $2, $3, $4, $5, $6, count(*), sum(listed), $7 FROM entries
WHERE tenant = $1 AND owner = $2 AND tier = $3 AND created_at >= '' AND id BETWEEN $4 AND $5
HAVING count(*) = (SELECT count(*) FROM unnest($8::text[], $9::bigint[]) AS made (id, version)
    JOIN entries e ON e.tenant = $1 AND e.id = made.id AND e.version = made.version
    WHERE e.id = ANY($8::text[]))
    AND count(*) = cardinality($8::text[])
RETURNING 1;

-- name: next_segment
SELECT first, last, content FROM index_segments s
WHERE tenant = $1 AND owner = $2 AND tier = $3 AND first > $5 AND form = $4
    AND entries = (SELECT count(*) FROM entries e WHERE e.tenant = $1 AND e.owner = $2
        AND e.tier = $3 AND e.created_at >= '' AND e.id BETWEEN s.first AND s.last)
ORDER BY first LIMIT 1;

-- name: remove_some_of_model
DELETE FROM entry_vectors
WHERE tenant = $1 AND model = $2 AND entry = ANY(ARRAY(
    SELECT entry FROM entry_vectors WHERE tenant = $1 AND model = $2 ORDER BY entry LIMIT $3))
RETURNING 1;

-- name: add_uses
INSERT INTO entry_uses (tenant, entry, uses, used_at)
SELECT $1, e.id, noted.uses, $2::text
FROM unnest($3::text[], $4::bigint[]) AS noted (entry, uses)
JOIN entries e ON e.tenant = $1 AND e.id = noted.entry
WHERE e.id = ANY($3::text[])
ON CONFLICT (tenant, entry) DO UPDATE
SET uses = entry_uses.uses + excluded.uses,
    used_at = coalesce(excluded.used_at, entry_uses.used_at);

-- name: last_uses
SELECT e.id, coalesce(e.kind, ''), e.namespace,
    CASE WHEN coalesce(u.uses, 0) = 0 THEN e.created_at ELSE u.used_at END
FROM entries e LEFT JOIN entry_uses u ON u.tenant = $1 AND u.entry = e.id
    AND u.entry = ANY($2::text[])
WHERE e.tenant = $1 AND e.id = ANY($2::text[]);

-- name: add_outcomes
INSERT INTO entry_uses (tenant, entry, uses, succeeded, failed, helped, harmed)
SELECT $1, e.id, 0, noted.succeeded, noted.failed, noted.helped, noted.harmed
FROM unnest($2::text[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[])
    AS noted (entry, succeeded, failed, helped, harmed)
JOIN entries e ON e.tenant = $1 AND e.id = noted.entry
WHERE e.id = ANY($2::text[])
ON CONFLICT (tenant, entry) DO UPDATE
SET succeeded = coalesce(entry_uses.succeeded, 0) + excluded.succeeded,
    failed = coalesce(entry_uses.failed, 0) + excluded.failed,
    helped = coalesce(entry_uses.helped, 0) + excluded.helped,
    harmed = coalesce(entry_uses.harmed, 0) + excluded.harmed;

-- name: uses
SELECT entry, uses, coalesce(succeeded, 0), coalesce(failed, 0), coalesce(helped, 0),
    coalesce(harmed, 0)
FROM entry_uses WHERE tenant = $1 AND entry = ANY($2::text[]);
