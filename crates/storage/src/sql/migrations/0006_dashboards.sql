-- Dashboards. `body` is what a dashboard shows, which lists leave out.

CREATE TABLE dashboard (
    id UUID NOT NULL PRIMARY KEY,
    created_time BIGINT NOT NULL,
    tenant_id UUID NOT NULL REFERENCES tenant (id) ON DELETE CASCADE,
    title KEYTEXT NOT NULL,
    search KEYTEXT NOT NULL,
    mobile_hide BOOLEAN NOT NULL,
    mobile_order BIGINT,
    version BIGINT NOT NULL,
    doc TEXT NOT NULL,
    body TEXT NOT NULL,
    UNIQUE (tenant_id, id)
);
CREATE INDEX dashboard_by_time ON dashboard (tenant_id, created_time, id);
CREATE INDEX dashboard_by_search ON dashboard (tenant_id, search, id);

-- The customers whose users may see a dashboard.
CREATE TABLE dashboard_customer (
    tenant_id UUID NOT NULL,
    dashboard_id UUID NOT NULL,
    customer_id UUID NOT NULL,
    PRIMARY KEY (tenant_id, dashboard_id, customer_id),
    FOREIGN KEY (tenant_id, dashboard_id) REFERENCES dashboard (tenant_id, id) ON DELETE CASCADE,
    FOREIGN KEY (tenant_id, customer_id) REFERENCES customer (tenant_id, id) ON DELETE CASCADE
);
CREATE INDEX dashboard_customer_by_customer ON dashboard_customer (tenant_id, customer_id, dashboard_id);
