-- Settings of the installation and of people; resetting passwords.

CREATE TABLE admin_settings (
    key KEYTEXT NOT NULL PRIMARY KEY,
    id UUID NOT NULL UNIQUE,
    created_time BIGINT NOT NULL,
    doc TEXT NOT NULL
);

CREATE TABLE user_settings (
    user_id UUID NOT NULL REFERENCES user_account (id) ON DELETE CASCADE,
    type KEYTEXT NOT NULL,
    doc TEXT NOT NULL,
    PRIMARY KEY (user_id, type)
);

ALTER TABLE user_credentials ADD COLUMN reset_token KEYTEXT;
CREATE UNIQUE INDEX user_credentials_reset_token_key ON user_credentials (reset_token);
-- When the password was set, milliseconds; 0 where nobody knows.
ALTER TABLE user_credentials ADD COLUMN password_time BIGINT NOT NULL DEFAULT 0;
-- Earlier passwords: a list of times and hashes.
ALTER TABLE user_credentials ADD COLUMN past_passwords TEXT;
-- Wrong passwords in a row.
ALTER TABLE user_credentials ADD COLUMN failed_logins BIGINT NOT NULL DEFAULT 0;
