-- What people did. Entities of any type may be named, so that no foreign key can.
CREATE TABLE audit_log (
    id UUID NOT NULL PRIMARY KEY,
    created_time BIGINT NOT NULL,
    tenant_id UUID REFERENCES tenant (id) ON DELETE CASCADE,
    customer_id UUID,
    entity_type BIGINT NOT NULL,
    entity_id UUID NOT NULL,
    entity_name TEXT NOT NULL,
    user_id UUID NOT NULL,
    user_name TEXT NOT NULL,
    action KEYTEXT NOT NULL,
    succeeded BOOLEAN NOT NULL,
    search TEXT NOT NULL,
    data TEXT NOT NULL,
    details TEXT NOT NULL
);
CREATE INDEX audit_log_by_time ON audit_log (tenant_id, created_time, id);
CREATE INDEX audit_log_by_entity ON audit_log (entity_id, created_time, id);
CREATE INDEX audit_log_by_user ON audit_log (user_id, created_time, id);
CREATE INDEX audit_log_by_customer ON audit_log (customer_id, created_time, id) WHERE customer_id IS NOT NULL;
CREATE INDEX audit_log_by_age ON audit_log (created_time);
