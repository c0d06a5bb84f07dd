-- Shared subscriptions that programs have announced for clients of the publish/subscribe broker.
CREATE TABLE shared_subscription (
    id UUID NOT NULL PRIMARY KEY,
    created_time BIGINT NOT NULL,
    name KEYTEXT NOT NULL,
    topic_filter KEYTEXT NOT NULL UNIQUE,
    partitions BIGINT NOT NULL,
    search KEYTEXT NOT NULL
);
CREATE INDEX shared_subscription_by_time ON shared_subscription (created_time, id);
