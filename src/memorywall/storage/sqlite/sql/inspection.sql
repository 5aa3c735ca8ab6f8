-- Each statement lists what is wrong; where nothing is wrong it lists nothing. Its name says what.

-- name: a_tag_of_an_entry_is_not_in_the_tag_index
SELECT e.tenant, e.id FROM entries e, json_each(e.tags) t
WHERE NOT EXISTS (SELECT 1 FROM tags n JOIN entry_tags i ON i.tenant = n.tenant AND i.tag = n.number
    WHERE n.tenant = e.tenant AND n.owner = e.owner AND n.tag = t.value AND i.entry = e.number);

-- name: the_tag_index_has_a_tag_that_no_entry_has
SELECT i.tenant, i.entry FROM entry_tags i
LEFT JOIN tags n ON n.tenant = i.tenant AND n.number = i.tag
LEFT JOIN entries e ON e.number = i.entry AND e.tenant = i.tenant AND e.owner = n.owner
WHERE e.number IS NULL OR NOT EXISTS (SELECT 1 FROM json_each(e.tags) t WHERE t.value = n.tag);

-- name: the_count_of_a_tag_is_not_that_of_its_entries
SELECT n.tenant, n.owner FROM tags n
WHERE n.entries <> (SELECT count(*) FROM entry_tags i WHERE i.tenant = n.tenant AND i.tag = n.number)
    OR n.entries < 1;

-- name: the_counts_of_an_owner_are_not_those_of_its_entries
SELECT tenant, owner, tier FROM (
    SELECT tenant, owner, tier, count(*) AS entries, sum(size) AS bytes, sum(pinned) AS pinned
    FROM entries WHERE listed = 1 GROUP BY tenant, owner, tier
) counted FULL JOIN usage kept USING (tenant, owner, tier)
WHERE coalesce(counted.entries, 0) <> coalesce(kept.entries, 0)
    OR coalesce(counted.bytes, 0) <> coalesce(kept.bytes, 0)
    OR coalesce(counted.pinned, 0) <> coalesce(kept.pinned, 0);

-- name: an_edge_of_an_entry_is_not_in_the_index
SELECT e.tenant, e.id FROM entries e, json_each(e.edges) pair
WHERE NOT EXISTS (SELECT 1 FROM edges i WHERE i.tenant = e.tenant AND i.entry = e.id
    AND i.relation = pair.value ->> 0 AND i.target = pair.value ->> 1);

-- name: the_index_has_an_edge_that_no_entry_has
SELECT i.tenant, i.entry FROM edges i
LEFT JOIN entries e ON e.tenant = i.tenant AND e.id = i.entry
WHERE e.id IS NULL OR NOT EXISTS (SELECT 1 FROM json_each(e.edges) pair
    WHERE pair.value ->> 0 = i.relation AND pair.value ->> 1 = i.target);

-- name: an_entry_does_not_point_at_whom_it_is_about
SELECT e.tenant, e.id FROM entries e, json_each(e.subjects) s
WHERE NOT EXISTS (SELECT 1 FROM edges i WHERE i.tenant = e.tenant AND i.entry = e.id
    AND i.relation = 'about' AND i.target = s.value);

-- name: an_entry_does_not_point_at_what_it_was_made_from
SELECT e.tenant, e.id FROM entries e, json_each(e.provenance, '$.derived_from') s
WHERE NOT EXISTS (SELECT 1 FROM edges i WHERE i.tenant = e.tenant AND i.entry = e.id
    AND i.relation = 'derived_from' AND i.target = s.value ->> 'id');

-- name: an_earlier_version_is_kept_of_an_entry_that_is_gone
SELECT h.tenant, h.entry FROM entry_history h
LEFT JOIN entries e ON e.tenant = h.tenant AND e.id = h.entry
WHERE e.id IS NULL OR e.version <= h.version;

-- name: a_kept_reply_shows_an_entry_that_is_gone
SELECT l.tenant, l.entry_id FROM kept_reply_entries l
LEFT JOIN entries e ON e.tenant = l.tenant AND e.id = l.entry_id WHERE e.id IS NULL;

