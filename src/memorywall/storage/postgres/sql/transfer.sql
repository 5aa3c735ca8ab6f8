-- What a copy needs beside the statements that are made from the list of tables.

-- name: enter
SELECT set_config('memorywall.tenant', $1, true), set_config('memorywall.registry', $2, true);

-- name: tenants
SELECT name FROM tenants ORDER BY name;

-- name: end_of_log
SELECT coalesce(max(seq), 0) FROM events WHERE tenant = $1;

-- name: mark
SELECT h.key_changes, h.seq, h.commits
FROM tenants t LEFT JOIN heads h ON h.tenant = t.name WHERE t.name = $1;

-- name: schema
SELECT coalesce(max(number), 0) FROM migrations;

-- name: servers
SELECT count(*) FROM pg_stat_activity
WHERE datname = current_database() AND application_name ~ $1
    AND pid <> pg_backend_pid();

-- name: unfinished
SELECT tenant FROM restores ORDER BY tenant;

-- name: mark_unfinished
INSERT INTO restores (tenant) VALUES ($1) ON CONFLICT (tenant) DO NOTHING;

-- name: unmark_unfinished
DELETE FROM restores WHERE tenant = $1;

-- name: lock
INSERT INTO heads (tenant, seq, commits, key_changes) VALUES ($1, 0, 1, 0)
ON CONFLICT (tenant) DO UPDATE SET commits = heads.commits + 1;

-- name: end_log
UPDATE heads SET seq = (SELECT coalesce(max(seq), 0) FROM events WHERE tenant = $1), hash = NULL
WHERE tenant = $1;

-- name: note_key_change
UPDATE heads SET key_changes = key_changes + 1 WHERE tenant = $1;

-- name: put_tenant
INSERT INTO tenants (name, created_at) VALUES ($1, $2)
ON CONFLICT (name) DO UPDATE SET created_at = excluded.created_at;

-- name: remove_tenant
DELETE FROM tenants WHERE name = $1;

-- name: remove_head
DELETE FROM heads WHERE tenant = $1;

-- name: remove_writers
DELETE FROM writers WHERE tenant = $1;

-- name: remove_entries
DELETE FROM entries WHERE tenant = $1 AND id = ANY($2::text[])
RETURNING id, owner, tier, tags, size, pinned, listed;

-- name: remove_entry_by_name
DELETE FROM entries
WHERE tenant = $1 AND tier = $2 AND owner = $3 AND namespace = $4 AND key = $5
    AND coalesce(session_id, '') = coalesce($6, '')
RETURNING id, owner, tier, tags, size, pinned, listed;

-- name: untag
DELETE FROM entry_tags WHERE tenant = $1 AND owner = $2 AND tag = $3 AND entry = $4;

-- name: tag
INSERT INTO entry_tags (tenant, owner, tag, entry)
SELECT $1, new.* FROM unnest($2::text[], $3::text[], $4::text[]) AS new (owner, tag, entry);

-- name: unlink
DELETE FROM edges WHERE tenant = $1 AND entry = ANY($2::text[]) AND entry >= '';

-- name: link
INSERT INTO edges (tenant, relation, target, entry)
SELECT $1, new.* FROM unnest($2::text[], $3::text[], $4::text[]) AS new (relation, target, entry)
ON CONFLICT DO NOTHING;

-- name: count
INSERT INTO usage (tenant, owner, tier, entries, bytes, pinned)
SELECT $1, new.* FROM unnest($2::text[], $3::text[], $4::bigint[], $5::bigint[], $6::bigint[])
    AS new (owner, tier, entries, bytes, pinned)
ON CONFLICT (tenant, owner, tier) DO UPDATE SET entries = usage.entries + excluded.entries,
    bytes = usage.bytes + excluded.bytes, pinned = usage.pinned + excluded.pinned;

-- name: uncount
DELETE FROM usage WHERE tenant = $1 AND entries = 0;

-- name: not_chained
SELECT 1 FROM legacy_events WHERE tenant = $1 LIMIT 1;
