-- What is looked for in lists is bound as arrays, and said twice where there are several, so that a
-- plan that was made on small tables looks it up too.

-- name: begin_model
INSERT INTO embedding_positions (tenant, model, position, holder, held_until)
VALUES ($1, $2, 0, '', '')
ON CONFLICT (tenant, model) DO NOTHING;

-- name: put_vectors
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

-- name: remove_segments
DELETE FROM index_segments
WHERE tenant = $1 AND owner = $2 AND tier = $3 AND first <= $5 AND last >= $4;

-- name: put_segment
INSERT INTO index_segments (tenant, owner, tier, first, last, form, entries, listed, content)
SELECT $1, $2, $3, $4, $5, $6, count(*), sum(listed), $9 FROM entries
WHERE tenant = $1 AND owner = $2 AND tier = $3 AND created_at >= '' AND id BETWEEN $4 AND $5
HAVING count(*) = (SELECT count(*) FROM unnest($7::text[], $8::bigint[]) AS made (id, version)
    JOIN entries e ON e.tenant = $1 AND e.id = made.id AND e.version = made.version
    WHERE e.id = ANY($7::text[]))
    AND count(*) = cardinality($7::text[])
RETURNING 1;

-- name: next_segment
SELECT first, last, content FROM index_segments s
WHERE tenant = $1 AND owner = $2 AND tier = $3 AND first > $5 AND form = $4
    AND entries = (SELECT count(*) FROM entries e WHERE e.tenant = $1 AND e.owner = $2
        AND e.tier = $3 AND e.created_at >= '' AND e.id BETWEEN s.first AND s.last)
ORDER BY first LIMIT 1;

-- name: without_segment
SELECT owner, tier FROM usage u
WHERE tenant = $1 AND (owner, tier) > ($4, $5) AND entries - coalesce((
    SELECT sum(s.listed) FROM index_segments s
    WHERE s.tenant = $1 AND s.owner = u.owner AND s.tier = u.tier AND s.form = $2), 0) >= $3
ORDER BY owner, tier LIMIT 1;

-- name: remove_all_segments
DELETE FROM index_segments WHERE tenant = $1;

-- name: begin_again
UPDATE embedding_positions SET position = 0, holder = '', held_until = ''
WHERE tenant = $1 AND (position > 0 OR holder > '');

-- name: other_models
SELECT model FROM embedding_positions WHERE tenant = $1 AND model <> $2;

-- name: remove_some_of_model
DELETE FROM entry_vectors
WHERE tenant = $1 AND model = $2 AND entry = ANY(ARRAY(
    SELECT entry FROM entry_vectors WHERE tenant = $1 AND model = $2 ORDER BY entry LIMIT $3))
RETURNING 1;

-- name: forget_position
UPDATE embedding_positions SET position = 0, holder = '', held_until = ''
WHERE tenant = $1 AND model = $2;

-- name: forget_model
DELETE FROM embedding_positions
WHERE tenant = $1 AND model = $2 AND NOT EXISTS (
    SELECT 1 FROM entry_vectors WHERE tenant = $1 AND model = $2);

-- name: position
SELECT position FROM embedding_positions WHERE tenant = $1 AND model = $2;

-- name: acquire_lease
INSERT INTO embedding_positions (tenant, model, position, holder, held_until)
VALUES ($1, $2, 0, $3, $5)
ON CONFLICT (tenant, model) DO UPDATE SET holder = excluded.holder, held_until = excluded.held_until
WHERE embedding_positions.tenant = $1
    AND (embedding_positions.holder = excluded.holder OR embedding_positions.held_until <= $4)
RETURNING position;

-- name: advance
UPDATE embedding_positions SET position = $4 WHERE tenant = $1 AND model = $2 AND holder = $3
RETURNING 1;

-- name: add_uses
INSERT INTO entry_uses (tenant, entry, uses, used_at)
SELECT $1, e.id, noted.uses, $4::text
FROM unnest($2::text[], $3::bigint[]) AS noted (entry, uses)
JOIN entries e ON e.tenant = $1 AND e.id = noted.entry
WHERE e.id = ANY($2::text[])
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

-- name: forget_models
DELETE FROM embedding_positions WHERE tenant = $1;
