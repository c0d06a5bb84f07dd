//! What can be wrong with a script, before and while it runs.

use std::time::{Duration, Instant};

/// A script that cannot be compiled.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {message}")]
pub struct SyntaxError {
    /// Line of the body, from 1.
    pub line: u32,
    /// Column in the line, from 1.
    pub column: u32,
    /// What is wrong.
    pub message: String,
}

/// Why a call gave no result.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ScriptError {
    /// The script does not compile.
    #[error("script does not compile: {0}")]
    Syntax(#[from] SyntaxError),
    /// The script threw, used a value wrongly or returned what the caller cannot use.
    #[error("{message}{}", line.map(|line| format!(" (line {line})")).unwrap_or_default())]
    Runtime {
        /// What happened.
        message: String,
        /// Line of the body, from 1, if it is known.
        line: Option<u32>,
    },
    /// The call was stopped after its time limit.
    #[error("script ran longer than {} ms", limit.as_millis())]
    Time {
        /// The limit.
        limit: Duration,
    },
    /// The call needed more memory than it may have.
    #[error("script needed more than {limit} bytes of memory")]
    Memory {
        /// The limit, bytes.
        limit: usize,
    },
    /// The result is too long.
    #[error("script result is longer than {limit} characters")]
    ResultTooLarge {
        /// The limit, characters of JSON.
        limit: usize,
    },
    /// The arguments together are too long.
    #[error("script arguments are longer than {limit} characters")]
    ArgsTooLarge {
        /// The limit, characters.
        limit: usize,
    },
    /// The call was ended from outside.
    #[error("script was ended before it was done")]
    Ended,
    /// The script made too many errors of time, memory or size and does not run for a while.
    #[error("script is blocked because of repeated errors")]
    Blocked {
        /// When it may run again.
        until: Instant,
    },
}

impl ScriptError {
    pub(crate) fn runtime(message: impl Into<String>) -> Self {
        Self::Runtime {
            message: message.into(),
            line: None,
        }
    }

    /// Whether the error counts towards blocking the script: everything that costs the host more than a throw.
    pub fn counts_towards_block(&self) -> bool {
        matches!(
            self,
            Self::Time { .. } | Self::Memory { .. } | Self::ResultTooLarge { .. } | Self::ArgsTooLarge { .. }
        )
    }
}
