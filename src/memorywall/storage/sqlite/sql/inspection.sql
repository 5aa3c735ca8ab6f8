-- Each statement lists what is wrong; where nothing is wrong it lists nothing. Its name says what.

-- name: a_tag_of_an_entry_is_not_in_the_tag_index
SELECT e.tenant, e.id FROM entries e, json_each(e.tags) t
WHERE NOT EXISTS (SELECT 1 FROM entry_tags i WHERE i.tenant = e.tenant AND i.owner = e.owner
    AND i.tag = t.value AND i.number = e.number);

-- name: the_tag_index_has_a_tag_that_no_entry_has
SELECT i.tenant, i.number FROM entry_tags i
LEFT JOIN entries e ON e.number = i.number AND e.tenant = i.tenant AND e.owner = i.owner
WHERE e.number IS NULL OR NOT EXISTS (SELECT 1 FROM json_each(e.tags) t WHERE t.value = i.tag);

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
