//! Errors of the telemetry and RPC controllers: plain text, unlike the JSON of the rest of the API. The rest answers with
//! JSON also where it reads series in the way of this controller.

use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use fieldline_core::ports::StoreError;
use fieldline_entities::access::{AccessError, title};
use fieldline_model::entity::Authority;

use crate::audit::FailureText;
use crate::error::ApiError;
use crate::memory;

use super::history::HistoryError;
use super::params::BadInput;

/// An error response in plain text.
#[derive(Debug)]
pub(crate) struct TelemetryError {
    status: StatusCode,
    text: String,
}

/// Result of a handler.
pub(crate) type TelemetryResult<T> = Result<T, TelemetryError>;

impl TelemetryError {
    /// Converts an access error for a caller with that authority.
    pub(crate) fn access(error: AccessError, authority: Authority) -> Self {
        match error {
            AccessError::NotFound(id) => Self {
                status: StatusCode::NOT_FOUND,
                text: format!("{} with requested id wasn't found!", title(&id.entity_type)),
            },
            AccessError::Denied if authority == Authority::SysAdmin => Self {
                status: StatusCode::FORBIDDEN,
                text: "System administrator is not allowed to perform this operation!".to_owned(),
            },
            error => ApiError::from(error).into(),
        }
    }
}

impl IntoResponse for TelemetryError {
    fn into_response(self) -> Response {
        let text = FailureText(self.text.clone());
        let mut response = (self.status, self.text).into_response();
        response.extensions_mut().insert(text);
        memory::set_retry_after(&mut response);
        response
    }
}

impl From<BadInput> for TelemetryError {
    fn from(input: BadInput) -> Self {
        ApiError::from(input).into()
    }
}

impl From<ApiError> for TelemetryError {
    fn from(error: ApiError) -> Self {
        Self {
            status: error.status(),
            text: error.message().to_owned(),
        }
    }
}

impl From<StoreError> for TelemetryError {
    fn from(error: StoreError) -> Self {
        ApiError::from(error).into()
    }
}

impl From<BadInput> for ApiError {
    fn from(BadInput(text): BadInput) -> Self {
        Self::bad_request(text)
    }
}

impl From<HistoryError> for ApiError {
    fn from(error: HistoryError) -> Self {
        match error {
            HistoryError::Store(error) => error.into(),
            HistoryError::Memory(refusal) => refusal.into(),
        }
    }
}
