-- name: get
SELECT body FROM intents WHERE tenant = ?1 AND id = ?2;

-- name: insert
INSERT INTO intents (tenant, id, created_by, default_policy, status, parent_intent_id, body)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7);

-- name: replace
UPDATE intents SET created_by = ?3, default_policy = ?4, status = ?5, parent_intent_id = ?6,
    body = ?7
WHERE tenant = ?1 AND id = ?2 RETURNING 1;

-- name: add_need
INSERT INTO intent_needs (tenant, needed, intent_id) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING;

-- name: clear_needs
DELETE FROM intent_needs WHERE tenant = ?1 AND intent_id = ?2;

-- name: page
SELECT body FROM intents WHERE tenant = ?1 AND id IN (
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

-- name: children
SELECT body FROM intents INDEXED BY intents_by_parent
WHERE tenant = ?1 AND parent_intent_id = ?2 ORDER BY id;

-- name: dependents
SELECT i.body FROM intent_needs n JOIN intents i ON i.tenant = n.tenant AND i.id = n.intent_id
WHERE n.tenant = ?1 AND n.needed = ?2 ORDER BY n.intent_id;

-- name: grants
SELECT tenant, intent_id, id, principal_id, principal_type, access, granted_by, granted_at,
    expires_at, reason
FROM intent_grants WHERE tenant = ?1 AND intent_id = ?2 ORDER BY id;

-- name: grants_to
SELECT tenant, intent_id, id, principal_id, principal_type, access, granted_by, granted_at,
    expires_at, reason
FROM intent_grants INDEXED BY intent_grants_by_principal
WHERE tenant = ?1 AND principal_id = ?2 AND (expires_at IS NULL OR expires_at > ?3)
ORDER BY intent_id, id;

-- name: add_grant
INSERT INTO intent_grants (tenant, intent_id, id, principal_id, principal_type, access, granted_by,
    granted_at, expires_at, reason) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10);

-- name: remove_grant
DELETE FROM intent_grants WHERE tenant = ?1 AND intent_id = ?2 AND id = ?3 RETURNING 1;
