-- Keys that programs use in the place of a password; of their values only the hash is kept.
CREATE TABLE api_key (
    id UUID NOT NULL PRIMARY KEY,
    created_time BIGINT NOT NULL,
    tenant_id UUID,
    user_id UUID NOT NULL REFERENCES user_account (id) ON DELETE CASCADE,
    value_hash KEYTEXT NOT NULL UNIQUE,
    enabled BOOLEAN NOT NULL,
    expiration BIGINT NOT NULL,
    description TEXT NOT NULL,
    search KEYTEXT NOT NULL
);
CREATE INDEX api_key_by_user ON api_key (user_id, created_time, id);
