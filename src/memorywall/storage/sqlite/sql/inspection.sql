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

-- name: the_log_of_a_tenant_has_a_gap
SELECT tenant, count(*), max(seq) FROM events GROUP BY tenant HAVING count(*) <> max(seq);
