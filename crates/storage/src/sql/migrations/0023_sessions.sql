-- When and where people have opened their sessions, so that they recognize them.
ALTER TABLE sign_in ADD COLUMN opened_at BIGINT;
ALTER TABLE sign_in ADD COLUMN address TEXT;
ALTER TABLE sign_in ADD COLUMN browser TEXT;
ALTER TABLE sign_in ADD COLUMN os TEXT;
