-- The order of the columns is that of rows.COLUMNS.
--
-- `rendered` is an entry of table `e` as the JSON text of its `wire.entries.EntryResponse`, in the
-- order of its fields and without those that are as usual; NULL for a sealed value and for an empty
-- one. What a client chose is quoted or is JSON text already. A `verified` that nobody has confirmed
-- is shown as what it counts as, see `records.entry.authority_of`.

-- name: rendered
CASE WHEN e.sealing_key IS NULL AND e.sensitivity IN ('public', 'internal') AND e.size > 0
THEN CAST(format(
    '{"id":%s,"agent_id":%s,"namespace":%s,"key":%s,"value":%s,"memory_type":"%s","scope":{%s},'
        || '"tags":%s,"ttl":%s,"version":%d,"pinned":%s,"priority":"%s","sensitivity":"%s",'
        || '"created_at":"%s","updated_at":"%s","expires_at":%s,"created_by":%s%s,'
        || '"provenance":%s%s}',
    json_quote(e.id), json_quote(e.agent_id), json_quote(e.namespace), json_quote(e.key), e.value,
    e.tier,
    CASE WHEN coalesce(e.task_id, e.intent_id, e.session_id) IS NULL THEN ''
    ELSE substr(concat(
        iif(e.task_id IS NULL, '', ',"task_id":' || json_quote(e.task_id)),
        iif(e.intent_id IS NULL, '', ',"intent_id":' || json_quote(e.intent_id)),
        iif(e.session_id IS NULL, '', ',"session_id":' || json_quote(e.session_id))), 2) END,
    e.tags, json_quote(e.ttl), e.version, iif(e.pinned, 'true', 'false'),
    CASE e.priority WHEN 0 THEN 'low' WHEN 1 THEN 'normal' ELSE 'high' END,
    e.sensitivity, e.created_at, e.updated_at, json_quote(e.expires_at), json_quote(e.created_by),
    iif(e.curated_by IS NULL, '', ',"curated_by":' || json_quote(e.curated_by)),
    iif(instr(e.provenance, '"verified_by":"'), e.provenance,
        replace(e.provenance, '"authority":"verified"', '"authority":"agent_learned"')),
    CASE WHEN e.kind IS NULL AND e.state = 'live' AND e.subjects = '[]' THEN ''
    ELSE concat(
        iif(e.kind IS NULL, '', ',"kind":' || json_quote(e.kind)),
        iif(e.kind_version = 0, '', ',"kind_version":' || e.kind_version),
        iif(e.status IS NULL, '', ',"status":' || json_quote(e.status)),
        iif(e.state = 'live', '', ',"state":' || json_quote(e.state)),
        iif(e.subjects = '[]', '', ',"subjects":' || e.subjects)) END) AS BLOB) END

-- name: get
SELECT {columns} FROM entries
WHERE tenant = ?1 AND id = ?2 AND (expires_at IS NULL OR expires_at > ?3);

-- name: get_many
SELECT {columns} FROM (SELECT value AS wanted FROM json_each(?2))
CROSS JOIN entries ON tenant = ?1 AND id = wanted
WHERE expires_at IS NULL OR expires_at > ?3;

-- name: find
-- Naming the index keeps the planner from weighing a partial index by the tier that is bound, for
-- which it would prepare the statement anew each time.
SELECT {columns} FROM entries INDEXED BY entries_by_name
WHERE tenant = ?1 AND tier = ?2 AND owner = ?3 AND namespace = ?4 AND key = ?5
    AND coalesce(session_id, '') = ?6;

-- name: find_in
SELECT {columns} FROM entries INDEXED BY entries_by_name
WHERE tenant = ?1 AND tier IN (SELECT value FROM json_each(?2)) AND owner IN ('', ?3)
    AND namespace = ?4 AND key = ?5 AND coalesce(session_id, '') = '';

-- name: insert
INSERT INTO entries (tenant, id, tier, owner, agent_id, namespace, key, task_id, intent_id,
    session_id, tags, ttl, expires_at, version, pinned, priority, sensitivity, created_at,
    updated_at, created_by, curated_by, provenance, size, sealing_key, value, kind, kind_version,
    status, state, listed, subjects, edges, due_at, accessed_at)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?,
    ?, ?, ?)
ON CONFLICT (tenant, tier, owner, namespace, key, coalesce(session_id, '')) DO NOTHING
RETURNING number;

