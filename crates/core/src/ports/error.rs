//! What can go wrong in a store, by what the caller does next.

use std::fmt;

/// Result of a store's call.
pub type StoreResult<T> = Result<T, StoreError>;

/// What the caller can do about a failed call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StoreErrorKind {
    /// What the call is about does not exist.
    NotFound,
    /// Another entity has that unique value already, or something refers to what should be deleted.
    Conflict,
    /// The stored version is not the one the caller changed.
    VersionConflict,
    /// The arguments make no sense to the store.
    Invalid,
    /// The store cannot serve now; the same call may succeed later.
    Unavailable,
    /// The caller's tenant has as much under way as it may have; the same call may succeed later.
    Busy,
    /// There is no room left on the disk; reads go on.
    DiskFull,
    /// Stored bytes do not pass their checks.
    Corrupt,
}

impl StoreErrorKind {
    /// The same call may succeed later without the caller changing anything.
    pub const fn is_retryable(self) -> bool {
        matches!(self, Self::Unavailable | Self::Busy | Self::DiskFull)
    }

    /// The store itself has failed, whatever it was asked.
    pub const fn is_about_the_store(self) -> bool {
        matches!(self, Self::Unavailable | Self::DiskFull | Self::Corrupt)
    }
}

/// A failed call to a store.
#[derive(Debug)]
pub struct StoreError {
    kind: StoreErrorKind,
    message: String,
    cause: Option<Box<dyn std::error::Error + Send + Sync>>,
}

impl StoreError {
    /// An error of a kind; the message is fit to be shown to a client.
    pub fn new(kind: StoreErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            cause: None,
        }
    }

    /// Adds what caused it, for the log only.
    #[must_use]
    pub fn caused_by(mut self, cause: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        self.cause = Some(cause.into());
        self
    }

    /// What the caller can do about it.
    pub const fn kind(&self) -> StoreErrorKind {
        self.kind
    }

    /// The message without its cause, fit to be shown to a client.
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
