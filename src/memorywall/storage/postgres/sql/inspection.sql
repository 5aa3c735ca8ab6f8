-- Each statement lists what is wrong in one tenant; where nothing is wrong it lists nothing. Its
-- name says what. PostgreSQL reads no JSON with a NUL in it, so one is read as another character.

-- name: a_tag_of_an_entry_is_not_in_the_tag_index
SELECT e.id FROM entries e CROSS JOIN LATERAL json_array_elements_text(e.tags::json) AS named (tag)
WHERE e.tenant = $1 AND NOT EXISTS (
    SELECT 1 FROM entry_tags t
    WHERE t.tenant = $1 AND t.owner = e.owner AND t.tag = named.tag AND t.entry = e.id);

-- name: the_tag_index_has_a_tag_that_no_entry_has
SELECT t.entry FROM entry_tags t
LEFT JOIN entries e ON e.tenant = $1 AND e.id = t.entry AND e.owner = t.owner
WHERE t.tenant = $1 AND (e.id IS NULL OR NOT EXISTS (
    SELECT 1 FROM json_array_elements_text(e.tags::json) AS named (tag) WHERE named.tag = t.tag));

-- name: the_counts_of_an_owner_are_not_those_of_its_entries
SELECT owner, tier FROM (
    SELECT owner, tier, count(*) AS entries, sum(size) AS bytes, sum(pinned) AS pinned
    FROM entries WHERE tenant = $1 AND listed = 1 GROUP BY owner, tier
) counted
FULL JOIN (SELECT owner, tier, entries, bytes, pinned FROM usage WHERE tenant = $1) kept
    USING (owner, tier)
WHERE coalesce(counted.entries, 0) <> coalesce(kept.entries, 0)
    OR coalesce(counted.bytes, 0) <> coalesce(kept.bytes, 0)
    OR coalesce(counted.pinned, 0) <> coalesce(kept.pinned, 0);

-- name: an_edge_of_an_entry_is_not_in_the_index
SELECT e.id FROM entries e CROSS JOIN LATERAL json_array_elements(e.edges::json) AS named (pair)
WHERE e.tenant = $1 AND NOT EXISTS (
    SELECT 1 FROM edges i WHERE i.tenant = $1 AND i.entry = e.id
        AND i.relation = named.pair ->> 0 AND i.target = named.pair ->> 1);

-- name: the_index_has_an_edge_that_no_entry_has
SELECT i.entry FROM edges i LEFT JOIN entries e ON e.tenant = $1 AND e.id = i.entry
WHERE i.tenant = $1 AND (e.id IS NULL OR NOT EXISTS (
    SELECT 1 FROM json_array_elements(e.edges::json) AS named (pair)
    WHERE named.pair ->> 0 = i.relation AND named.pair ->> 1 = i.target));

-- name: an_entry_does_not_point_at_whom_it_is_about
SELECT e.id FROM entries e
CROSS JOIN LATERAL json_array_elements_text(e.subjects::json) AS named (subject)
WHERE e.tenant = $1 AND NOT EXISTS (
    SELECT 1 FROM edges i WHERE i.tenant = $1 AND i.entry = e.id AND i.relation = 'about'
        AND i.target = named.subject);

-- name: an_entry_does_not_point_at_what_it_was_made_from
SELECT e.id FROM entries e
CROSS JOIN LATERAL json_array_elements(
    coalesce(e.provenance::json -> 'derived_from', '[]'::json)) AS named (source)
WHERE e.tenant = $1 AND NOT EXISTS (
    SELECT 1 FROM edges i WHERE i.tenant = $1 AND i.entry = e.id AND i.relation = 'derived_from'
        AND i.target = named.source ->> 'id');

-- name: an_earlier_version_is_kept_of_an_entry_that_is_gone
SELECT h.entry FROM entry_history h LEFT JOIN entries e ON e.tenant = $1 AND e.id = h.entry
WHERE h.tenant = $1 AND (e.id IS NULL OR e.version <= h.version);

-- name: a_kept_reply_shows_an_entry_that_is_gone
SELECT l.entry_id FROM kept_reply_entries l
LEFT JOIN entries e ON e.tenant = $1 AND e.id = l.entry_id
WHERE l.tenant = $1 AND e.id IS NULL;

