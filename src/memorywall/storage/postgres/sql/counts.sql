-- Each answers with the entries, their bytes, how many are pinned, and when the next of them
-- expires. What stands before an OFFSET 0 is looked up by itself, whatever stands around it.

-- name: owner
-- The running count has what is over and not yet swept in it. When the next entry of the tenant
-- expires is known at once, and is early enough.
SELECT coalesce(kept.entries, 0) - gone.entries, coalesce(kept.bytes, 0) - gone.bytes,
    coalesce(kept.pinned, 0) - gone.pinned,
    (SELECT min(expires_at) FROM entries WHERE tenant = $1 AND expires_at > $4)
FROM (
    SELECT count(*) AS entries, coalesce(sum(size), 0)::bigint AS bytes,
        coalesce(sum(pinned), 0)::bigint AS pinned
    FROM (SELECT owner, tier, size, pinned FROM entries
        WHERE tenant = $1 AND expires_at <= $4 AND listed = 1 OFFSET 0) e
    WHERE owner = $2 AND tier = $3
) gone
LEFT JOIN usage kept ON kept.tenant = $1 AND kept.owner = $2 AND kept.tier = $3;

-- name: task
SELECT count(*), coalesce(sum(size), 0)::bigint, 0, min(expires_at) FROM entries
WHERE tenant = $1 AND tier = $2 AND task_id = $3 AND (expires_at IS NULL OR expires_at > $4)
    AND listed = 1;

-- name: namespace
SELECT count(*), coalesce(sum(size), 0)::bigint, 0, min(expires_at)
FROM (SELECT size, expires_at, listed FROM entries
    WHERE tenant = $1 AND tier = $2 AND owner = '' AND namespace >= $3 AND namespace <= $3
        AND key >= ''
    ORDER BY namespace OFFSET 0) e
WHERE (expires_at IS NULL OR expires_at > $4) AND listed = 1;

-- name: tenant
SELECT kept.entries - gone.entries, kept.bytes - gone.bytes, 0,
    (SELECT min(expires_at) FROM entries WHERE tenant = $1 AND expires_at > $2)
FROM (
    SELECT count(*) AS entries, coalesce(sum(size), 0)::bigint AS bytes
    FROM entries WHERE tenant = $1 AND expires_at <= $2 AND listed = 1
) gone, (
    SELECT coalesce(sum(entries), 0)::bigint AS entries, coalesce(sum(bytes), 0)::bigint AS bytes
    FROM usage WHERE tenant = $1
) kept;
