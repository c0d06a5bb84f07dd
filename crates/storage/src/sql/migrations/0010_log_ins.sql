-- When the user last logged in, milliseconds; 0 for never.
ALTER TABLE user_credentials ADD COLUMN last_login BIGINT NOT NULL DEFAULT 0;
-- Counts the changes, so that of two at the same moment the later does not undo the other.
ALTER TABLE user_credentials ADD COLUMN version BIGINT NOT NULL DEFAULT 1;
