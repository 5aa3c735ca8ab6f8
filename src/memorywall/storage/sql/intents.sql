-- What is asked of intents beside what follows from their declaration. {shown} are the columns that
-- an intent is decoded from.

-- name: children
SELECT {shown} FROM intents INDEXED BY intents_by_parent
WHERE tenant = ?1 AND parent_intent_id = ?2 ORDER BY id;

-- name: dependents
SELECT {shown} FROM intents WHERE tenant = ?1 AND id IN (
    SELECT intent_id FROM intent_needs WHERE tenant = ?1 AND needed = ?2)
ORDER BY id;

-- name: grants_to
SELECT tenant, intent_id, id, principal_id, principal_type, access, granted_by, granted_at,
    expires_at, reason
FROM intent_grants INDEXED BY intent_grants_by_principal
WHERE tenant = ?1 AND principal_id = ?2 ORDER BY intent_id, id;
