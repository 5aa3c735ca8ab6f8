-- What is asked of intents beside what follows from their declaration. {shown} are the columns that
-- an intent is decoded from.

-- name: children
SELECT {shown} FROM intents INDEXED BY intents_by_parent
WHERE tenant = ?1 AND parent_intent_id = ?2 ORDER BY id;

-- name: dependents
SELECT {shown} FROM intents WHERE tenant = ?1 AND id IN (
    SELECT intent_id FROM intent_needs WHERE tenant = ?1 AND needed = ?2)
ORDER BY id;
