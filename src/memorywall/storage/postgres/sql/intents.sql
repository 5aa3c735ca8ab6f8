-- name: columns
tenant, intent_id, id, principal_id, principal_type, access, granted_by, granted_at, expires_at,
    reason

-- name: get
SELECT body FROM intents WHERE tenant = $1 AND id = $2;

-- name: insert
INSERT INTO intents (tenant, id, created_by, default_policy, status, parent_intent_id, body)
VALUES ($1, $2, $3, $4, $5, $6, $7);

-- name: replace
UPDATE intents SET created_by = $3, default_policy = $4, status = $5, parent_intent_id = $6,
    body = $7
WHERE tenant = $1 AND id = $2 RETURNING 1;

-- name: add_needs
INSERT INTO intent_needs (tenant, needed, intent_id)
SELECT $1, need.needed, $2 FROM unnest($3::text[]) AS need (needed)
ON CONFLICT DO NOTHING;

-- name: clear_needs
DELETE FROM intent_needs WHERE tenant = $1 AND intent_id = $2 AND needed <> ALL($3::text[]);

-- name: page
-- What one made, what is open and another's, and what is named and neither: no intent comes twice,
-- and each part is read no further than the page needs.
SELECT i.body FROM intents i JOIN (
    (SELECT tenant, id FROM intents
    WHERE tenant = $1 AND created_by = $2 AND ($4::text IS NULL OR status = $4)
    ORDER BY id DESC LIMIT $5::bigint + $6::bigint)
    UNION ALL
    (SELECT tenant, id FROM intents
    WHERE tenant = $1 AND default_policy = 'open' AND created_by <> $2
        AND ($4::text IS NULL OR status = $4)
    ORDER BY id DESC LIMIT $5::bigint + $6::bigint)
    UNION ALL
    (SELECT tenant, id FROM intents
    WHERE tenant = $1 AND id = ANY($3::text[]) AND created_by <> $2 AND default_policy <> 'open'
        AND ($4::text IS NULL OR status = $4)
    ORDER BY id DESC LIMIT $5::bigint + $6::bigint)
    ORDER BY id DESC LIMIT $5::bigint OFFSET $6::bigint
) AS readable ON readable.tenant = i.tenant AND readable.id = i.id
WHERE i.tenant = $1 ORDER BY i.id DESC;

-- name: total
SELECT (SELECT count(*) FROM intents
        WHERE tenant = $1 AND created_by = $2 AND ($4::text IS NULL OR status = $4))
    + (SELECT count(*) FROM intents
        WHERE tenant = $1 AND default_policy = 'open' AND created_by <> $2
            AND ($4::text IS NULL OR status = $4))
    + (SELECT count(*) FROM intents
        WHERE tenant = $1 AND id = ANY($3::text[]) AND created_by <> $2
            AND default_policy <> 'open' AND ($4::text IS NULL OR status = $4));

-- name: children
SELECT body FROM intents WHERE tenant = $1 AND parent_intent_id = $2 ORDER BY id;

-- name: dependents
SELECT body FROM intents WHERE tenant = $1 AND id = ANY(ARRAY(
    SELECT intent_id FROM intent_needs WHERE tenant = $1 AND needed = $2))
ORDER BY id;

-- name: grants
SELECT {columns} FROM intent_grants WHERE tenant = $1 AND intent_id = $2 ORDER BY id;

-- name: grants_to
SELECT {columns} FROM intent_grants WHERE tenant = $1 AND principal_id = $2
ORDER BY intent_id, id;

-- name: add_grant
INSERT INTO intent_grants ({columns}) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10);

-- name: remove_grant
DELETE FROM intent_grants WHERE tenant = $1 AND intent_id = $2 AND id = $3 RETURNING 1;
