-- The tenants of a restore that is not finished. Servers do not open the store while there is a row,
-- because the restore has not erased yet what was forgotten since the backup.

CREATE TABLE restores (
    tenant text COLLATE "C" NOT NULL PRIMARY KEY
);

ALTER TABLE restores ENABLE ROW LEVEL SECURITY;
ALTER TABLE restores FORCE ROW LEVEL SECURITY;
CREATE POLICY own_tenant ON restores
    USING (tenant = nullif(current_setting('memorywall.tenant', true), ''));
CREATE POLICY registry ON restores FOR SELECT
    USING (current_setting('memorywall.registry', true) = 'on');
GRANT SELECT, INSERT, UPDATE, DELETE ON restores TO memorywall_app;
