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
