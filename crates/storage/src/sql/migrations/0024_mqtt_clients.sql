-- Credentials of clients of the publish/subscribe broker. What lists are filtered by stands in columns of its own.
CREATE TABLE mqtt_credentials (
    id UUID NOT NULL PRIMARY KEY,
    created_time BIGINT NOT NULL,
    name KEYTEXT NOT NULL UNIQUE,
    client_type KEYTEXT NOT NULL,
    credentials_type KEYTEXT NOT NULL,
    credentials_id KEYTEXT NOT NULL UNIQUE,
    credentials_value TEXT NOT NULL,
    additional_info TEXT NOT NULL,
    username TEXT,
    client_id TEXT,
    common_name TEXT,
    has_pattern BOOLEAN NOT NULL,
    search KEYTEXT NOT NULL
);
CREATE INDEX mqtt_credentials_by_time ON mqtt_credentials (created_time, id);
CREATE INDEX mqtt_credentials_by_pattern ON mqtt_credentials (created_time, id) WHERE has_pattern;
CREATE INDEX mqtt_credentials_by_client ON mqtt_credentials (client_type);
-- Clients that may not connect; the target is empty where there is none.
CREATE TABLE blocked_client (
    type KEYTEXT NOT NULL,
    value KEYTEXT NOT NULL,
    target KEYTEXT NOT NULL,
    expiration BIGINT NOT NULL,
    description TEXT,
    PRIMARY KEY (type, value, target)
);
