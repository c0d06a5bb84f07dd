//! What can go wrong while a load is prepared, run or checked.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

/// Result of what this crate does.
pub type LoadResult<T> = Result<T, LoadError>;

/// Why a run cannot go on. The text is complete by itself, and never holds a user's password or token.
#[derive(Debug, Error)]
pub enum LoadError {
    /// The server answered, and the answer was no.
    #[error("{method} {path} was refused with {status}: {message}")]
    Refused {
        /// Method of the request.
        method: &'static str,
        /// Path and query of the request.
        path: String,
        /// HTTP status of the answer.
        status: u16,
        /// What the body of the answer says.
        message: String,
    },
    /// There was no answer: no connection, a lost one, or none in time.
    #[error("{url} cannot be reached: {error}")]
    Unreachable {
        /// Address of the server.
        url: String,
        /// What happened to the connection.
        error: io::Error,
    },
    /// The server answered with something that makes no sense here.
    #[error("{method} {path} gave a bad answer: {reason}")]
    BadAnswer {
        /// Method of the request.
        method: &'static str,
        /// Path and query of the request.
        path: String,
        /// What is wrong with the answer.
        reason: String,
    },
    /// A file cannot be read or written.
    #[error("{}: {error}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the operating system says.
        error: io::Error,
    },
    /// What was asked for makes no sense.
    #[error("invalid option: {0}")]
    InvalidOption(String),
    /// The load could not be made.
    #[error("{0}")]
    Engine(String),
}

impl LoadError {
    /// Status of the answer, where the server gave one that says no.
    #[must_use]
    pub const fn status(&self) -> Option<u16> {
        match self {
            Self::Refused { status, .. } => Some(*status),
            _ => None,
        }
    }

    /// Whether the same request may succeed a little later: the server is overloaded, restarting or out of reach.
    #[must_use]
    pub const fn is_transient(&self) -> bool {
        match self {
            Self::Unreachable { .. } => true,
            Self::Refused { status, .. } => matches!(*status, 429 | 500 | 502 | 503 | 504),
            _ => false,
        }
    }
}
