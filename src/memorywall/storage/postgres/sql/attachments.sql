-- name: get
SELECT body FROM attachments WHERE tenant = $1 AND id = $2;

-- name: insert
INSERT INTO attachments (tenant, id, intent_id, body) VALUES ($1, $2, $3, $4);

-- name: replace
UPDATE attachments SET intent_id = $3, body = $4 WHERE tenant = $1 AND id = $2 RETURNING 1;

-- name: list
SELECT body FROM attachments WHERE tenant = $1 AND intent_id = $2 ORDER BY id;

-- name: remove
DELETE FROM attachments WHERE tenant = $1 AND id = $2 RETURNING 1;

-- name: remove_pieces
DELETE FROM attachment_pieces WHERE tenant = $1 AND attachment_id = $2;

-- name: put_piece
INSERT INTO attachment_pieces (tenant, attachment_id, place, content) VALUES ($1, $2, $3, $4);

-- name: pieces
SELECT content FROM attachment_pieces WHERE tenant = $1 AND attachment_id = $2 ORDER BY place;
