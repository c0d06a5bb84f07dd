//! The error body of the REST API: `{"status", "message", "errorCode", "timestamp"}`.

use std::any::Any;

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use fieldline_core::clock::{Clock as _, SystemClock};
use fieldline_core::logging::LogGate;
use fieldline_core::ports::{BrokerAdminError, StoreError};
use fieldline_entities::access::AccessError;
use fieldline_entities::password::PasswordError;
use fieldline_entities::services::{ServiceError, ServiceErrorKind};
use fieldline_model::EntityType;
use serde::Serialize;

use crate::audit::FailureText;
use crate::memory;

/// Limits the log lines: if a store is down, every request fails.
static FAILURES: LogGate = LogGate::new(5);

/// Result of a handler.
pub(crate) type ApiResult<T> = Result<T, ApiError>;

/// Error codes for clients; the numbers are those of the ThingsBoard REST API.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
#[allow(missing_docs, reason = "the names are their own documentation")]
pub(crate) enum ErrorCode {
    General = 2,
    Authentication = 10,
    JwtTokenExpired = 11,
    CredentialsExpired = 15,
    PermissionDenied = 20,
    BadRequestParams = 31,
    ItemNotFound = 32,
    TooManyRequests = 33,
    VersionConflict = 35,
    EntitiesLimitExceeded = 41,
    PasswordViolation = 45,
    Database = 46,
}

impl ErrorCode {
    /// Returns the HTTP status of the code.
    pub(crate) const fn status(self) -> StatusCode {
        match self {
            Self::General | Self::Database => StatusCode::INTERNAL_SERVER_ERROR,
            Self::Authentication
            | Self::JwtTokenExpired
            | Self::CredentialsExpired
            | Self::PasswordViolation => StatusCode::UNAUTHORIZED,
            Self::PermissionDenied | Self::EntitiesLimitExceeded => StatusCode::FORBIDDEN,
            Self::BadRequestParams => StatusCode::BAD_REQUEST,
            Self::ItemNotFound => StatusCode::NOT_FOUND,
            Self::TooManyRequests => StatusCode::TOO_MANY_REQUESTS,
            Self::VersionConflict => StatusCode::CONFLICT,
        }
    }
}

/// An error response.
#[derive(Debug)]
pub(crate) struct ApiError {
    status: StatusCode,
    code: ErrorCode,
    message: String,
    limit: Option<(EntityType, u64)>,
    reset_token: Option<String>,
}

impl ApiError {
    /// Creates an error with the status of its code.
    pub(crate) fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self::with_status(code.status(), code, message)
    }

    /// Creates an error with a status other than the usual one of its code.
    pub(crate) fn with_status(status: StatusCode, code: ErrorCode, message: impl Into<String>) -> Self {
        Self {
            status,
            code,
            message: message.into(),
            limit: None,
            reset_token: None,
        }
    }

    /// The password is right but has expired: 401, code 15, with a token for setting a new one.
    pub(crate) fn credentials_expired(reset_token: String) -> Self {
        Self {
            reset_token: Some(reset_token),
            ..Self::new(ErrorCode::CredentialsExpired, "User password expired!")
        }
    }

    /// The request is invalid: 400, code 31.
    pub(crate) fn bad_request(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::BadRequestParams, message)
    }

    /// The requested entity does not exist: 404, code 32.
    pub(crate) fn not_found(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::ItemNotFound, message)
    }

    /// The same for requests that do not name the entity by its id.
    pub(crate) fn item_not_found() -> Self {
        Self::not_found("Requested item wasn't found!")
    }

    /// The caller lacks permission: 403, code 20.
    pub(crate) fn denied() -> Self {
        Self::new(ErrorCode::PermissionDenied, AccessError::Denied.to_string())
    }

    /// The caller is not authenticated: 401, code 10.
    pub(crate) fn unauthenticated() -> Self {
        Self::new(ErrorCode::Authentication, "Authentication failed")
    }

    /// Returns the HTTP status.
    pub(crate) fn status(&self) -> StatusCode {
        self.status
    }

    /// Returns the message for the client.
    pub(crate) fn message(&self) -> &str {
        &self.message
    }
}

