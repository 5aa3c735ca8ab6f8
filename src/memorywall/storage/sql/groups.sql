-- What is asked of groups and their members beside what follows from their declarations.

-- name: of
SELECT name FROM group_members WHERE tenant = ?1 AND principal = ?2 ORDER BY name;

-- name: add_member
INSERT INTO group_members (tenant, name, principal, added_by, added_at)
VALUES (?1, ?2, ?3, ?4, ?5) ON CONFLICT DO NOTHING RETURNING 1;

-- name: clear_members
DELETE FROM group_members WHERE tenant = ?1 AND name = ?2;
