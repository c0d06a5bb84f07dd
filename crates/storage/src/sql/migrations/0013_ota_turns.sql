-- Turns go around among tenants, and what failed is tried again later.

ALTER TABLE ota_update ADD COLUMN not_before BIGINT NOT NULL DEFAULT 0;
DROP INDEX ota_update_by_turn;
CREATE INDEX ota_update_by_turn ON ota_update (tenant_id, not_before, is_own DESC, ts, device_id) WHERE NOT is_told;
