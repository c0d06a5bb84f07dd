//! Logging in: tokens, who may use them, and what keeps guessing slow.

mod guard;
mod sessions;
mod tokens;

pub use tokens::{TokenKey, TokenKeyError};

pub(crate) use guard::LoginGuard;
pub(crate) use sessions::Sessions;
pub(crate) use tokens::{Ticket, TokenPair, Tokens};
