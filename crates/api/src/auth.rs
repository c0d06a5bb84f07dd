//! Authentication: tokens, sessions, API keys, and protection against password guessing.

mod api_keys;
mod login_guard;
mod refresh;
mod sessions;
mod token_families;
mod token_settings;
mod tokens;

pub use token_settings::{TokenSettings, stored_token_settings};
pub use tokens::{TokenKey, TokenKeyError};

pub(crate) use api_keys::ApiKeyCache;
pub(crate) use login_guard::{LoginGuard, MAX_PROVEN_ADDRESSES, network, source_of};
pub(crate) use refresh::RefreshOutcome;
pub(crate) use sessions::LoginSessions;
pub(crate) use token_settings::JWT;
pub(crate) use tokens::{TokenIdentity, TokenIssuer, TokenPair, TokenTimes, outdated};
