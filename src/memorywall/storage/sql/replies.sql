-- name: get
SELECT fingerprint, status, reply, sealing_key, created_at FROM kept_replies
WHERE tenant = ?1 AND principal = ?2 AND key = ?3;

-- name: has_older
SELECT 1 FROM kept_replies WHERE tenant = ?1 AND created_at < ?2 LIMIT 1;

-- name: names_key
SELECT 1 FROM kept_replies WHERE tenant = ?1 AND sealing_key = ?2 LIMIT 1;

-- name: links
SELECT entry_id FROM kept_reply_entries INDEXED BY kept_reply_entries_by_reply
WHERE tenant = ?1 AND principal = ?2 AND key = ?3 ORDER BY entry_id;

-- name: put
INSERT INTO kept_replies (tenant, principal, key, fingerprint, status, reply, sealing_key,
    created_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8);

-- name: prune
DELETE FROM kept_replies WHERE tenant = ?1 AND created_at < ?2 RETURNING principal, key;
