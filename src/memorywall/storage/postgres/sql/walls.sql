-- Questions to the catalogue, which has no tenants.

-- name: open_tables
SELECT c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = $1 AND c.relkind IN ('r', 'p') AND c.relname <> 'migrations'
    AND NOT (c.relrowsecurity AND c.relforcerowsecurity)
ORDER BY c.relname;

-- name: above_walls
SELECT rolsuper OR rolbypassrls OR EXISTS (
    SELECT 1 FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE n.nspname = $1 AND c.relowner = r.oid)
FROM pg_roles r WHERE rolname = current_user;
