-- name: add_grants
INSERT INTO namespace_grants (tenant, name, place, agent, access)
SELECT ?1, ?2, key, value ->> 0, value ->> 1 FROM json_each(?3);
