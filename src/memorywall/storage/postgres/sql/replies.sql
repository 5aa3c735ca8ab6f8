-- name: link
INSERT INTO kept_reply_entries (tenant, entry_id, principal, key)
SELECT $1, shown.entry_id, $2, $3 FROM unnest($4::text[]) AS shown (entry_id)
ON CONFLICT DO NOTHING;

-- name: remove
DELETE FROM kept_replies WHERE tenant = $1 AND principal = $2 AND key = ANY(ARRAY(
    SELECT key FROM kept_replies WHERE tenant = $1 AND principal = $2 ORDER BY key LIMIT $3
)) RETURNING principal, key;

-- name: unlink
DELETE FROM kept_reply_entries l USING unnest($2::text[], $3::text[]) AS gone (principal, key)
WHERE l.tenant = $1 AND l.principal = gone.principal AND l.key = gone.key;
