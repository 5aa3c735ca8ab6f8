-- name: add_needs
INSERT INTO intent_needs (tenant, needed, intent_id)
SELECT ?1, value, ?2 FROM json_each(?3) WHERE true
ON CONFLICT DO NOTHING;

-- name: clear_needs
DELETE FROM intent_needs WHERE tenant = ?1 AND intent_id = ?2
    AND needed NOT IN (SELECT value FROM json_each(?3));

-- name: page
SELECT {shown} FROM intents WHERE tenant = ?1 AND id IN (
    SELECT id FROM intents
    WHERE tenant = ?1 AND created_by = ?2 AND (?4 IS NULL OR status = ?4)
    UNION SELECT id FROM intents
    WHERE tenant = ?1 AND default_policy = 'open' AND (?4 IS NULL OR status = ?4)
    UNION SELECT id FROM intents
    WHERE tenant = ?1 AND id IN (SELECT value FROM json_each(?3)) AND (?4 IS NULL OR status = ?4)
    ORDER BY id DESC LIMIT ?5 OFFSET ?6)
ORDER BY id DESC;

-- name: total
SELECT count(*) FROM intents WHERE tenant = ?1 AND id IN (
    SELECT id FROM intents
    WHERE tenant = ?1 AND created_by = ?2 AND (?4 IS NULL OR status = ?4)
    UNION SELECT id FROM intents
    WHERE tenant = ?1 AND default_policy = 'open' AND (?4 IS NULL OR status = ?4)
    UNION SELECT id FROM intents
    WHERE tenant = ?1 AND id IN (SELECT value FROM json_each(?3)) AND (?4 IS NULL OR status = ?4));

-- name: grants_to
-- What names the principal or one of its groups.
SELECT tenant, intent_id, id, principal_id, principal_type, access, granted_by, granted_at,
    expires_at, reason
FROM intent_grants INDEXED BY intent_grants_by_principal
WHERE tenant = ?1 AND principal_id IN (
    SELECT ?2 UNION ALL
    SELECT 'group:' || m.name FROM group_members m WHERE m.tenant = ?1 AND m.principal = ?2)
ORDER BY intent_id, id;
