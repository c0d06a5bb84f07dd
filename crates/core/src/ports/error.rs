//! Errors of stores, classified by the possible reactions of the caller.

use std::fmt;

/// Result of a store call.
pub type StoreResult<T> = Result<T, StoreError>;

/// The class of a failed call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StoreErrorKind {
    /// The entity or data of the call does not exist.
    NotFound,
    /// Another entity already has that unique value, or something refers to the entity to be deleted.
    Conflict,
    /// The stored version differs from the one that the caller changed.
    VersionConflict,
    /// The arguments are invalid.
    Invalid,
    /// The store is unavailable; the same call may succeed later.
    Unavailable,
    /// The caller's tenant has too many operations in progress; the same call may succeed later.
    Busy,
    /// The disk is full; reads still work.
    DiskFull,
    /// Stored bytes fail their integrity checks.
    Corrupt,
}

impl StoreErrorKind {
    /// Returns whether the same call may succeed later without changes by the caller.
    pub const fn is_retryable(self) -> bool {
        matches!(self, Self::Unavailable | Self::Busy | Self::DiskFull)
    }

    /// Returns whether the store itself has failed, independent of the arguments.
    pub const fn is_about_the_store(self) -> bool {
        matches!(self, Self::Unavailable | Self::DiskFull | Self::Corrupt)
    }
}

/// A failed store call.
#[derive(Debug)]
pub struct StoreError {
    kind: StoreErrorKind,
    message: String,
    cause: Option<Box<dyn std::error::Error + Send + Sync>>,
}

impl StoreError {
    /// Creates an error; clients may see the message.
    pub fn new(kind: StoreErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            cause: None,
        }
    }

    /// Adds the cause, for the log only.
    #[must_use]
    pub fn caused_by(mut self, cause: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        self.cause = Some(cause.into());
        self
    }

    /// The class of the error.
    pub const fn kind(&self) -> StoreErrorKind {
        self.kind
    }

    /// The message without its cause; clients may see it.
    pub fn message(&self) -> &str {
        &self.message
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        match &self.cause {
            Some(cause) => write!(f, ": {cause}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for StoreError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.cause.as_deref().map(|cause| cause as _)
    }
}
