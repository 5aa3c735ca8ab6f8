-- Edges and earlier versions. `entry >= ''` always holds and lets the index by entry in.

-- name: targets
SELECT relation, target FROM edges
WHERE tenant = $1 AND entry = $2 AND entry >= '' ORDER BY relation, target;

-- name: sources
SELECT DISTINCT entry FROM edges
WHERE tenant = $1 AND relation = $2 AND target = ANY($3::text[]) AND entry > $4
ORDER BY entry LIMIT $5;

-- name: version
SELECT body, value FROM entry_history WHERE tenant = $1 AND entry = $2 AND version = $3;

-- name: versions
SELECT body, value FROM entry_history WHERE tenant = $1 AND entry = $2 ORDER BY version;

-- name: earlier
SELECT body, value FROM entry_history WHERE tenant = $1 AND entry = $2 AND version < $3
ORDER BY version DESC LIMIT $4;

-- name: about
SELECT body, value FROM entry_history
WHERE tenant = $1 AND body::jsonb -> 'subjects' ?| $2::text[]
ORDER BY entry, version LIMIT $3;

-- name: remove_versions
WITH unlinked AS (
    DELETE FROM kept_reply_entries WHERE tenant = $1 AND entry_id = $2 RETURNING principal, key
), blanked AS (
    UPDATE kept_replies SET reply = NULL
    WHERE tenant = $1 AND principal = ANY(ARRAY(SELECT principal FROM unlinked))
        AND key = ANY(ARRAY(SELECT key FROM unlinked))
        AND (principal, key) IN (SELECT principal, key FROM unlinked)
), unkept AS (
    DELETE FROM entry_history WHERE tenant = $1 AND entry = $2 AND version = ANY($3::bigint[])
)
SELECT 1;

-- name: as_of
SELECT DISTINCT ON (entry) body, value FROM entry_history
WHERE tenant = $1 AND entry = ANY($2::text[]) AND replaced_at > $3
ORDER BY entry, version;

-- name: reseal
UPDATE entry_history SET body = $4, value = $5
WHERE tenant = $1 AND entry = $2 AND version = $3 RETURNING 1;
