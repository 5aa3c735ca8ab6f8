-- name: get
SELECT fingerprint, status, reply, sealing_key, created_at FROM kept_replies
WHERE tenant = $1 AND principal = $2 AND key = $3;

-- name: links
SELECT entry_id FROM kept_reply_entries
WHERE tenant = $1 AND principal = $2 AND key = $3 ORDER BY entry_id;

-- name: put
INSERT INTO kept_replies (tenant, principal, key, fingerprint, status, reply, sealing_key,
    created_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8);

-- name: link
INSERT INTO kept_reply_entries (tenant, entry_id, principal, key)
SELECT $1, shown.entry_id, $2, $3 FROM unnest($4::text[]) AS shown (entry_id)
ON CONFLICT DO NOTHING;

-- name: prune
DELETE FROM kept_replies WHERE tenant = $1 AND created_at < $2 RETURNING principal, key;

-- name: remove
DELETE FROM kept_replies WHERE tenant = $1 AND principal = $2 AND key = ANY(ARRAY(
    SELECT key FROM kept_replies WHERE tenant = $1 AND principal = $2 ORDER BY key LIMIT $3
)) RETURNING principal, key;

-- name: unlink
DELETE FROM kept_reply_entries l USING unnest($2::text[], $3::text[]) AS gone (principal, key)
WHERE l.tenant = $1 AND l.principal = gone.principal AND l.key = gone.key;
