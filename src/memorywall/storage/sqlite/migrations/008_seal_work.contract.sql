-- The working state of tasks and intents is sealed. `sealing_key` names the data key; it is '' where
-- there is nothing to seal, and NULL where a record was written before or holds something in the
-- clear, until it is written again or a job seals it. An attachment may belong to an entry.

ALTER TABLE intents ADD COLUMN sealing_key TEXT;
ALTER TABLE intents ADD COLUMN sealed BLOB;
ALTER TABLE tasks ADD COLUMN sealing_key TEXT;
ALTER TABLE tasks ADD COLUMN sealed BLOB;

CREATE INDEX intents_unsealed ON intents (tenant, id) WHERE sealing_key IS NULL;
CREATE INDEX intents_by_sealing_key ON intents (tenant, sealing_key, id) WHERE sealing_key > '';
CREATE INDEX tasks_unsealed ON tasks (tenant, id) WHERE sealing_key IS NULL;
CREATE INDEX tasks_by_sealing_key ON tasks (tenant, sealing_key, id) WHERE sealing_key > '';

CREATE TABLE new_attachments (
    tenant TEXT NOT NULL,
    id TEXT NOT NULL,
    intent_id TEXT,
    entry_id TEXT,
    body TEXT NOT NULL,
    PRIMARY KEY (tenant, id)
) STRICT;

INSERT INTO new_attachments (tenant, id, intent_id, body)
SELECT tenant, id, intent_id, body FROM attachments;

DROP TABLE attachments;
ALTER TABLE new_attachments RENAME TO attachments;

CREATE INDEX attachments_by_intent ON attachments (tenant, intent_id, id)
    WHERE intent_id IS NOT NULL;
CREATE INDEX attachments_by_entry ON attachments (tenant, entry_id, id)
    WHERE entry_id IS NOT NULL;
