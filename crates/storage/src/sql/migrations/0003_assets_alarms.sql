-- Assets, relations, entity views, alarms. Entity types are kept as the codes of their ids.

CREATE TABLE asset_profile (
    id UUID NOT NULL PRIMARY KEY,
    created_time BIGINT NOT NULL,
    tenant_id UUID NOT NULL REFERENCES tenant (id) ON DELETE CASCADE,
    name KEYTEXT NOT NULL,
    is_default BOOLEAN NOT NULL,
    default_rule_chain_id UUID,
    search KEYTEXT NOT NULL,
    description_key KEYTEXT NOT NULL,
    version BIGINT NOT NULL,
    doc TEXT NOT NULL,
    UNIQUE (tenant_id, name),
    UNIQUE (tenant_id, id),
    FOREIGN KEY (tenant_id, default_rule_chain_id) REFERENCES rule_chain (tenant_id, id)
);
-- At most one default profile a tenant.
CREATE UNIQUE INDEX asset_profile_tenant_id_key ON asset_profile (tenant_id) WHERE is_default;

CREATE INDEX asset_profile_by_rule_chain ON asset_profile (tenant_id, default_rule_chain_id)
    WHERE default_rule_chain_id IS NOT NULL;

CREATE TABLE asset (
    id UUID NOT NULL PRIMARY KEY,
    created_time BIGINT NOT NULL,
    tenant_id UUID NOT NULL REFERENCES tenant (id) ON DELETE CASCADE,
    customer_id UUID,
    profile_id UUID NOT NULL,
    name KEYTEXT NOT NULL,
    search KEYTEXT NOT NULL,
    label_key KEYTEXT NOT NULL,
    version BIGINT NOT NULL,
    doc TEXT NOT NULL,
    UNIQUE (tenant_id, name),
    FOREIGN KEY (tenant_id, customer_id) REFERENCES customer (tenant_id, id),
    FOREIGN KEY (tenant_id, profile_id) REFERENCES asset_profile (tenant_id, id)
);
CREATE INDEX asset_by_time ON asset (tenant_id, created_time, id, search, profile_id, customer_id);
CREATE INDEX asset_by_search ON asset (tenant_id, search, id, profile_id, customer_id);
CREATE INDEX asset_by_profile ON asset (tenant_id, profile_id, created_time, id);
CREATE INDEX asset_by_customer ON asset (tenant_id, customer_id, created_time, id) WHERE customer_id IS NOT NULL;

CREATE TABLE entity_view (
    id UUID NOT NULL PRIMARY KEY,
    created_time BIGINT NOT NULL,
    tenant_id UUID NOT NULL REFERENCES tenant (id) ON DELETE CASCADE,
    customer_id UUID,
    entity_type BIGINT NOT NULL,
    entity_id UUID NOT NULL,
    name KEYTEXT NOT NULL,
    type KEYTEXT NOT NULL,
    type_key KEYTEXT NOT NULL,
    search KEYTEXT NOT NULL,
    version BIGINT NOT NULL,
    doc TEXT NOT NULL,
    UNIQUE (tenant_id, name),
    FOREIGN KEY (tenant_id, customer_id) REFERENCES customer (tenant_id, id)
);
CREATE INDEX entity_view_by_time ON entity_view (tenant_id, created_time, id);
CREATE INDEX entity_view_by_search ON entity_view (tenant_id, search, id);
CREATE INDEX entity_view_by_type ON entity_view (tenant_id, type);
CREATE INDEX entity_view_by_entity ON entity_view (tenant_id, entity_id);
CREATE INDEX entity_view_by_customer ON entity_view (tenant_id, customer_id, created_time, id)
    WHERE customer_id IS NOT NULL;

-- Entities of any type may stand at the ends, so that no foreign key can.
CREATE TABLE relation (
    tenant_id UUID NOT NULL REFERENCES tenant (id) ON DELETE CASCADE,
    from_type BIGINT NOT NULL,
    from_id UUID NOT NULL,
    to_type BIGINT NOT NULL,
    to_id UUID NOT NULL,
    type_group KEYTEXT NOT NULL,
    type KEYTEXT NOT NULL,
    additional_info TEXT,
    version BIGINT NOT NULL,
    PRIMARY KEY (tenant_id, from_id, from_type, type_group, type, to_id, to_type)
);
CREATE INDEX relation_by_to ON relation (tenant_id, to_id, type_group, type);

CREATE TABLE alarm (
    id UUID NOT NULL PRIMARY KEY,
    created_time BIGINT NOT NULL,
    tenant_id UUID NOT NULL REFERENCES tenant (id) ON DELETE CASCADE,
    customer_id UUID,
    originator_type BIGINT NOT NULL,
    originator_id UUID NOT NULL,
    type KEYTEXT NOT NULL,
    severity KEYTEXT NOT NULL,
    acknowledged BOOLEAN NOT NULL,
    cleared BOOLEAN NOT NULL,
    assignee_id UUID,
    start_ts BIGINT NOT NULL,
    end_ts BIGINT NOT NULL,
    ack_ts BIGINT NOT NULL,
    clear_ts BIGINT NOT NULL,
    assign_ts BIGINT NOT NULL,
    propagate BOOLEAN NOT NULL,
    propagate_to_owner BOOLEAN NOT NULL,
    propagate_to_tenant BOOLEAN NOT NULL,
    relation_types TEXT NOT NULL,
    details TEXT,
    search KEYTEXT NOT NULL
);
-- One active alarm an originator and type.
CREATE UNIQUE INDEX alarm_active_key ON alarm (tenant_id, originator_id, type) WHERE NOT cleared;
CREATE INDEX alarm_by_time ON alarm (tenant_id, created_time, id);
CREATE INDEX alarm_by_end ON alarm (tenant_id, end_ts);
CREATE INDEX alarm_by_type ON alarm (tenant_id, type);
CREATE INDEX alarm_by_originator ON alarm (tenant_id, originator_id);
CREATE INDEX alarm_by_customer ON alarm (tenant_id, customer_id, created_time, id) WHERE customer_id IS NOT NULL;
CREATE INDEX alarm_by_assignee ON alarm (tenant_id, assignee_id) WHERE assignee_id IS NOT NULL;

-- Where an alarm shows; its originator is among them.
CREATE TABLE entity_alarm (
    alarm_id UUID NOT NULL REFERENCES alarm (id) ON DELETE CASCADE,
    tenant_id UUID NOT NULL,
    entity_type BIGINT NOT NULL,
    entity_id UUID NOT NULL,
    PRIMARY KEY (alarm_id, entity_id, entity_type)
);
CREATE INDEX entity_alarm_by_entity ON entity_alarm (tenant_id, entity_id, entity_type, alarm_id);
CREATE INDEX entity_alarm_by_type ON entity_alarm (tenant_id, entity_type, alarm_id);

CREATE TABLE alarm_type (
    tenant_id UUID NOT NULL REFERENCES tenant (id) ON DELETE CASCADE,
    type KEYTEXT NOT NULL,
    search KEYTEXT NOT NULL,
    PRIMARY KEY (tenant_id, type)
);

CREATE TABLE alarm_comment (
    id UUID NOT NULL PRIMARY KEY,
    created_time BIGINT NOT NULL,
    alarm_id UUID NOT NULL REFERENCES alarm (id) ON DELETE CASCADE,
    tenant_id UUID NOT NULL,
    user_id UUID,
    type KEYTEXT NOT NULL,
    comment TEXT NOT NULL
);
CREATE INDEX alarm_comment_by_alarm ON alarm_comment (alarm_id, created_time, id);
