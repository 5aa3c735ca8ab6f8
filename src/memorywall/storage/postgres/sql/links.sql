-- name: about
SELECT body, value FROM entry_history
WHERE tenant = $1 AND body::jsonb -> 'subjects' ?| $2::text[]
ORDER BY entry, version LIMIT $3;

-- name: as_of
SELECT DISTINCT ON (entry) body, value FROM entry_history
WHERE tenant = $1 AND entry = ANY($2::text[]) AND replaced_at > $3
ORDER BY entry, version;

-- name: blank_reply
UPDATE kept_replies r SET reply = NULL
FROM unnest($2::text[], $3::text[]) AS unlinked (principal, key)
WHERE r.tenant = $1 AND r.principal = unlinked.principal AND r.key = unlinked.key;

-- name: between_each
SELECT e.target, e.entry
FROM unnest($3::text[], $4::text[]) WITH ORDINALITY AS asked (first, last, place)
CROSS JOIN LATERAL (
    SELECT target, entry FROM edges
    WHERE tenant = $1 AND relation = $2 AND target >= asked.first AND target < asked.last
    ORDER BY target, entry LIMIT $5) e
ORDER BY asked.place, e.target, e.entry;
