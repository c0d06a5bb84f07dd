-- OTA packages. Data is kept in pieces under an upload, which becomes a package's data once it is whole.

CREATE TABLE ota_upload (
    id UUID NOT NULL PRIMARY KEY,
    tenant_id UUID NOT NULL REFERENCES tenant (id) ON DELETE CASCADE,
    created_time BIGINT NOT NULL
);
CREATE INDEX ota_upload_by_tenant ON ota_upload (tenant_id);

CREATE TABLE ota_piece (
    upload_id UUID NOT NULL REFERENCES ota_upload (id) ON DELETE CASCADE,
    number BIGINT NOT NULL,
    bytes BYTEA NOT NULL,
    PRIMARY KEY (upload_id, number)
);

-- `version` counts updates, as everywhere; what people call the version is `package_version`.
CREATE TABLE ota_package (
    id UUID NOT NULL PRIMARY KEY,
    created_time BIGINT NOT NULL,
    tenant_id UUID NOT NULL REFERENCES tenant (id) ON DELETE CASCADE,
    profile_id UUID,
    kind KEYTEXT NOT NULL,
    title KEYTEXT NOT NULL,
    package_version KEYTEXT NOT NULL,
    search KEYTEXT NOT NULL,
    version_key KEYTEXT NOT NULL,
    tag_key KEYTEXT NOT NULL,
    url_key KEYTEXT NOT NULL,
    file_key KEYTEXT NOT NULL,
    data_size BIGINT,
    has_url BOOLEAN NOT NULL,
    upload_id UUID REFERENCES ota_upload (id),
    version BIGINT NOT NULL,
    doc TEXT NOT NULL,
    UNIQUE (tenant_id, title, package_version),
    UNIQUE (tenant_id, id),
    FOREIGN KEY (tenant_id, profile_id) REFERENCES device_profile (tenant_id, id) ON DELETE CASCADE
);
CREATE INDEX ota_package_by_time ON ota_package (tenant_id, created_time, id);
CREATE INDEX ota_package_by_profile ON ota_package (tenant_id, profile_id);
CREATE INDEX ota_package_by_upload ON ota_package (upload_id) WHERE upload_id IS NOT NULL;

ALTER TABLE device ADD COLUMN firmware_id UUID REFERENCES ota_package (id);
ALTER TABLE device ADD COLUMN software_id UUID REFERENCES ota_package (id);
ALTER TABLE device_profile ADD COLUMN firmware_id UUID REFERENCES ota_package (id);
ALTER TABLE device_profile ADD COLUMN software_id UUID REFERENCES ota_package (id);
CREATE INDEX device_by_firmware ON device (firmware_id) WHERE firmware_id IS NOT NULL;
CREATE INDEX device_by_software ON device (software_id) WHERE software_id IS NOT NULL;
CREATE INDEX device_profile_by_firmware ON device_profile (firmware_id) WHERE firmware_id IS NOT NULL;
CREATE INDEX device_profile_by_software ON device_profile (software_id) WHERE software_id IS NOT NULL;

-- Which package a device was told of, or waits for being told of. The package may be gone when its device learns that.
CREATE TABLE ota_update (
    device_id UUID NOT NULL REFERENCES device (id) ON DELETE CASCADE,
    kind KEYTEXT NOT NULL,
    tenant_id UUID NOT NULL,
    package_id UUID NOT NULL,
    is_own BOOLEAN NOT NULL,
    is_told BOOLEAN NOT NULL,
    ts BIGINT NOT NULL,
    PRIMARY KEY (device_id, kind)
);
CREATE INDEX ota_update_by_tenant ON ota_update (tenant_id);
CREATE INDEX ota_update_by_turn ON ota_update (is_own DESC, ts, device_id) WHERE NOT is_told;
