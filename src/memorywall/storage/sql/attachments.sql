-- The content of attachments; their other statements follow from their declaration.

-- name: remove_chunks
DELETE FROM attachment_pieces WHERE tenant = ?1 AND attachment_id = ?2;

-- name: put_chunk
INSERT INTO attachment_pieces (tenant, attachment_id, place, content) VALUES (?1, ?2, ?3, ?4);

-- name: every
SELECT {shown} FROM attachments WHERE tenant = ?1 ORDER BY id;

-- name: chunks
SELECT content FROM attachment_pieces WHERE tenant = ?1 AND attachment_id = ?2 ORDER BY place;