-- name: a_vector_is_kept_of_an_entry_that_is_gone
SELECT v.tenant, v.entry FROM entry_vectors v
LEFT JOIN entries e ON e.tenant = v.tenant AND e.id = v.entry WHERE e.id IS NULL;

-- name: a_vector_is_kept_of_an_entry_that_is_sealed
SELECT v.tenant, v.entry FROM entry_vectors v
JOIN entries e ON e.tenant = v.tenant AND e.id = v.entry
WHERE e.sealing_key IS NOT NULL OR e.sensitivity IN ('confidential', 'restricted');

-- name: vectors_are_kept_under_a_model_that_is_not_listed
SELECT DISTINCT v.tenant, v.model FROM entry_vectors v
LEFT JOIN embedding_positions p ON p.tenant = v.tenant AND p.model = v.model
WHERE p.model IS NULL;

-- name: embedding_has_come_beyond_the_end_of_the_log
SELECT p.tenant, p.model FROM embedding_positions p
WHERE p.position > coalesce((SELECT max(seq) FROM events WHERE tenant = p.tenant), 0);

-- name: uses_are_counted_of_an_entry_that_is_gone
SELECT u.tenant, u.entry FROM entry_uses u
LEFT JOIN entries e ON e.tenant = u.tenant AND e.id = u.entry WHERE e.id IS NULL;

-- name: the_log_of_a_tenant_has_a_gap
SELECT tenant, count(*), max(seq) FROM events GROUP BY tenant HAVING count(*) <> max(seq);

-- name: what_an_intent_depends_on_is_not_in_the_index
SELECT i.tenant, i.id FROM intents i, json_each(i.body, '$.depends_on') d
WHERE NOT EXISTS (SELECT 1 FROM intent_needs n
    WHERE n.tenant = i.tenant AND n.needed = d.value AND n.intent_id = i.id);

-- name: an_intent_does_not_say_that_it_depends_on_what_the_index_says
SELECT n.tenant, n.intent_id FROM intent_needs n
LEFT JOIN intents i ON i.tenant = n.tenant AND i.id = n.intent_id
WHERE i.id IS NULL
    OR NOT EXISTS (SELECT 1 FROM json_each(i.body, '$.depends_on') d WHERE d.value = n.needed);

-- name: content_is_kept_of_an_attachment_that_is_gone
SELECT DISTINCT p.tenant, p.attachment_id FROM attachment_pieces p
LEFT JOIN attachments a ON a.tenant = p.tenant AND a.id = p.attachment_id WHERE a.id IS NULL;

-- name: a_piece_of_the_content_of_an_attachment_is_missing
SELECT tenant, attachment_id FROM attachment_pieces
GROUP BY tenant, attachment_id HAVING count(*) <> max(place) + 1 OR min(place) <> 0;

-- name: counters_are_kept_of_a_session_that_is_gone
SELECT c.tenant, c.session_id FROM session_counters c
LEFT JOIN entries e ON e.tenant = c.tenant AND e.id = c.session_id AND e.kind = 'session'
WHERE e.id IS NULL;

-- name: a_session_has_no_counters
SELECT e.tenant, e.id FROM entries e
LEFT JOIN session_counters c ON c.tenant = e.tenant AND c.session_id = e.id
WHERE e.kind = 'session' AND c.session_id IS NULL;

-- name: a_lease_has_a_token_that_was_never_given
SELECT l.tenant, l.id FROM leases l
LEFT JOIN counters c ON c.tenant = l.tenant AND c.name = 'fencing'
WHERE l.token > coalesce(c.value, 0) OR l.token < 1;

-- name: an_event_has_not_been_taken_into_the_chain
SELECT tenant, seq FROM legacy_events;

-- name: a_content_is_kept_of_an_event_that_is_gone
SELECT c.tenant, c.seq FROM event_contents c
LEFT JOIN events e ON e.tenant = c.tenant AND e.seq = c.seq WHERE e.seq IS NULL;
