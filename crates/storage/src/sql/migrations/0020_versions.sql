-- What dashboards and rule chains were at each save. `content` is compressed, `bytes` its length.

CREATE TABLE dashboard_version (
    tenant_id UUID NOT NULL,
    entity_id UUID NOT NULL,
    version BIGINT NOT NULL,
    created_time BIGINT NOT NULL,
    user_id UUID,
    user_name TEXT,
    title TEXT NOT NULL,
    bytes BIGINT NOT NULL,
    content BYTEA NOT NULL,
    PRIMARY KEY (tenant_id, entity_id, version),
    FOREIGN KEY (tenant_id, entity_id) REFERENCES dashboard (tenant_id, id) ON DELETE CASCADE
);

CREATE TABLE rule_chain_version (
    tenant_id UUID NOT NULL,
    entity_id UUID NOT NULL,
    version BIGINT NOT NULL,
    created_time BIGINT NOT NULL,
    user_id UUID,
    user_name TEXT,
    title TEXT NOT NULL,
    bytes BIGINT NOT NULL,
    content BYTEA NOT NULL,
    PRIMARY KEY (tenant_id, entity_id, version),
    FOREIGN KEY (tenant_id, entity_id) REFERENCES rule_chain (tenant_id, id) ON DELETE CASCADE
);
