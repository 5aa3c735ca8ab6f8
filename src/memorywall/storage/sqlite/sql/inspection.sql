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
    FROM entries GROUP BY tenant, owner, tier
) counted FULL JOIN usage kept USING (tenant, owner, tier)
WHERE coalesce(counted.entries, 0) <> coalesce(kept.entries, 0)
    OR coalesce(counted.bytes, 0) <> coalesce(kept.bytes, 0)
    OR coalesce(counted.pinned, 0) <> coalesce(kept.pinned, 0);

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

-- name: the_columns_of_an_intent_are_not_what_it_says
SELECT tenant, id FROM intents
WHERE tenant IS NOT body ->> 'tenant' OR id IS NOT body ->> 'id'
    OR created_by IS NOT body ->> 'created_by' OR default_policy IS NOT body ->> 'default_policy'
    OR status IS NOT body ->> 'status' OR parent_intent_id IS NOT body ->> 'parent_intent_id';

-- name: the_columns_of_a_task_are_not_what_it_says
SELECT tenant, id FROM tasks
WHERE tenant IS NOT body ->> 'tenant' OR id IS NOT body ->> 'id'
    OR intent_id IS NOT body ->> 'intent_id' OR status IS NOT body ->> 'status'
    OR assigned_agent IS NOT body ->> 'assigned_agent';

-- name: the_columns_of_a_coordinator_are_not_what_it_says
SELECT tenant, id FROM coordinators
WHERE tenant IS NOT body ->> 'tenant' OR id IS NOT body ->> 'id'
    OR intent_id IS NOT body ->> 'intent_id';

-- name: the_columns_of_an_attachment_are_not_what_it_says
SELECT tenant, id FROM attachments
WHERE tenant IS NOT body ->> 'tenant' OR id IS NOT body ->> 'id'
    OR intent_id IS NOT body ->> 'intent_id';

-- name: what_an_intent_depends_on_is_not_in_the_index
SELECT i.tenant, i.id FROM intents i, json_each(i.body, '$.depends_on') d
WHERE NOT EXISTS (SELECT 1 FROM intent_needs n
    WHERE n.tenant = i.tenant AND n.needed = d.value AND n.intent_id = i.id);

-- name: an_intent_does_not_say_that_it_depends_on_what_the_index_says
SELECT n.tenant, n.intent_id FROM intent_needs n
LEFT JOIN intents i ON i.tenant = n.tenant AND i.id = n.intent_id
WHERE i.id IS NULL
    OR NOT EXISTS (SELECT 1 FROM json_each(i.body, '$.depends_on') d WHERE d.value = n.needed);

-- name: a_task_belongs_to_no_intent
SELECT t.tenant, t.id FROM tasks t
LEFT JOIN intents i ON i.tenant = t.tenant AND i.id = t.intent_id WHERE i.id IS NULL;

-- name: a_coordinator_belongs_to_no_intent
SELECT c.tenant, c.id FROM coordinators c
LEFT JOIN intents i ON i.tenant = c.tenant AND i.id = c.intent_id WHERE i.id IS NULL;

-- name: a_line_of_an_access_list_belongs_to_no_intent
SELECT g.tenant, g.intent_id, g.id FROM intent_grants g
LEFT JOIN intents i ON i.tenant = g.tenant AND i.id = g.intent_id WHERE i.id IS NULL;

-- name: an_attachment_belongs_to_no_intent
SELECT a.tenant, a.id FROM attachments a
LEFT JOIN intents i ON i.tenant = a.tenant AND i.id = a.intent_id WHERE i.id IS NULL;

-- name: content_is_kept_of_an_attachment_that_is_gone
SELECT DISTINCT p.tenant, p.attachment_id FROM attachment_pieces p
LEFT JOIN attachments a ON a.tenant = p.tenant AND a.id = p.attachment_id WHERE a.id IS NULL;

-- name: a_piece_of_the_content_of_an_attachment_is_missing
SELECT tenant, attachment_id FROM attachment_pieces
GROUP BY tenant, attachment_id HAVING count(*) <> max(place) + 1 OR min(place) <> 0;

-- name: a_lease_has_a_token_that_was_never_given
SELECT l.tenant, l.id FROM leases l
LEFT JOIN counters c ON c.tenant = l.tenant AND c.name = 'fencing'
WHERE l.token > coalesce(c.value, 0) OR l.token < 1;
