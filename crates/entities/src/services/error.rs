//! Why a business rule refused a request, by what the API answers.

use fieldline_core::ports::{StoreError, StoreErrorKind};
use fieldline_model::EntityType;

use crate::access::AccessError;

/// Result of a service's call.
pub type ServiceResult<T> = Result<T, ServiceError>;

/// What the one who asked is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServiceErrorKind {
    /// The request breaks a rule.
    Invalid,
    /// What it is about does not exist.
    NotFound,
    /// The one who asked may not do that.
    Denied,
    /// The one who asked has not proved who they are.
    Unauthenticated,
    /// The new password breaks the policy.
    PasswordViolation,
    /// Somebody else has changed the entity in the meantime.
    VersionConflict,
    /// The tenant has as many of these as its profile allows.
    LimitExceeded {
        /// What there are too many of.
        entity_type: EntityType,
        /// How many there may be.
        limit: u64,
    },
    /// Asked too often.
    TooManyRequests,
    /// The same request may succeed later.
    Unavailable,
    /// Something is wrong inside.
    Internal,
}

/// A refused or failed request. The message is fit to be shown to the client; the cause is for the log.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct ServiceError {
    kind: ServiceErrorKind,
    message: String,
    #[source]
    cause: Option<Box<dyn std::error::Error + Send + Sync>>,
}

impl ServiceError {
    /// An error of a kind with a message for the client.
    pub fn new(kind: ServiceErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            cause: None,
        }
    }

    /// The request breaks a rule.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(ServiceErrorKind::Invalid, message)
    }

    /// What the request is about does not exist.
    pub fn not_found(message: impl Into<String>) -> Self {
        Self::new(ServiceErrorKind::NotFound, message)
    }

    /// The one who asked may not do that.
    pub fn denied() -> Self {
        AccessError::Denied.into()
    }

    /// What the client is told it was.
    pub const fn kind(&self) -> ServiceErrorKind {
        self.kind
    }

    /// The message for the client.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// The same error with another message where it is a conflict with another entity.
    #[must_use]
    pub fn with_message(mut self, message: impl Into<String>) -> Self {
        self.message = message.into();
        self
    }
}

impl From<StoreError> for ServiceError {
    fn from(error: StoreError) -> Self {
        let (kind, message) = match error.kind() {
            StoreErrorKind::NotFound => (ServiceErrorKind::NotFound, error.message().to_owned()),
            StoreErrorKind::Conflict | StoreErrorKind::Invalid => {
                (ServiceErrorKind::Invalid, error.message().to_owned())
            }
            StoreErrorKind::VersionConflict => {
                (ServiceErrorKind::VersionConflict, error.message().to_owned())
            }
            StoreErrorKind::Unavailable | StoreErrorKind::DiskFull => {
                (ServiceErrorKind::Unavailable, error.message().to_owned())
            }
            StoreErrorKind::Busy => (ServiceErrorKind::TooManyRequests, error.message().to_owned()),
            StoreErrorKind::Corrupt => (ServiceErrorKind::Internal, "Database error".to_owned()),
        };
        Self {
            kind,
            message,
            cause: Some(Box::new(error)),
        }
    }
}

impl From<AccessError> for ServiceError {
    fn from(error: AccessError) -> Self {
        match error {
            AccessError::NotFound(_) => Self::not_found(error.to_string()),
            AccessError::Denied => Self::new(ServiceErrorKind::Denied, error.to_string()),
            AccessError::Store(error) => error.into(),
        }
    }
}
