-- name: add_grants
INSERT INTO namespace_grants (tenant, name, place, agent, access)
SELECT $1, $2, line.place - 1, line.pair ->> 0, line.pair ->> 1
FROM json_array_elements($3::json) WITH ORDINALITY AS line (pair, place);
