-- API keys that expire, are limited to namespaces, and know when they were used last. NULL means no
-- limit.
ALTER TABLE api_keys ADD COLUMN namespaces text COLLATE "C";
ALTER TABLE api_keys ADD COLUMN expires_at text COLLATE "C";
ALTER TABLE api_keys ADD COLUMN last_used_at text COLLATE "C";

-- The data keys whose content is being sealed anew, which are few.
CREATE INDEX data_keys_replaced ON data_keys (tenant, id) WHERE purpose = 'replaced';
