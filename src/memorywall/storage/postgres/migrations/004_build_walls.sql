-- Row-level security. A transaction says whose it is in `memorywall.tenant` and sees nothing else;
-- one that says nothing, or leaves it empty as the transaction before has, sees nothing. What has to
-- be known before the tenant is, is seen by a transaction that says so in `memorywall.registry`: which
-- tenants, keys and wrapped data keys there are, and how far each tenant's log has come. It changes
-- nothing.

DO $$
DECLARE
    table_name text;
BEGIN
    FOREACH table_name IN ARRAY ARRAY[
        'principals', 'agent_limits', 'counters', 'entries', 'entry_tags', 'usage', 'events',
        'namespaces', 'namespace_grants', 'kept_replies', 'kept_reply_entries', 'writers', 'leases',
        'intents', 'intent_needs', 'intent_grants', 'tasks', 'coordinators', 'attachments',
        'attachment_pieces', 'api_keys', 'data_keys', 'heads'
    ] LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', table_name);
        EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', table_name);
        EXECUTE format('CREATE POLICY own_tenant ON %I'
            ' USING (tenant = nullif(current_setting(''memorywall.tenant'', true), ''''))', table_name);
        EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON %I TO memorywall_app', table_name);
    END LOOP;
    FOREACH table_name IN ARRAY ARRAY['api_keys', 'data_keys', 'heads'] LOOP
        EXECUTE format('CREATE POLICY registry ON %I FOR SELECT'
            ' USING (current_setting(''memorywall.registry'', true) = ''on'')', table_name);
    END LOOP;
END
$$;

ALTER TABLE tenants ENABLE ROW LEVEL SECURITY;
ALTER TABLE tenants FORCE ROW LEVEL SECURITY;
CREATE POLICY own_tenant ON tenants USING (name = nullif(current_setting('memorywall.tenant', true), ''));
CREATE POLICY registry ON tenants FOR SELECT
    USING (current_setting('memorywall.registry', true) = 'on');
GRANT SELECT, INSERT, UPDATE, DELETE ON tenants TO memorywall_app;

GRANT USAGE ON SCHEMA memorywall TO memorywall_app;
GRANT SELECT ON migrations TO memorywall_app;
