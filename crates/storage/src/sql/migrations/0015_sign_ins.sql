-- Sessions of people with their refresh tokens: the current one, and the latest that it has replaced.
CREATE TABLE sign_in (
    session_id UUID NOT NULL PRIMARY KEY,
    user_id UUID NOT NULL REFERENCES user_account (id) ON DELETE CASCADE,
    current_token UUID NOT NULL,
    replaced TEXT NOT NULL,
    used_at BIGINT NOT NULL,
    access_until BIGINT NOT NULL,
    until BIGINT NOT NULL,
    ended_at BIGINT
);
CREATE INDEX sign_in_by_user ON sign_in (user_id, used_at, session_id);
CREATE INDEX sign_in_by_until ON sign_in (until);
CREATE INDEX sign_in_by_end ON sign_in (ended_at) WHERE ended_at IS NOT NULL;
-- From where people have signed in.
CREATE TABLE sign_in_source (
    user_id UUID NOT NULL REFERENCES user_account (id) ON DELETE CASCADE,
    source KEYTEXT NOT NULL,
    used_at BIGINT NOT NULL,
    PRIMARY KEY (user_id, source)
);
CREATE INDEX sign_in_source_by_use ON sign_in_source (used_at);
