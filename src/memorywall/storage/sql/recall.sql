-- name: begin_model
INSERT INTO embedding_positions (tenant, model, position, holder, held_until)
VALUES (?1, ?2, 0, '', '')
ON CONFLICT (tenant, model) DO NOTHING;

-- name: other_models
SELECT model FROM embedding_positions WHERE tenant = ?1 AND model <> ?2;

-- name: forget_position
UPDATE embedding_positions SET position = 0, holder = '', held_until = ''
WHERE tenant = ?1 AND model = ?2;

-- name: forget_model
DELETE FROM embedding_positions
WHERE tenant = ?1 AND model = ?2 AND NOT EXISTS (
    SELECT 1 FROM entry_vectors WHERE tenant = ?1 AND model = ?2);

-- name: position
SELECT position FROM embedding_positions WHERE tenant = ?1 AND model = ?2;

-- name: acquire_lease
INSERT INTO embedding_positions (tenant, model, position, holder, held_until)
VALUES (?1, ?2, 0, ?3, ?5)
ON CONFLICT (tenant, model) DO UPDATE SET holder = excluded.holder, held_until = excluded.held_until
WHERE embedding_positions.tenant = ?1
    AND (embedding_positions.holder = excluded.holder OR embedding_positions.held_until <= ?4)
RETURNING position;

-- name: advance
UPDATE embedding_positions SET position = ?4 WHERE tenant = ?1 AND model = ?2 AND holder = ?3
RETURNING 1;

-- name: remove_segments
DELETE FROM index_segments
WHERE tenant = ?1 AND owner = ?2 AND tier = ?3 AND first <= ?5 AND last >= ?4;

-- name: every_segment
SELECT first, last, form, content FROM index_segments WHERE tenant = ?1 ORDER BY owner, tier, first;

-- name: without_segment
SELECT owner, tier FROM usage u
WHERE tenant = ?1 AND (owner, tier) > (?4, ?5) AND entries - coalesce((
    SELECT sum(s.listed) FROM index_segments s
    WHERE s.tenant = ?1 AND s.owner = u.owner AND s.tier = u.tier AND s.form = ?2), 0) >= ?3
ORDER BY owner, tier LIMIT 1;

-- name: remove_all_segments
DELETE FROM index_segments WHERE tenant = ?1;

-- name: begin_again
UPDATE embedding_positions SET position = 0, holder = '', held_until = ''
WHERE tenant = ?1 AND (position > 0 OR holder > '');

-- name: forget_models
DELETE FROM embedding_positions WHERE tenant = ?1;
