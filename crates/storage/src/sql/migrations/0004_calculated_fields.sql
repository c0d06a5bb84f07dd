-- Calculated fields. Entity types are kept as the codes of their ids.

CREATE TABLE calculated_field (
    id UUID NOT NULL PRIMARY KEY,
    created_time BIGINT NOT NULL,
    tenant_id UUID NOT NULL REFERENCES tenant (id) ON DELETE CASCADE,
    entity_type BIGINT NOT NULL,
    entity_id UUID NOT NULL,
    type KEYTEXT NOT NULL,
    name KEYTEXT NOT NULL,
    search KEYTEXT NOT NULL,
    version BIGINT NOT NULL,
    doc TEXT NOT NULL,
    UNIQUE (tenant_id, entity_id, type, name)
);
CREATE INDEX calculated_field_by_time ON calculated_field (tenant_id, created_time, id);
CREATE INDEX calculated_field_by_search ON calculated_field (tenant_id, search, id);

-- The other entities that the arguments of a field name.
CREATE TABLE calculated_field_reference (
    field_id UUID NOT NULL REFERENCES calculated_field (id) ON DELETE CASCADE,
    tenant_id UUID NOT NULL,
    entity_type BIGINT NOT NULL,
    entity_id UUID NOT NULL,
    PRIMARY KEY (field_id, entity_id, entity_type)
);
CREATE INDEX calculated_field_reference_by_entity ON calculated_field_reference (tenant_id, entity_id);