/// The error body.
#[derive(Serialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = ErrorResponse)]
pub(crate) struct ErrorBody {
    /// HTTP status.
    status: u16,
    /// Error message for people.
    message: String,
    /// Error code for programs.
    error_code: u8,
    /// Time of the error, milliseconds.
    timestamp: i64,
    /// The entity type whose limit is exceeded.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    entity_type: Option<EntityType>,
    /// The limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    limit: Option<u64>,
    /// Token for setting a new password after the old one has expired.
    #[serde(skip_serializing_if = "Option::is_none")]
    reset_token: Option<String>,
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let (entity_type, limit) = self.limit.unzip();
        let body = ErrorBody {
            status: self.status.as_u16(),
            message: self.message,
            error_code: self.code as u8,
            timestamp: SystemClock.now_ms(),
            entity_type,
            limit,
            reset_token: self.reset_token,
        };
        let text = FailureText(body.message.clone());
        let mut response = (self.status, Json(body)).into_response();
        response.extensions_mut().insert(text);
        memory::set_retry_after(&mut response);
        response
    }
}

impl From<ServiceError> for ApiError {
    fn from(error: ServiceError) -> Self {
        use ServiceErrorKind as Kind;
        let mut limit = None;
        let (status, code) = match error.kind() {
            Kind::Invalid => (None, ErrorCode::BadRequestParams),
            Kind::NotFound => (None, ErrorCode::ItemNotFound),
            Kind::Denied => (None, ErrorCode::PermissionDenied),
            Kind::Unauthenticated => (None, ErrorCode::Authentication),
            Kind::PasswordViolation => (None, ErrorCode::PasswordViolation),
            Kind::VersionConflict => (None, ErrorCode::VersionConflict),
            Kind::TooManyRequests => (None, ErrorCode::TooManyRequests),
            Kind::LimitExceeded {
                entity_type,
                limit: most,
            } => {
                limit = Some((entity_type, most));
                (None, ErrorCode::EntitiesLimitExceeded)
            }
            Kind::Unavailable => (Some(StatusCode::SERVICE_UNAVAILABLE), ErrorCode::Database),
            Kind::Internal => (None, ErrorCode::Database),
        };
        if matches!(error.kind(), Kind::Unavailable | Kind::Internal)
            && let Some(suppressed) = FAILURES.open()
        {
            let cause = std::error::Error::source(&error).map(ToString::to_string);
            tracing::warn!(error = %error, cause, suppressed, "a request failed inside");
        }
        Self {
            status: status.unwrap_or(code.status()),
            code,
            message: error.message().to_owned(),
            limit,
            reset_token: None,
        }
    }
}

impl From<StoreError> for ApiError {
    fn from(error: StoreError) -> Self {
        ServiceError::from(error).into()
    }
}

impl From<BrokerAdminError> for ApiError {
    fn from(error: BrokerAdminError) -> Self {
        let message = error.to_string();
        match error {
            BrokerAdminError::NoSession => Self::not_found(message),
            BrokerAdminError::Connected => {
                Self::with_status(StatusCode::CONFLICT, ErrorCode::General, message)
            }
            BrokerAdminError::Invalid(_) => Self::bad_request(message),
            BrokerAdminError::Unavailable(_) => {
                Self::with_status(StatusCode::SERVICE_UNAVAILABLE, ErrorCode::General, message)
            }
        }
    }
}

impl From<AccessError> for ApiError {
    fn from(error: AccessError) -> Self {
        ServiceError::from(error).into()
    }
}

impl From<PasswordError> for ApiError {
    fn from(error: PasswordError) -> Self {
        let code = match error {
            PasswordError::Busy => ErrorCode::TooManyRequests,
            PasswordError::Failed => ErrorCode::General,
        };
        Self::new(code, error.to_string())
    }
}

/// Returns the response to a request whose handler has panicked.
pub(crate) fn answer_panic(panic: Box<dyn Any + Send>) -> Response {
    let message = panic
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| panic.downcast_ref::<&str>().copied())
        .unwrap_or("no message");
    tracing::error!(panic = message, "a handler panicked");
    ApiError::new(ErrorCode::General, "Internal error").into_response()
}
