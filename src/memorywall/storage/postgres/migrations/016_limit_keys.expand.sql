-- API keys that expire, are limited to namespaces, and know when they were used last.
ALTER TABLE api_keys ADD COLUMN namespaces text COLLATE "C" NOT NULL DEFAULT '[]';
ALTER TABLE api_keys ADD COLUMN expires_at text COLLATE "C";
ALTER TABLE api_keys ADD COLUMN last_used_at text COLLATE "C";
