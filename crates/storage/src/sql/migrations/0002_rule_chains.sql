-- Rule chains, queues, events.

CREATE TABLE rule_chain (
    id UUID NOT NULL PRIMARY KEY,
    created_time BIGINT NOT NULL,
    tenant_id UUID NOT NULL REFERENCES tenant (id) ON DELETE CASCADE,
    name KEYTEXT NOT NULL,
    type KEYTEXT NOT NULL,
    is_root BOOLEAN NOT NULL,
    first_node_id UUID,
    search KEYTEXT NOT NULL,
    notes TEXT,
    version BIGINT NOT NULL,
    doc TEXT NOT NULL,
    UNIQUE (tenant_id, id)
);
-- At most one root chain a tenant and type.
CREATE UNIQUE INDEX rule_chain_tenant_id_type_key ON rule_chain (tenant_id, type) WHERE is_root;
CREATE INDEX rule_chain_by_time ON rule_chain (tenant_id, created_time, id);
CREATE INDEX rule_chain_by_name ON rule_chain (tenant_id, type, name);

CREATE TABLE rule_node (
    id UUID NOT NULL PRIMARY KEY,
    created_time BIGINT NOT NULL,
    tenant_id UUID NOT NULL,
    chain_id UUID NOT NULL,
    place BIGINT NOT NULL,
    type KEYTEXT NOT NULL,
    doc TEXT NOT NULL,
    FOREIGN KEY (tenant_id, chain_id) REFERENCES rule_chain (tenant_id, id) ON DELETE CASCADE
);
CREATE INDEX rule_node_by_chain ON rule_node (tenant_id, chain_id, place);
CREATE INDEX rule_node_by_type ON rule_node (tenant_id, type);

CREATE TABLE rule_connection (
    from_id UUID NOT NULL REFERENCES rule_node (id) ON DELETE CASCADE,
    to_id UUID NOT NULL REFERENCES rule_node (id) ON DELETE CASCADE,
    label KEYTEXT NOT NULL,
    PRIMARY KEY (from_id, to_id, label)
);
CREATE INDEX rule_connection_by_target ON rule_connection (to_id);

ALTER TABLE device_profile ADD COLUMN default_rule_chain_id UUID REFERENCES rule_chain (id);
CREATE INDEX device_profile_by_rule_chain ON device_profile (default_rule_chain_id)
    WHERE default_rule_chain_id IS NOT NULL;

-- Queues without a tenant are shared.
CREATE TABLE queue (
    id UUID NOT NULL PRIMARY KEY,
    created_time BIGINT NOT NULL,
    tenant_id UUID REFERENCES tenant (id) ON DELETE CASCADE,
    name KEYTEXT NOT NULL,
    topic KEYTEXT NOT NULL,
    partitions BIGINT NOT NULL,
    search KEYTEXT NOT NULL,
    version BIGINT NOT NULL,
    doc TEXT NOT NULL,
    UNIQUE (tenant_id, name),
    UNIQUE (tenant_id, topic)
);
CREATE UNIQUE INDEX queue_name_key ON queue (name) WHERE tenant_id IS NULL;
CREATE UNIQUE INDEX queue_topic_key ON queue (topic) WHERE tenant_id IS NULL;

-- One table for all kinds of events; what a kind does not have is null.
CREATE TABLE event (
    id UUID NOT NULL PRIMARY KEY,
    created_time BIGINT NOT NULL,
    tenant_id UUID REFERENCES tenant (id) ON DELETE CASCADE,
    entity_type KEYTEXT NOT NULL,
    entity_id UUID NOT NULL,
    kind KEYTEXT NOT NULL,
    server TEXT NOT NULL,
    name TEXT,
    field_id UUID,
    about_type TEXT,
    about_id UUID,
    msg_id UUID,
    msg_type TEXT,
    data_type TEXT,
    relation_type TEXT,
    data TEXT,
    metadata TEXT,
    success BOOLEAN NOT NULL,
    messages BIGINT NOT NULL,
    errors BIGINT NOT NULL,
    error TEXT
);
CREATE INDEX event_by_entity ON event (tenant_id, entity_id, kind, created_time, id);
CREATE INDEX event_by_kind ON event (kind, created_time);
