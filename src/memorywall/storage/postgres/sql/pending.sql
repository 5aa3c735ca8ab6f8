-- What a transaction has noted, each list bound as arrays, one for a column. An INSERT stands by
-- itself and not in a WITH, which engines that spread tenants over machines do not all take. What is
-- looked for is said twice, as arrays, so that a plan that was made on a small table looks it up too.

-- name: insert
INSERT INTO entries (tenant, id, tier, owner, agent_id, namespace, key, task_id, intent_id,
    session_id, tags, ttl, expires_at, version, pinned, priority, sensitivity, created_at,
    updated_at, created_by, curated_by, provenance, size, sealing_key, value, kind, kind_version,
    status, state, listed, subjects, edges, due_at, accessed_at)
SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[],
    $7::text[], $8::text[], $9::text[], $10::text[], $11::text[], $12::text[], $13::text[],
    $14::bigint[], $15::integer[], $16::integer[], $17::text[], $18::text[], $19::text[],
    $20::text[], $21::text[], $22::text[], $23::bigint[], $24::text[], $25::bytea[], $26::text[],
    $27::bigint[], $28::text[], $29::text[], $30::integer[], $31::text[], $32::text[], $33::text[],
    $34::text[])
ON CONFLICT (tenant, tier, owner, namespace, key, (coalesce(session_id, ''))) WHERE key >= ''
    DO NOTHING
RETURNING 1;

-- name: replace
-- Only where it decides what goes first is the last access kept: an index holds it, and a row that
-- changes in nothing an index holds stays where it is. The vectors of what has other content go in
-- the same round trip. The last column says whether an index segment contains the entry; a DELETE of
-- segments in the WITH would take half as long again as the rest.
WITH forgotten AS (
    DELETE FROM entry_vectors
    WHERE tenant = $1 AND entry = ANY($28::text[])
        AND model = ANY(ARRAY(SELECT model FROM embedding_positions WHERE tenant = $1))
)
UPDATE entries SET task_id = new.task_id, intent_id = new.intent_id, session_id = new.session_id,
    tags = new.tags, ttl = new.ttl, expires_at = new.expires_at, version = new.version,
    pinned = new.pinned, priority = new.priority, sensitivity = new.sensitivity,
    updated_at = new.updated_at, curated_by = new.curated_by, provenance = new.provenance,
    size = new.size, sealing_key = new.sealing_key, value = new.value, kind = new.kind,
    kind_version = new.kind_version, status = new.status, state = new.state, listed = new.listed,
    subjects = new.subjects, edges = new.edges, due_at = new.due_at,
    accessed_at = CASE WHEN entries.tier = 'episodic' THEN new.updated_at
        ELSE entries.accessed_at END
FROM unnest($2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[],
    $9::bigint[], $10::integer[], $11::integer[], $12::text[], $13::text[], $14::text[], $15::text[],
    $16::bigint[], $17::text[], $18::bytea[], $19::text[], $20::bigint[], $21::text[],
    $22::text[], $23::integer[], $24::text[], $25::text[], $26::text[], $27::bigint[])
    AS new (id, task_id, intent_id, session_id, tags, ttl, expires_at, version, pinned, priority,
        sensitivity, updated_at, curated_by, provenance, size, sealing_key, value, kind, kind_version,
        status, state, listed, subjects, edges, due_at, old_version)
WHERE entries.tenant = $1 AND entries.id = ANY($2::text[]) AND entries.id = new.id
    AND entries.version = new.old_version
RETURNING entries.owner, entries.tier, entries.id, (
    SELECT s.last >= entries.id FROM index_segments s
    WHERE s.tenant = $1 AND s.owner = entries.owner AND s.tier = entries.tier
        AND s.first <= entries.id
    ORDER BY s.first DESC LIMIT 1);

-- name: untag
DELETE FROM entry_tags
USING unnest($2::text[], $3::text[], $4::text[]) AS gone (owner, tag, entry)
WHERE entry_tags.tenant = $1 AND entry_tags.owner = ANY($2::text[])
    AND entry_tags.tag = ANY($3::text[]) AND entry_tags.entry = ANY($4::text[])
    AND entry_tags.owner = gone.owner AND entry_tags.tag = gone.tag
    AND entry_tags.entry = gone.entry;

-- name: tag
INSERT INTO entry_tags (tenant, owner, tag, entry)
SELECT $1, new.owner, new.tag, new.entry
FROM unnest($2::text[], $3::text[], $4::text[]) AS new (owner, tag, entry);

-- name: count
INSERT INTO usage (tenant, owner, tier, entries, bytes, pinned)
SELECT $1, new.owner, new.tier, new.entries, new.bytes, new.pinned
FROM unnest($2::text[], $3::text[], $4::bigint[], $5::bigint[], $6::bigint[])
    AS new (owner, tier, entries, bytes, pinned)
ON CONFLICT (tenant, owner, tier) DO UPDATE SET entries = usage.entries + excluded.entries,
    bytes = usage.bytes + excluded.bytes, pinned = usage.pinned + excluded.pinned;

-- name: unlink
DELETE FROM edges
USING unnest($2::text[], $3::text[], $4::text[]) AS gone (relation, target, entry)
WHERE edges.tenant = $1 AND edges.relation = ANY($2::text[]) AND edges.target = ANY($3::text[])
    AND edges.entry = ANY($4::text[]) AND edges.relation = gone.relation
    AND edges.target = gone.target AND edges.entry = gone.entry;

-- name: link
INSERT INTO edges (tenant, relation, target, entry)
SELECT $1, new.relation, new.target, new.entry
FROM unnest($2::text[], $3::text[], $4::text[]) AS new (relation, target, entry)
ON CONFLICT DO NOTHING;

-- name: keep
INSERT INTO entry_history (tenant, entry, version, replaced_at, body, value)
SELECT * FROM unnest($1::text[], $2::text[], $3::bigint[], $4::text[], $5::text[], $6::bytea[]);

-- name: log
INSERT INTO events (tenant, seq, format, id, type, timestamp, entry_id, tier, version,
    previous_version, task_id, intent_id, digest_key, digest, previous, stream, agent_id)
SELECT * FROM unnest($1::text[], $2::bigint[], $3::bigint[], $4::text[], $5::text[], $6::text[],
    $7::text[], $8::text[], $9::bigint[], $10::bigint[], $11::text[], $12::text[], $13::text[],
    $14::bytea[], $15::bytea[], $16::text[], $17::text[]);

-- name: log_contents
INSERT INTO event_contents (tenant, seq, salt, content)
SELECT $1, new.* FROM unnest($2::bigint[], $3::bytea[], $4::bytea[]) AS new (seq, salt, content);
