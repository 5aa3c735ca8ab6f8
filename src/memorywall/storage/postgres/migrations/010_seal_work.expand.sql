-- The working state of tasks and intents is sealed. `sealing_key` names the data key; it is '' where
-- there is nothing to seal, and NULL where a record was written before or holds something in the
-- clear, until it is written again or a job seals it. An attachment may belong to an entry.

ALTER TABLE intents
    ADD COLUMN sealing_key text COLLATE "C",
    ADD COLUMN sealed bytea;
ALTER TABLE tasks
    ADD COLUMN sealing_key text COLLATE "C",
    ADD COLUMN sealed bytea;

CREATE INDEX intents_unsealed ON intents (tenant, id) WHERE sealing_key IS NULL;
CREATE INDEX intents_by_sealing_key ON intents (tenant, sealing_key, id) WHERE sealing_key > '';
CREATE INDEX tasks_unsealed ON tasks (tenant, id) WHERE sealing_key IS NULL;
CREATE INDEX tasks_by_sealing_key ON tasks (tenant, sealing_key, id) WHERE sealing_key > '';

ALTER TABLE attachments
    ALTER COLUMN intent_id DROP NOT NULL,
    ADD COLUMN entry_id text COLLATE "C";

CREATE INDEX attachments_by_entry ON attachments (tenant, entry_id, id)
    WHERE entry_id IS NOT NULL;