-- name: replace
UPDATE entries SET task_id = ?3, intent_id = ?4, session_id = ?5, tags = ?6, ttl = ?7,
    expires_at = ?8, version = ?9, pinned = ?10, priority = ?11, sensitivity = ?12,
    updated_at = ?13, curated_by = ?14, provenance = ?15, size = ?16, sealing_key = ?17,
    value = ?18, kind = ?19, kind_version = ?20, status = ?21, state = ?22, listed = ?23,
    subjects = ?24, edges = ?25, due_at = ?26, accessed_at = ?13
WHERE tenant = ?1 AND id = ?2 AND version = ?27
RETURNING number,
    (SELECT s.last >= entries.id FROM index_segments s
        WHERE s.tenant = entries.tenant AND s.owner = entries.owner AND s.tier = entries.tier
            AND s.first <= entries.id
        ORDER BY s.first DESC LIMIT 1);

-- name: remove
-- The last column says whether an index segment contains the entry.
DELETE FROM entries WHERE tenant = ?1 AND id = ?2
RETURNING number,
    (SELECT s.last >= entries.id FROM index_segments s
        WHERE s.tenant = entries.tenant AND s.owner = entries.owner AND s.tier = entries.tier
            AND s.first <= entries.id
        ORDER BY s.first DESC LIMIT 1);

-- name: count_tag
INSERT INTO tags (tenant, owner, tag, entries) VALUES (?1, ?2, ?3, 1)
ON CONFLICT (tenant, owner, tag) DO UPDATE SET entries = entries + 1
RETURNING number;

-- name: add_tag
INSERT INTO entry_tags (tenant, tag, entry) VALUES (?1, ?2, ?3);

-- name: uncount_tag
UPDATE tags SET entries = entries - 1 WHERE tenant = ?1 AND owner = ?2 AND tag = ?3
RETURNING number, entries;

-- name: remove_tag
DELETE FROM entry_tags WHERE tenant = ?1 AND tag = ?2 AND entry = ?3;

-- name: forget_tag
DELETE FROM tags WHERE tenant = ?1 AND number = ?2;

-- name: add_usage
INSERT INTO usage (tenant, owner, tier, entries, bytes, pinned) VALUES (?, ?, ?, ?, ?, ?)
ON CONFLICT (tenant, owner, tier) DO UPDATE SET entries = entries + excluded.entries,
    bytes = bytes + excluded.bytes, pinned = pinned + excluded.pinned;

-- name: evictable
-- What every `first_to_evict` statement asks of an entry besides its owner and tier.
(?4 IS NULL OR namespace = ?4) AND (?6 IS NULL OR task_id = ?6)
    AND (expires_at IS NULL OR expires_at > ?7) AND pinned = 0 AND listed = 1
    AND (kind IS NULL OR kind NOT IN (SELECT value FROM json_each(?8)))
    AND (?9 IS NULL OR id IN (SELECT entry FROM edges WHERE tenant = ?1 AND relation = 'about'
        AND target IN (SELECT value FROM json_each(?9))));

-- name: first_to_evict_lru_episodic
-- The index is of this tier alone and has the order, so nothing is sorted.
SELECT {columns} FROM entries INDEXED BY entries_by_eviction
WHERE tenant = ?1 AND owner = ?2 AND tier = 'episodic'
    AND {evictable}
ORDER BY priority, accessed_at, id LIMIT ?5;

-- name: first_to_evict_lru
SELECT {columns} FROM entries
WHERE tenant = ?1 AND owner = ?2 AND tier = ?3
    AND {evictable}
ORDER BY priority, accessed_at, id LIMIT ?5;

-- name: first_to_evict_lfu
SELECT {columns} FROM entries
WHERE tenant = ?1 AND owner = ?2 AND tier = ?3
    AND {evictable}
ORDER BY priority, coalesce((SELECT uses FROM entry_uses u
    WHERE u.tenant = ?1 AND u.entry = entries.id), 0), accessed_at, id LIMIT ?5;

-- name: first_to_evict_oldest
SELECT {columns} FROM entries
WHERE tenant = ?1 AND owner = ?2 AND tier = ?3
    AND {evictable}
ORDER BY priority, created_at, id LIMIT ?5;

-- name: first_to_evict_utility
SELECT {columns} FROM entries
WHERE tenant = ?1 AND owner = ?2 AND tier = ?3
    AND {evictable}
