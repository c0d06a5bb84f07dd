-- Devices that went from one tenant to another a while ago: what still comes for them there follows them. Without references:
-- the device or the tenant may be gone.
CREATE TABLE device_move (
    device_id UUID NOT NULL,
    from_tenant_id UUID NOT NULL,
    ts BIGINT NOT NULL,
    PRIMARY KEY (device_id, from_tenant_id)
);
CREATE INDEX device_move_by_time ON device_move (ts, device_id);
