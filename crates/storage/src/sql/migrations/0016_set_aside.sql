-- Records that were taken out of their queue. Their entity may be gone.
CREATE TABLE set_aside (
    id UUID NOT NULL PRIMARY KEY,
    created_time BIGINT NOT NULL,
    tenant_id UUID NOT NULL REFERENCES tenant (id) ON DELETE CASCADE,
    entity_type BIGINT NOT NULL,
    entity_id UUID NOT NULL,
    queue_name KEYTEXT NOT NULL,
    queue_partition BIGINT NOT NULL,
    queue_offset BIGINT NOT NULL,
    received_time BIGINT NOT NULL,
    reason KEYTEXT NOT NULL,
    details TEXT NOT NULL,
    deaths BIGINT NOT NULL,
    size BIGINT NOT NULL,
    search KEYTEXT NOT NULL,
    bytes BYTEA NOT NULL
);
CREATE INDEX set_aside_by_tenant ON set_aside (tenant_id, created_time, id);
CREATE INDEX set_aside_by_time ON set_aside (created_time, id);

-- How much of it each tenant has, so that keeping a record does not count all others.
CREATE TABLE set_aside_use (
    tenant_id UUID NOT NULL PRIMARY KEY REFERENCES tenant (id) ON DELETE CASCADE,
    bytes BIGINT NOT NULL
);
