-- name: note_key_change
UPDATE heads SET key_changes = key_changes + 1 WHERE tenant = $1;
