-- name: get
SELECT fingerprint, status, reply, sealing_key, created_at FROM kept_replies
WHERE tenant = ?1 AND principal = ?2 AND key = ?3;

-- name: links
SELECT entry_id FROM kept_reply_entries INDEXED BY kept_reply_entries_by_reply
WHERE tenant = ?1 AND principal = ?2 AND key = ?3 ORDER BY entry_id;

-- name: put
INSERT INTO kept_replies (tenant, principal, key, fingerprint, status, reply, sealing_key,
    created_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8);

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
