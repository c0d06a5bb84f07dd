-- Entities that are gone and may have left values and events; a tenant stands for all that was its. Without references: what
-- is named is gone.
CREATE TABLE leftover (
    tenant_id UUID NOT NULL,
    entity_type BIGINT NOT NULL,
    entity_id UUID NOT NULL,
    is_last BOOLEAN NOT NULL,
    due_time BIGINT NOT NULL,
    PRIMARY KEY (tenant_id, entity_type, entity_id)
);
CREATE INDEX leftover_by_due ON leftover (is_last, due_time);
