-- name: link
INSERT INTO kept_reply_entries (tenant, entry_id, principal, key) VALUES (?1, ?2, ?3, ?4)
ON CONFLICT DO NOTHING;

-- name: remove_links
DELETE FROM kept_reply_entries WHERE tenant = ?1 AND principal = ?2 AND key IN (
    SELECT key FROM kept_replies WHERE tenant = ?1 AND principal = ?2 ORDER BY key LIMIT ?3);

-- name: remove
DELETE FROM kept_replies WHERE tenant = ?1 AND principal = ?2 AND key IN (
    SELECT key FROM kept_replies WHERE tenant = ?1 AND principal = ?2 ORDER BY key LIMIT ?3)
RETURNING 1;

-- name: prune_links
DELETE FROM kept_reply_entries WHERE tenant = ?1 AND (principal, key) IN (
    SELECT principal, key FROM kept_replies WHERE tenant = ?1 AND created_at < ?2);

-- name: prune
DELETE FROM kept_replies WHERE tenant = ?1 AND created_at < ?2 RETURNING 1;
