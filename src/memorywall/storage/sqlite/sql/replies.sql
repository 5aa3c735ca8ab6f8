-- name: link
INSERT INTO kept_reply_entries (tenant, principal, key, entry_id) VALUES (?1, ?2, ?3, ?4)
ON CONFLICT DO NOTHING;

-- name: remove
DELETE FROM kept_replies WHERE tenant = ?1 AND principal = ?2 AND key IN (
    SELECT key FROM kept_replies WHERE tenant = ?1 AND principal = ?2 ORDER BY key LIMIT ?3)
RETURNING principal, key;

-- name: unlink
DELETE FROM kept_reply_entries INDEXED BY kept_reply_entries_by_reply
WHERE tenant = ?1 AND principal = ?2 AND key = ?3;
