-- API keys that expire, are limited to namespaces, and know when they were used last. NULL means no
-- limit.
ALTER TABLE api_keys ADD COLUMN namespaces TEXT;
ALTER TABLE api_keys ADD COLUMN expires_at TEXT;
ALTER TABLE api_keys ADD COLUMN last_used_at TEXT;

-- The data keys whose content is being sealed anew, which are few.
CREATE INDEX data_keys_replaced ON data_keys (tenant, id) WHERE purpose = 'replaced';