ORDER BY priority, strftime('%Y-%m-%dT%H:%M:%fZ', accessed_at, min(32, coalesce((
    SELECT uses FROM entry_uses u WHERE u.tenant = ?1 AND u.entry = entries.id), 0)) || ' days'),
    id
LIMIT ?5;

-- name: touch
UPDATE entries SET accessed_at = ?3 WHERE tenant = ?1 AND id = ?2 AND accessed_at < ?3;

-- name: usage
SELECT entries, bytes, pinned FROM usage WHERE tenant = ?1 AND owner = ?2 AND tier = ?3;

-- name: expired_usage
SELECT count(*), coalesce(sum(size), 0), coalesce(sum(pinned), 0)
FROM entries INDEXED BY entries_by_expiry
WHERE tenant = ?1 AND expires_at <= ?4 AND owner = ?2 AND tier = ?3 AND listed = 1;

-- name: tenant_usage
SELECT coalesce(sum(entries), 0), coalesce(sum(bytes), 0) FROM usage WHERE tenant = ?1;

-- name: expired_tenant_usage
SELECT count(*), coalesce(sum(size), 0) FROM entries INDEXED BY entries_by_expiry
WHERE tenant = ?1 AND expires_at <= ?2 AND listed = 1;

-- name: task_usage
SELECT count(*), coalesce(sum(size), 0) FROM entries INDEXED BY entries_by_task
WHERE tenant = ?1 AND task_id = ?3 AND tier = ?2 AND (expires_at IS NULL OR expires_at > ?4)
    AND listed = 1;

-- name: of_owner
SELECT {columns} FROM entries INDEXED BY entries_by_owner
WHERE tenant = ?1 AND owner = ?2 AND tier = ?3 AND id > ?5 AND id < ?6 ORDER BY id LIMIT ?4;

-- name: namespace_usage
SELECT count(*), coalesce(sum(size), 0) FROM entries INDEXED BY entries_by_name
WHERE tenant = ?1 AND tier = ?2 AND owner = '' AND namespace = ?3
    AND (expires_at IS NULL OR expires_at > ?4) AND listed = 1;

-- name: namespace_usage_shared
SELECT count(*), coalesce(sum(size), 0) FROM entries INDEXED BY entries_by_scope
WHERE tenant = ?1 AND tier = 'shared' AND owner = '' AND namespace = ?3
    AND (expires_at IS NULL OR expires_at > ?4) AND listed = 1;

-- name: tasks
SELECT DISTINCT task_id FROM entries
WHERE tenant = ?1 AND owner = ?2 AND tier = ?3 AND task_id IS NOT NULL
    AND (expires_at IS NULL OR expires_at > ?4)
ORDER BY task_id;

-- name: oldest
SELECT created_at FROM entries INDEXED BY entries_by_owner
WHERE tenant = ?1 AND owner = ?2 AND tier = ?3 AND (expires_at IS NULL OR expires_at > ?4)
ORDER BY id LIMIT 1;

-- name: newest
SELECT created_at FROM entries INDEXED BY entries_by_owner
WHERE tenant = ?1 AND owner = ?2 AND tier = ?3 AND (expires_at IS NULL OR expires_at > ?4)
ORDER BY id DESC LIMIT 1;

-- name: session_owners
SELECT (SELECT owner FROM entries INDEXED BY entries_by_session
        WHERE tenant = ?1 AND session_id = ?2 AND kind = ?3 ORDER BY owner LIMIT 1),
    (SELECT owner FROM entries INDEXED BY entries_by_session
        WHERE tenant = ?1 AND session_id = ?2 AND kind = ?3 ORDER BY owner DESC LIMIT 1);

-- name: count_of_session
SELECT count(*) FROM entries INDEXED BY entries_by_session
WHERE tenant = ?1 AND session_id = ?2 AND kind = ?3;

-- name: remove_session_counters
DELETE FROM session_counters WHERE tenant = ?1 AND session_id = ?2;

-- name: note_removal
INSERT INTO counters (tenant, name, value) VALUES (?1, 'removals', 1)
ON CONFLICT (tenant, name) DO UPDATE SET value = value + 1;

-- name: remove_attachment_pieces
DELETE FROM attachment_pieces WHERE tenant = ?1 AND attachment_id IN (
    SELECT id FROM attachments INDEXED BY attachments_by_entry WHERE tenant = ?1 AND entry_id = ?2);

-- name: remove_attachments
DELETE FROM attachments WHERE tenant = ?1 AND entry_id = ?2;
