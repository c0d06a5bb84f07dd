-- Resources: files that people upload. Rows without a tenant are the system's. Data is kept in pieces under a file, which becomes
-- a resource's once it is whole.
CREATE TABLE resource_file (
    id UUID NOT NULL PRIMARY KEY,
    tenant_id UUID REFERENCES tenant (id) ON DELETE CASCADE,
    created_time BIGINT NOT NULL
);
CREATE INDEX resource_file_by_tenant ON resource_file (tenant_id, created_time, id);

CREATE TABLE resource_piece (
    file_id UUID NOT NULL REFERENCES resource_file (id) ON DELETE CASCADE,
    number BIGINT NOT NULL,
    bytes BYTEA NOT NULL,
    PRIMARY KEY (file_id, number)
);

CREATE TABLE tb_resource (
    id UUID NOT NULL PRIMARY KEY,
    created_time BIGINT NOT NULL,
    tenant_id UUID REFERENCES tenant (id) ON DELETE CASCADE,
    kind KEYTEXT NOT NULL,
    sub_kind KEYTEXT NOT NULL,
    title KEYTEXT NOT NULL,
    search KEYTEXT NOT NULL,
    resource_key KEYTEXT NOT NULL,
    is_public BOOLEAN NOT NULL,
    public_key KEYTEXT UNIQUE,
    etag KEYTEXT NOT NULL,
    file_id UUID NOT NULL REFERENCES resource_file (id),
    data_size BIGINT NOT NULL,
    preview_id UUID REFERENCES resource_file (id),
    preview_size BIGINT,
    lwm2m TEXT,
    version BIGINT NOT NULL,
    doc TEXT NOT NULL,
    UNIQUE (tenant_id, kind, resource_key)
);
CREATE UNIQUE INDEX tb_resource_kind_resource_key_key ON tb_resource (kind, resource_key) WHERE tenant_id IS NULL;
CREATE INDEX tb_resource_by_time ON tb_resource (tenant_id, created_time, id);
CREATE INDEX tb_resource_by_etag ON tb_resource (kind, etag);
CREATE INDEX tb_resource_by_file ON tb_resource (file_id);
CREATE INDEX tb_resource_by_preview ON tb_resource (preview_id) WHERE preview_id IS NOT NULL;
