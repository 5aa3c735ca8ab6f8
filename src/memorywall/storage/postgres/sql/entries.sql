-- Statements are planned once, for whatever is bound and perhaps before there is anything to plan
-- for. So none leaves a choice that could turn out badly: lists are looked up as `= ANY` an array,
-- `created_at >= ''` always holds and lets the index by owner in, and an order by the last column
-- of the index by name, of which there is one value, keeps others out.

-- name: get_many
SELECT {columns} FROM entries WHERE tenant = $1 AND id = ANY($2::text[]);

-- name: find
SELECT {columns} FROM entries
WHERE tenant = $1 AND tier = $2 AND owner = $3 AND namespace = $4 AND key >= $5 AND key <= $5
    AND key >= '' AND coalesce(session_id, '') = $6
ORDER BY key;

-- name: find_in
SELECT {columns} FROM entries
WHERE tenant = $1 AND tier = ANY($2::text[]) AND owner IN ('', $3) AND namespace = $4
    AND key >= $5 AND key <= $5 AND key >= '' AND coalesce(session_id, '') = '';

-- name: old_index
-- The index of before names belonged to sessions; another takes its name when it goes.
SELECT 1 FROM pg_class WHERE oid = to_regclass('entries_by_session_name');

-- name: in_any_session
SELECT 1 FROM entries
WHERE tenant = $1 AND tier = $2 AND owner = $3 AND namespace = $4 AND key >= $5 AND key <= $5
    AND key >= '';

-- name: remove
WITH removed AS (
    DELETE FROM entries WHERE tenant = $1 AND id = $2 RETURNING owner, tier, tags, size, pinned, listed
), untagged AS (
    DELETE FROM entry_tags
    WHERE tenant = $1 AND owner = (SELECT owner FROM removed)
        AND tag = ANY(ARRAY(SELECT json_array_elements_text(tags::json) FROM removed))
        AND entry = $2
), counted AS (
    UPDATE usage SET entries = entries - 1, bytes = bytes - (SELECT size FROM removed),
        pinned = pinned - (SELECT pinned FROM removed)
    WHERE tenant = $1 AND owner = (SELECT owner FROM removed WHERE listed = 1)
        AND tier = (SELECT tier FROM removed)
), unpointed AS (
    DELETE FROM edges WHERE tenant = $1 AND entry = $2 AND entry >= ''
), unkept AS (
    DELETE FROM entry_history WHERE tenant = $1 AND entry = $2
), forgotten AS (
    DELETE FROM entry_vectors
    WHERE tenant = $1 AND entry = $2
        AND model = ANY(ARRAY(SELECT model FROM embedding_positions WHERE tenant = $1))
), unused AS (
    DELETE FROM entry_uses WHERE tenant = $1 AND entry = $2
), uncounted AS (
    DELETE FROM session_counters WHERE tenant = $1 AND session_id = $2
), detached AS (
    DELETE FROM attachments WHERE tenant = $1 AND entry_id = $2 RETURNING id
), emptied AS (
    DELETE FROM attachment_pieces
    WHERE tenant = $1 AND attachment_id = ANY(ARRAY(SELECT id FROM detached))
), unlinked AS (
    DELETE FROM kept_reply_entries WHERE tenant = $1 AND entry_id = $2 RETURNING principal, key
), blanked AS (
    UPDATE kept_replies SET reply = NULL
    WHERE tenant = $1 AND principal = ANY(ARRAY(SELECT principal FROM unlinked))
        AND key = ANY(ARRAY(SELECT key FROM unlinked))
        AND (principal, key) IN (SELECT principal, key FROM unlinked)
)
SELECT (SELECT s.last >= $2 FROM index_segments s
    WHERE s.tenant = $1 AND s.owner = removed.owner AND s.tier = removed.tier AND s.first <= $2
    ORDER BY s.first DESC LIMIT 1)
FROM removed;

