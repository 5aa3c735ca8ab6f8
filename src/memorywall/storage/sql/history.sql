-- Earlier versions, in the order in which `verify` reads them.

-- name: versions_of_tenant
SELECT body, value FROM entry_history WHERE tenant = ?1 ORDER BY entry, version;
