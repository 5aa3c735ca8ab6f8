-- name: columns
tenant, name, due, holder, held_until, token, cursor, done, error, ran_at, paused

-- name: list
SELECT {columns} FROM jobs WHERE tenant = ?1 ORDER BY name;

-- name: get
SELECT {columns} FROM jobs WHERE tenant = ?1 AND name = ?2;

-- name: take
INSERT INTO jobs ({columns})
VALUES (?1, ?2, '', ?3, ?5, 1, '', 0, '', NULL, 0)
ON CONFLICT (tenant, name) DO UPDATE
SET holder = excluded.holder, held_until = excluded.held_until, token = jobs.token + 1
WHERE jobs.tenant = ?1 AND jobs.paused = 0 AND (jobs.due <= ?4 OR CAST(?6 AS bigint) = 1)
    AND (jobs.holder = '' OR jobs.held_until <= ?4)
RETURNING {columns};

-- name: keep
UPDATE jobs SET cursor = ?4, held_until = ?5
WHERE tenant = ?1 AND name = ?2 AND token = ?3 AND holder <> '' RETURNING 1;

-- name: finish
UPDATE jobs SET holder = '', held_until = '', due = ?4, done = ?5, error = ?6, ran_at = ?7
WHERE tenant = ?1 AND name = ?2 AND token = ?3 AND holder <> '' RETURNING 1;

-- name: pause
INSERT INTO jobs ({columns})
VALUES (?1, ?2, '', '', '', 0, '', 0, '', NULL, ?3)
ON CONFLICT (tenant, name) DO UPDATE SET paused = excluded.paused
RETURNING {columns};

-- name: note
INSERT INTO jobs ({columns})
VALUES (?1, ?2, '', '', '', 0, ?3, ?4, '', ?5, 0)
ON CONFLICT (tenant, name) DO UPDATE
SET cursor = excluded.cursor, done = excluded.done, error = '', ran_at = excluded.ran_at;

-- name: forget
DELETE FROM jobs WHERE tenant = ?1;
