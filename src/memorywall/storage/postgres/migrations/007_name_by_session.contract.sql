-- From here on a name may be used again in another session, and every entry has its edges: those of
-- entries that a server of an older schema wrote are derived here, and what it left behind of
-- entries it removed goes.

ALTER TABLE entries NO FORCE ROW LEVEL SECURITY;
ALTER TABLE edges NO FORCE ROW LEVEL SECURITY;
ALTER TABLE entry_history NO FORCE ROW LEVEL SECURITY;

UPDATE entries SET edges = (
    SELECT '[' || string_agg('["derived_from",' || to_json(source)::text || ']', ',') || ']'
    FROM (SELECT DISTINCT one ->> 'id' AS source
        FROM json_array_elements(provenance::json -> 'derived_from') one) sources)
WHERE edges = '[]' AND provenance LIKE '%"derived_from":[{%';

INSERT INTO edges (tenant, relation, target, entry)
SELECT e.tenant, pair ->> 0, pair ->> 1, e.id
FROM entries e CROSS JOIN LATERAL json_array_elements(e.edges::json) pair
WHERE e.edges <> '[]'
ON CONFLICT DO NOTHING;

DELETE FROM edges WHERE NOT EXISTS (
    SELECT 1 FROM entries e WHERE e.tenant = edges.tenant AND e.id = edges.entry);
DELETE FROM entry_history WHERE NOT EXISTS (
    SELECT 1 FROM entries e WHERE e.tenant = entry_history.tenant AND e.id = entry_history.entry);

ALTER TABLE entries FORCE ROW LEVEL SECURITY;
ALTER TABLE edges FORCE ROW LEVEL SECURITY;
ALTER TABLE entry_history FORCE ROW LEVEL SECURITY;

ALTER TABLE entries
    ALTER COLUMN kind_version DROP DEFAULT,
    ALTER COLUMN state DROP DEFAULT,
    ALTER COLUMN listed DROP DEFAULT,
    ALTER COLUMN subjects DROP DEFAULT,
    ALTER COLUMN edges DROP DEFAULT;
ALTER TABLE api_keys ALTER COLUMN subjects DROP DEFAULT;

DROP INDEX entries_by_name;
ALTER INDEX entries_by_session_name RENAME TO entries_by_name;

DROP INDEX entries_by_eviction;
CREATE INDEX entries_by_eviction ON entries (tenant, owner, priority, accessed_at, id)
    WHERE tier = 'episodic' AND pinned = 0 AND listed = 1;