-- name: evictable
-- What every `first_to_evict` statement asks of an entry besides its owner and tier.
($4::text IS NULL OR namespace = $4) AND ($6::text IS NULL OR task_id = $6)
    AND (expires_at IS NULL OR expires_at > $7) AND pinned = 0 AND listed = 1
    AND (kind IS NULL OR kind <> ALL($8::text[]))
    AND ($9::text[] IS NULL OR id IN (SELECT entry FROM edges WHERE tenant = $1
        AND relation = 'about' AND target = ANY($9::text[])));

-- name: first_to_evict_lru_episodic
-- The index is of this tier alone and has the order, so nothing is sorted.
SELECT {columns} FROM entries
WHERE tenant = $1 AND owner = $2 AND tier = 'episodic' AND tier = $3
    AND {evictable}
ORDER BY priority, accessed_at, id LIMIT $5;

-- name: first_to_evict_lru
SELECT {columns} FROM entries
WHERE tenant = $1 AND owner = $2 AND tier = $3 AND created_at >= ''
    AND {evictable}
ORDER BY priority, accessed_at, id LIMIT $5;

-- name: first_to_evict_lfu
SELECT {columns} FROM entries
WHERE tenant = $1 AND owner = $2 AND tier = $3 AND created_at >= ''
    AND {evictable}
ORDER BY priority, coalesce((SELECT uses FROM entry_uses u
    WHERE u.tenant = $1 AND u.entry = entries.id), 0), accessed_at, id LIMIT $5;

-- name: first_to_evict_oldest
SELECT {columns} FROM entries
WHERE tenant = $1 AND owner = $2 AND tier = $3 AND created_at >= ''
    AND {evictable}
ORDER BY priority, created_at, id LIMIT $5;

-- name: first_to_evict_utility
SELECT {columns} FROM entries
WHERE tenant = $1 AND owner = $2 AND tier = $3 AND created_at >= ''
    AND {evictable}
ORDER BY priority, accessed_at::timestamptz + make_interval(days => least(32, coalesce((
    SELECT uses FROM entry_uses u WHERE u.tenant = $1 AND u.entry = entries.id), 0))::integer), id
LIMIT $5;

-- name: touch
UPDATE entries SET accessed_at = noted.at
FROM unnest($2::text[], $3::text[]) AS noted (id, at)
WHERE entries.tenant = $1 AND entries.id = ANY($2::text[]) AND entries.id = noted.id
    AND entries.accessed_at < noted.at;

-- name: tasks
SELECT DISTINCT task_id FROM entries
WHERE tenant = $1 AND owner = $2 AND tier = $3 AND created_at >= '' AND task_id IS NOT NULL
    AND (expires_at IS NULL OR expires_at > $4)
ORDER BY task_id;

-- name: of_owner
SELECT {columns} FROM entries
WHERE tenant = $1 AND owner = $2 AND tier = $3 AND created_at >= '' AND id > $5 AND id < $6
ORDER BY id LIMIT $4;

-- name: oldest
SELECT created_at FROM entries
WHERE tenant = $1 AND owner = $2 AND tier = $3 AND created_at >= ''
    AND (expires_at IS NULL OR expires_at > $4)
ORDER BY id LIMIT 1;

-- name: newest
SELECT created_at FROM entries
WHERE tenant = $1 AND owner = $2 AND tier = $3 AND created_at >= ''
    AND (expires_at IS NULL OR expires_at > $4)
ORDER BY id DESC LIMIT 1;

-- name: newest_of_session
SELECT {columns} FROM unnest($4::text[], $5::bigint[]) AS wanted (wanted_kind, most)
CROSS JOIN LATERAL (
    SELECT * FROM entries
    WHERE tenant = $1 AND session_id = $2 AND kind = wanted_kind AND owner = $3 AND key > ''
    ORDER BY key DESC LIMIT most
) e ORDER BY kind, key DESC;

-- name: session_owners
SELECT (SELECT owner FROM entries
        WHERE tenant = $1 AND session_id = $2 AND kind = $3 ORDER BY owner, key LIMIT 1),
    (SELECT owner FROM entries
        WHERE tenant = $1 AND session_id = $2 AND kind = $3 ORDER BY owner DESC, key DESC LIMIT 1);

-- name: count_of_session
SELECT count(*) FROM entries WHERE tenant = $1 AND session_id = $2 AND kind = $3;
