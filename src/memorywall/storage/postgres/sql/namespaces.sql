-- name: add_grants
INSERT INTO namespace_grants (tenant, name, place, agent, access, episodic)
SELECT $1, $2, line.place - 1, line.pair ->> 0, line.pair ->> 1, (line.pair ->> 2)::bigint
FROM json_array_elements($3::json) WITH ORDINALITY AS line (pair, place);

-- name: list_for
-- The grants that name the agent or one of its groups.
SELECT n.tenant, n.name, n.default_access, n.version, n.created_at, n.updated_at,
    n.last_write_wins, n.schemas, n.indexes, g.agent, g.access, g.episodic
FROM namespaces n
LEFT JOIN namespace_grants g
    ON g.tenant = n.tenant AND g.tenant = $1 AND g.name = n.name AND g.agent = ANY(ARRAY(
        SELECT $2::text UNION ALL
        SELECT 'group:' || m.name FROM group_members m WHERE m.tenant = $1 AND m.principal = $2))
WHERE n.tenant = $1 ORDER BY n.name;
