-- The head of a tenant is the row its writers stand in line for. It holds the end of the event log,
-- so that events become visible in the order of their numbers and without a gap, and its hash.

-- name: lock
SELECT seq, hash FROM heads WHERE tenant = $1 FOR UPDATE;

-- name: found
INSERT INTO heads (tenant, seq, commits, key_changes) VALUES ($1, 0, 0, 0)
ON CONFLICT (tenant) DO NOTHING;

-- name: seal
-- The number a writer gives its commits tells afterwards whether the last of them came through.
WITH head AS (UPDATE heads SET seq = $4, hash = $5, commits = commits + 1 WHERE tenant = $1)
INSERT INTO writers (tenant, writer, number) VALUES ($1, $2, $3)
ON CONFLICT (tenant, writer) DO UPDATE SET number = excluded.number;

-- name: committed
SELECT number FROM writers WHERE tenant = $1 AND writer = $2;

-- name: progress
SELECT tenant, commits FROM heads WHERE tenant = ANY($1::text[]);

-- name: describe
SELECT current_setting('server_version'), coalesce(max(number), 0) FROM migrations;

-- name: generation
SELECT coalesce(sum(key_changes), 0)::bigint FROM heads;

-- name: check_room
-- Sorts more than the least memory holds, so that the database writes about a MiB to its disk. This
-- needs no privilege and leaves nothing behind.
SELECT count(*) FROM (
    SELECT md5(number::text) FROM generate_series(1, 20000) AS number ORDER BY 1 OFFSET 0
) AS sorted;