-- name: a_vector_is_kept_of_an_entry_that_is_gone
SELECT v.entry FROM entry_vectors v LEFT JOIN entries e ON e.tenant = $1 AND e.id = v.entry
WHERE v.tenant = $1 AND e.id IS NULL;

-- name: a_vector_is_kept_of_an_entry_that_is_sealed
SELECT v.entry FROM entry_vectors v JOIN entries e ON e.tenant = $1 AND e.id = v.entry
WHERE v.tenant = $1
    AND (e.sealing_key IS NOT NULL OR e.sensitivity IN ('confidential', 'restricted'));

-- name: vectors_are_kept_under_a_model_that_is_not_listed
SELECT DISTINCT v.model FROM entry_vectors v
LEFT JOIN embedding_positions p ON p.tenant = $1 AND p.model = v.model
WHERE v.tenant = $1 AND p.model IS NULL;

-- name: embedding_has_come_beyond_the_end_of_the_log
SELECT p.model FROM embedding_positions p
WHERE p.tenant = $1
    AND p.position > (SELECT coalesce(max(seq), 0) FROM events WHERE tenant = $1);

-- name: uses_are_counted_of_an_entry_that_is_gone
SELECT u.entry FROM entry_uses u LEFT JOIN entries e ON e.tenant = $1 AND e.id = u.entry
WHERE u.tenant = $1 AND e.id IS NULL;

-- name: the_log_of_a_tenant_has_a_gap
SELECT count(*), max(seq) FROM events WHERE tenant = $1 HAVING count(*) <> max(seq);

-- name: the_end_of_the_log_is_not_where_the_head_says
SELECT h.seq FROM heads h
WHERE h.tenant = $1
    AND h.seq <> (SELECT coalesce(max(seq), 0) FROM events WHERE tenant = $1);

-- name: what_an_intent_depends_on_is_not_in_the_index
SELECT i.id FROM intents i
CROSS JOIN LATERAL json_array_elements_text(
    replace(i.body, '\u0000', '\u0001')::json -> 'depends_on') AS named (needed)
WHERE i.tenant = $1 AND NOT EXISTS (
    SELECT 1 FROM intent_needs n
    WHERE n.tenant = $1 AND n.needed = named.needed AND n.intent_id = i.id);

-- name: an_intent_does_not_say_that_it_depends_on_what_the_index_says
SELECT n.intent_id FROM intent_needs n
LEFT JOIN intents i ON i.tenant = $1 AND i.id = n.intent_id
WHERE n.tenant = $1 AND (i.id IS NULL OR NOT EXISTS (
    SELECT 1 FROM json_array_elements_text(
    replace(i.body, '\u0000', '\u0001')::json -> 'depends_on') AS named (needed)
    WHERE named.needed = n.needed));

-- name: content_is_kept_of_an_attachment_that_is_gone
SELECT DISTINCT p.attachment_id FROM attachment_pieces p
LEFT JOIN attachments a ON a.tenant = $1 AND a.id = p.attachment_id
WHERE p.tenant = $1 AND a.id IS NULL;

-- name: a_piece_of_the_content_of_an_attachment_is_missing
SELECT attachment_id FROM attachment_pieces WHERE tenant = $1
GROUP BY attachment_id HAVING count(*) <> max(place) + 1 OR min(place) <> 0;

-- name: counters_are_kept_of_a_session_that_is_gone
SELECT c.session_id FROM session_counters c
LEFT JOIN entries e ON e.tenant = $1 AND e.id = c.session_id AND e.kind = 'session'
WHERE c.tenant = $1 AND e.id IS NULL;

-- name: a_session_has_no_counters
SELECT e.id FROM entries e LEFT JOIN session_counters c ON c.tenant = $1 AND c.session_id = e.id
WHERE e.tenant = $1 AND e.kind = 'session' AND c.session_id IS NULL;

-- name: a_lease_has_a_token_that_was_never_given
SELECT l.id FROM leases l LEFT JOIN counters c ON c.tenant = $1 AND c.name = 'fencing'
WHERE l.tenant = $1 AND (l.token > coalesce(c.value, 0) OR l.token < 1);

-- name: an_event_has_not_been_taken_into_the_chain
SELECT seq FROM legacy_events WHERE tenant = $1;

-- name: a_content_is_kept_of_an_event_that_is_gone
SELECT c.seq FROM event_contents c LEFT JOIN events e ON e.tenant = $1 AND e.seq = c.seq
WHERE c.tenant = $1 AND e.seq IS NULL;
