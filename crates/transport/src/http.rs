//! The HTTP device API: `/api/v1/{token}/telemetry` and `/api/v1/{token}/attributes`.
//!
//! The status codes are those that devices of this API know: 401 with an empty body for an unknown token, 500 with the
//! parser's words for a malformed payload, 500 with an empty body when the message could not be taken.

mod body;

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{Path, Query, Request, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use fieldline_core::devices::DeviceHandle;
use fieldline_core::logging::LogGate;
use fieldline_core::ports::AppendError;
use fieldline_model::json::JsonError;
use fieldline_model::record::RecordBatch;
use serde::Deserialize;
use tracing::warn;

use self::body::BodyBudget;
use crate::Services;
use crate::metrics::Metrics;
use crate::payload::{self, AttributeRequest};

static APPEND_GATE: LogGate = LogGate::new(2);
static STORE_GATE: LogGate = LogGate::new(2);

/// Limits of the HTTP device API.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Largest body of a post, bytes.
    pub max_body: usize,
    /// Memory that all bodies being read may take together, bytes.
    pub body_memory: usize,
}

struct Shared {
    services: Arc<Services>,
    budget: BodyBudget,
    metrics: Metrics,
}

/// The routes of the HTTP device API.
pub fn router(services: Arc<Services>, limits: Limits) -> Router {
    let shared = Shared {
        services,
        budget: BodyBudget::new(limits),
        metrics: Metrics::of("http"),
    };
    Router::new()
        .route("/api/v1/{token}/telemetry", post(post_telemetry))
        .route(
            "/api/v1/{token}/attributes",
            get(get_attributes).post(post_attributes),
        )
        .with_state(Arc::new(shared))
}

/// Why a request was not served.
enum Refusal {
    UnknownToken,
    TooLarge,
    Overloaded,
    Disconnected,
    Malformed(JsonError),
    NotTaken,
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        match self {
            Self::UnknownToken => StatusCode::UNAUTHORIZED.into_response(),
            Self::TooLarge => StatusCode::PAYLOAD_TOO_LARGE.into_response(),
            Self::Overloaded => StatusCode::SERVICE_UNAVAILABLE.into_response(),
            Self::Disconnected => StatusCode::BAD_REQUEST.into_response(),
            Self::Malformed(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
            Self::NotTaken => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
        }
    }
}

impl Shared {
    async fn device(&self, token: &str) -> Result<Arc<DeviceHandle>, Refusal> {
        let device = match self.services.directory.by_token(token).await {
            Ok(Some(device)) => device,
            Ok(None) => {
                self.metrics.refused_logins.increment(1);
                return Err(Refusal::UnknownToken);
            }
            Err(error) => return Err(store_failed(&error)),
        };
        if device.is_stale() {
            self.services
                .directory
                .refresh(&device)
                .await
                .map_err(|error| store_failed(&error))?;
        }
        if device.is_revoked() {
            Err(Refusal::UnknownToken)
        } else {
            Ok(device)
        }
    }

    /// Takes the records into the journal and waits until they are durable.
    async fn take(&self, device: &DeviceHandle, records: &RecordBatch) -> Result<(), Refusal> {
        let outcome = match self.services.uplink.append(device.subject, records).await {
            Ok(append) => append.await,
            Err(error) => Err(error),
        };
        match outcome {
            Ok(()) => {
                self.metrics.messages.increment(u64::from(records.count()));
                Ok(())
            }
            Err(AppendError::TooLarge { .. }) => Err(Refusal::TooLarge),
            Err(error) => {
                self.metrics.refused_appends.increment(1);
                if let Some(suppressed) = APPEND_GATE.open() {
                    warn!(%error, suppressed, "message of a device was not taken");
                }
                Err(Refusal::NotTaken)
            }
        }
    }

    fn malformed(&self, error: JsonError) -> Refusal {
        self.metrics.rejected.increment(1);
        Refusal::Malformed(error)
    }
}

fn store_failed(error: &fieldline_core::ports::StoreError) -> Refusal {
    if let Some(suppressed) = STORE_GATE.open() {
        warn!(%error, suppressed, "request of a device failed");
    }
    Refusal::NotTaken
}

async fn post_telemetry(
    State(shared): State<Arc<Shared>>,
    Path(token): Path<String>,
    request: Request,
) -> Result<StatusCode, Refusal> {
    let device = shared.device(&token).await?;
    let body = shared.budget.read(request).await?;
    let mut records = RecordBatch::new();
    let ttl_seconds = device.settings().ttl_seconds;
    payload::telemetry(&shared.services, &device, ttl_seconds, body.bytes(), &mut records)
        .map_err(|error| shared.malformed(error))?;
    shared.take(&device, &records).await?;
    Ok(StatusCode::OK)
}

async fn post_attributes(
    State(shared): State<Arc<Shared>>,
    Path(token): Path<String>,
    request: Request,
) -> Result<StatusCode, Refusal> {
    let device = shared.device(&token).await?;
    let body = shared.budget.read(request).await?;
    let mut records = RecordBatch::new();
    payload::attributes(&shared.services, &device, body.bytes(), &mut records)
        .map_err(|error| shared.malformed(error))?;
    shared.take(&device, &records).await?;
    Ok(StatusCode::OK)
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct AttributeKeys {
    client_keys: Option<String>,
    shared_keys: Option<String>,
}

async fn get_attributes(
    State(shared): State<Arc<Shared>>,
    Path(token): Path<String>,
    Query(keys): Query<AttributeKeys>,
) -> Result<Response, Refusal> {
    let device = shared.device(&token).await?;
    let names = |list: Option<String>| {
        list.filter(|list| !list.is_empty())
            .map(|list| list.split(',').map(str::to_owned).collect::<Vec<_>>())
    };
    let request = AttributeRequest {
        client_keys: names(keys.client_keys),
        shared_keys: names(keys.shared_keys),
    };
    let answer = request
        .answer(&shared.services, &device)
        .await
        .map_err(|error| store_failed(&error))?;
    shared.services.activity.heard(device.subject);
    Ok(([(header::CONTENT_TYPE, "application/json")], Body::from(answer)).into_response())
}
