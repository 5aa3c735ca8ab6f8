-- name: add_needs
INSERT INTO intent_needs (tenant, needed, intent_id)
SELECT $1, need.needed, $2 FROM unnest($3::text[]) AS need (needed)
ON CONFLICT DO NOTHING;

-- name: clear_needs
DELETE FROM intent_needs WHERE tenant = $1 AND intent_id = $2 AND needed <> ALL($3::text[]);

-- name: page
-- What one made, what is open and another's, and what is named and neither: no intent comes twice,
-- and each part is read no further than the page needs.
SELECT {shown} FROM intents JOIN (
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
) AS readable ON readable.tenant = intents.tenant AND readable.id = intents.id
WHERE intents.tenant = $1 ORDER BY intents.id DESC;

-- name: total
SELECT (SELECT count(*) FROM intents
        WHERE tenant = $1 AND created_by = $2 AND ($4::text IS NULL OR status = $4))
    + (SELECT count(*) FROM intents
        WHERE tenant = $1 AND default_policy = 'open' AND created_by <> $2
            AND ($4::text IS NULL OR status = $4))
    + (SELECT count(*) FROM intents
        WHERE tenant = $1 AND id = ANY($3::text[]) AND created_by <> $2
            AND default_policy <> 'open' AND ($4::text IS NULL OR status = $4));

-- name: grants_to
-- What names the principal or one of its groups.
SELECT tenant, intent_id, id, principal_id, principal_type, access, granted_by, granted_at,
    expires_at, reason
FROM intent_grants
WHERE tenant = $1 AND principal_id = ANY(ARRAY(
    SELECT $2::text UNION ALL
    SELECT 'group:' || m.name FROM group_members m WHERE m.tenant = $1 AND m.principal = $2))
ORDER BY intent_id, id;
