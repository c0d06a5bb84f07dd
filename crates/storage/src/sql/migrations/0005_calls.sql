-- Calls to devices that are kept until the device has taken them, or they expire.

CREATE TABLE rpc (
    id UUID NOT NULL PRIMARY KEY,
    created_time BIGINT NOT NULL,
    tenant_id UUID NOT NULL REFERENCES tenant (id) ON DELETE CASCADE,
    device_id UUID NOT NULL REFERENCES device (id) ON DELETE CASCADE,
    expiration_time BIGINT NOT NULL,
    status KEYTEXT NOT NULL,
    number BIGINT NOT NULL,
    request TEXT NOT NULL,
    response TEXT,
    additional_info TEXT
);
CREATE INDEX rpc_by_device ON rpc (tenant_id, device_id, created_time, id);
CREATE INDEX rpc_by_tenant ON rpc (tenant_id, created_time);
-- Only those that still wait for something.
CREATE INDEX rpc_by_end ON rpc (expiration_time) WHERE status IN ('QUEUED', 'SENT', 'DELIVERED', 'TIMEOUT');
CREATE INDEX rpc_open_by_device ON rpc (device_id, created_time)
    WHERE status IN ('QUEUED', 'SENT', 'DELIVERED', 'TIMEOUT');
