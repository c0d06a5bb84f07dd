-- The widget library. Rows without a tenant are the system's.
CREATE TABLE widget_type (
    id UUID NOT NULL PRIMARY KEY,
    created_time BIGINT NOT NULL,
    tenant_id UUID REFERENCES tenant (id) ON DELETE CASCADE,
    fqn KEYTEXT NOT NULL,
    name KEYTEXT NOT NULL,
    kind KEYTEXT NOT NULL,
    deprecated BOOLEAN NOT NULL,
    scada BOOLEAN NOT NULL,
    search KEYTEXT NOT NULL,
    full_search TEXT NOT NULL,
    version BIGINT NOT NULL,
    doc TEXT NOT NULL,
    body TEXT NOT NULL,
    UNIQUE (tenant_id, fqn)
);
CREATE UNIQUE INDEX widget_type_fqn_key ON widget_type (fqn) WHERE tenant_id IS NULL;
CREATE INDEX widget_type_by_time ON widget_type (tenant_id, created_time, id);

CREATE TABLE widgets_bundle (
    id UUID NOT NULL PRIMARY KEY,
    created_time BIGINT NOT NULL,
    tenant_id UUID REFERENCES tenant (id) ON DELETE CASCADE,
    alias KEYTEXT NOT NULL,
    title KEYTEXT NOT NULL,
    scada BOOLEAN NOT NULL,
    search KEYTEXT NOT NULL,
    full_search TEXT NOT NULL,
    version BIGINT NOT NULL,
    doc TEXT NOT NULL,
    UNIQUE (tenant_id, alias)
);
CREATE UNIQUE INDEX widgets_bundle_alias_key ON widgets_bundle (alias) WHERE tenant_id IS NULL;
CREATE INDEX widgets_bundle_by_time ON widgets_bundle (tenant_id, created_time, id);

CREATE TABLE widgets_bundle_type (
    bundle_id UUID NOT NULL REFERENCES widgets_bundle (id) ON DELETE CASCADE,
    place BIGINT NOT NULL,
    type_id UUID NOT NULL REFERENCES widget_type (id) ON DELETE CASCADE,
    PRIMARY KEY (bundle_id, place)
);
CREATE INDEX widgets_bundle_type_by_type ON widgets_bundle_type (type_id);
