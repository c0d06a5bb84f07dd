//! Errors of preparing, running and checking a load.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

/// Result type of this crate.
pub type LoadResult<T> = Result<T, LoadError>;

/// The reason why a run cannot go on. The text is complete by itself, and never contains a user's password or token.
#[derive(Debug, Error)]
pub enum LoadError {
    /// The server refused the request.
    #[error("{method} {path} was refused with {status}: {message}")]
    Refused {
        /// Method of the request.
        method: &'static str,
        /// Path and query of the request.
        path: String,
        /// HTTP status of the answer.
        status: u16,
        /// The message in the body of the response.
        message: String,
    },
    /// No response arrived: no connection, a lost one, or a timeout.
    #[error("{url} cannot be reached: {error}")]
    Unreachable {
        /// Address of the server.
        url: String,
        /// The error of the connection.
        error: io::Error,
    },
    /// The response is not what was expected.
    #[error("{method} {path} gave a bad answer: {reason}")]
    BadAnswer {
        /// Method of the request.
        method: &'static str,
        /// Path and query of the request.
        path: String,
        /// The fault of the response.
        reason: String,
    },
    /// A file cannot be read or written.
    #[error("{}: {error}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        error: io::Error,
    },
    /// An option is invalid.
    #[error("invalid option: {0}")]
    InvalidOption(String),
    /// The load could not be run.
    #[error("{0}")]
    Engine(String),
}

impl LoadError {
    /// Status of the response, if the server refused the request.
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
