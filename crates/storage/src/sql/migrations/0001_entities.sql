-- KEYTEXT is text that sorts by code point in both databases. Columns named *_key, and `search`, hold lower-cased text.
-- Unique constraints have no names of their own: messages go by the name PostgreSQL makes, <table>_<columns>_key.

CREATE TABLE tenant_profile (
    id UUID NOT NULL PRIMARY KEY,
    created_time BIGINT NOT NULL,
    name KEYTEXT NOT NULL UNIQUE,
    is_default BOOLEAN NOT NULL,
    search KEYTEXT NOT NULL,
    description_key KEYTEXT NOT NULL,
    version BIGINT NOT NULL,
    doc TEXT NOT NULL
);
-- At most one row says that it is the default.
CREATE UNIQUE INDEX tenant_profile_is_default_key ON tenant_profile (is_default) WHERE is_default;

CREATE TABLE tenant (
    id UUID NOT NULL PRIMARY KEY,
    created_time BIGINT NOT NULL,
    title KEYTEXT NOT NULL UNIQUE,
    tenant_profile_id UUID REFERENCES tenant_profile (id),
    search KEYTEXT NOT NULL,
    email_key KEYTEXT NOT NULL,
    region_key KEYTEXT NOT NULL,
    country_key KEYTEXT NOT NULL,
    city_key KEYTEXT NOT NULL,
    version BIGINT NOT NULL,
    doc TEXT NOT NULL
);
CREATE INDEX tenant_by_profile ON tenant (tenant_profile_id);
CREATE INDEX tenant_by_time ON tenant (created_time, id);
CREATE INDEX tenant_by_search ON tenant (search, id);

CREATE TABLE customer (
    id UUID NOT NULL PRIMARY KEY,
    created_time BIGINT NOT NULL,
    tenant_id UUID NOT NULL REFERENCES tenant (id) ON DELETE CASCADE,
    title KEYTEXT NOT NULL,
    is_public BOOLEAN NOT NULL,
    search KEYTEXT NOT NULL,
    email_key KEYTEXT NOT NULL,
    country_key KEYTEXT NOT NULL,
    city_key KEYTEXT NOT NULL,
    version BIGINT NOT NULL,
    doc TEXT NOT NULL,
    UNIQUE (tenant_id, title),
    UNIQUE (tenant_id, id)
);
CREATE INDEX customer_by_time ON customer (tenant_id, created_time, id);
CREATE INDEX customer_by_search ON customer (tenant_id, search, id);

CREATE TABLE user_account (
    id UUID NOT NULL PRIMARY KEY,
    created_time BIGINT NOT NULL,
    tenant_id UUID REFERENCES tenant (id) ON DELETE CASCADE,
    customer_id UUID,
    email KEYTEXT NOT NULL,
    email_key KEYTEXT NOT NULL UNIQUE,
    authority KEYTEXT NOT NULL,
    search KEYTEXT NOT NULL,
    first_name_key KEYTEXT NOT NULL,
    last_name_key KEYTEXT NOT NULL,
    version BIGINT NOT NULL,
    doc TEXT NOT NULL,
    FOREIGN KEY (tenant_id, customer_id) REFERENCES customer (tenant_id, id) ON DELETE CASCADE
);
CREATE INDEX user_account_by_time ON user_account (tenant_id, created_time, id);
CREATE INDEX user_account_by_customer ON user_account (tenant_id, customer_id);

CREATE TABLE user_credentials (
    user_id UUID NOT NULL PRIMARY KEY REFERENCES user_account (id) ON DELETE CASCADE,
    enabled BOOLEAN NOT NULL,
    password_hash TEXT,
    activate_token KEYTEXT UNIQUE,
    tokens_valid_from BIGINT NOT NULL
);

CREATE TABLE device_profile (
    id UUID NOT NULL PRIMARY KEY,
    created_time BIGINT NOT NULL,
    tenant_id UUID NOT NULL REFERENCES tenant (id) ON DELETE CASCADE,
    name KEYTEXT NOT NULL,
    is_default BOOLEAN NOT NULL,
    provision_key KEYTEXT UNIQUE,
    search KEYTEXT NOT NULL,
    type_key KEYTEXT NOT NULL,
    transport_type KEYTEXT NOT NULL,
    description_key KEYTEXT NOT NULL,
    version BIGINT NOT NULL,
    doc TEXT NOT NULL,
    UNIQUE (tenant_id, name),
    UNIQUE (tenant_id, id)
);
-- At most one default profile a tenant.
CREATE UNIQUE INDEX device_profile_tenant_id_key ON device_profile (tenant_id) WHERE is_default;

CREATE TABLE device (
    id UUID NOT NULL PRIMARY KEY,
    created_time BIGINT NOT NULL,
    tenant_id UUID NOT NULL REFERENCES tenant (id) ON DELETE CASCADE,
    customer_id UUID,
    profile_id UUID NOT NULL,
    name KEYTEXT NOT NULL,
    search KEYTEXT NOT NULL,
    label_key KEYTEXT NOT NULL,
    active BOOLEAN NOT NULL DEFAULT FALSE,
    version BIGINT NOT NULL,
    doc TEXT NOT NULL,
    UNIQUE (tenant_id, name),
    FOREIGN KEY (tenant_id, customer_id) REFERENCES customer (tenant_id, id),
    FOREIGN KEY (tenant_id, profile_id) REFERENCES device_profile (tenant_id, id)
);
-- These two end with what a text search looks at, so that it need not touch the table. `search` begins with the name, and
-- so sorts by it.
CREATE INDEX device_by_time ON device (tenant_id, created_time, id, search, profile_id, customer_id);
CREATE INDEX device_by_search ON device (tenant_id, search, id, profile_id, customer_id);
CREATE INDEX device_by_profile ON device (tenant_id, profile_id, created_time, id);
CREATE INDEX device_by_customer ON device (tenant_id, customer_id, created_time, id) WHERE customer_id IS NOT NULL;
CREATE INDEX device_by_active ON device (tenant_id, active, created_time, id);

CREATE TABLE device_credentials (
    device_id UUID NOT NULL PRIMARY KEY REFERENCES device (id) ON DELETE CASCADE,
    id UUID NOT NULL,
    created_time BIGINT NOT NULL,
    kind KEYTEXT NOT NULL,
    credentials_id KEYTEXT UNIQUE,
    value TEXT,
    version BIGINT NOT NULL
);
