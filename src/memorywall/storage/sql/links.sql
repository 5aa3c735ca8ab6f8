-- Edges and earlier versions. `entry >= ''` always holds; PostgreSQL's index by entry needs it.

-- name: targets
SELECT relation, target FROM edges
WHERE tenant = ?1 AND entry = ?2 AND entry >= '' ORDER BY relation, target;

-- name: sources
SELECT DISTINCT entry FROM edges
WHERE tenant = ?1 AND relation = ?2 AND target IN {list ?3} AND entry > ?4
ORDER BY entry LIMIT ?5;

-- name: sources_of_one
SELECT entry FROM edges
WHERE tenant = ?1 AND relation = ?2 AND target = ?3 AND entry > ?4
ORDER BY entry LIMIT ?5;

-- name: between
SELECT target, entry FROM edges
WHERE tenant = ?1 AND relation = ?2 AND target >= ?3 AND target < ?4
ORDER BY target, entry LIMIT ?5;

-- name: version
SELECT body, value FROM entry_history WHERE tenant = ?1 AND entry = ?2 AND version = ?3;

-- name: versions
SELECT body, value FROM entry_history WHERE tenant = ?1 AND entry = ?2 ORDER BY version;

-- name: earlier
SELECT body, value FROM entry_history WHERE tenant = ?1 AND entry = ?2 AND version < ?3
ORDER BY version DESC LIMIT ?4;

-- name: reseal
UPDATE entry_history SET body = ?4, value = ?5
WHERE tenant = ?1 AND entry = ?2 AND version = ?3 RETURNING 1;

-- name: remove_versions
DELETE FROM entry_history WHERE tenant = ?1 AND entry = ?2 AND version IN {numbers ?3};

-- name: unlink_replies
DELETE FROM kept_reply_entries WHERE tenant = ?1 AND entry_id = ?2 RETURNING principal, key;
