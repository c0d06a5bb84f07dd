//! The HTTP device API: `/api/v1/{token}/telemetry`, `…/attributes`, `…/attributes/updates`, `…/rpc`,
//! `…/claim`, `…/firmware`, `…/software`, and `/api/v1/provision`.
//!
//! The status codes are those that devices of this API know: 401 with an empty body for an unknown token, 500 with the
//! parser's message for a malformed payload, 500 with an empty body for a message that could not be stored. A tenant
//! that has used up its profile's limits gets 429, and so does an address that keeps sending wrong credentials.

mod body;
mod firmware;
mod intake;
mod long_poll;
mod memory;
mod onboarding;

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{ConnectInfo, FromRequestParts, Path, Query, Request, State};
use axum::http::request::Parts;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use fieldline_core::logging::LogGate;
use fieldline_devices::directory::{DeviceHandle, MessageRefusal as Limited};
use fieldline_model::json::JsonError;
use serde::Deserialize;
use tracing::warn;

use self::memory::PostMemory;
use crate::TransportServices;
use crate::intake::DeviceRefusal;
use crate::metrics::TransportMetrics;
use crate::payload::{self, DeviceAttributeRequest};

static STORE_GATE: LogGate = LogGate::new(2);

/// The answer to an address that is blocked for a while.
const TURNED_AWAY: &str = "Too many wrong credentials came from this address!";

/// The answer to a device whose request body exceeds the limit.
const TOO_LARGE: &str = "Payload size exceeds the limit";

/// Limits of the HTTP device API.
#[derive(Debug, Clone, Copy)]
pub struct DeviceHttpLimits {
    /// Largest body of a post, bytes.
    pub max_body: usize,
    /// Memory that all bodies being read may take together, bytes; the records made of them may take as much again.
    pub body_memory: usize,
    /// Largest append that the journal takes, bytes; the records of a post are split into appends of this size.
    pub max_append: usize,
    /// Longest time for a whole body to arrive, so that no peer holds its memory for longer.
    pub body_deadline: Duration,
}

struct HttpShared {
    services: Arc<TransportServices>,
    limits: DeviceHttpLimits,
    memory: Arc<PostMemory>,
    metrics: TransportMetrics,
}

/// The routes of the HTTP device API.
pub fn router(services: Arc<TransportServices>, limits: DeviceHttpLimits) -> Router {
    let memory = PostMemory::new(&limits);
    services.overload.add(memory.bodies());
    let shared = HttpShared {
        services,
        memory,
        limits,
        metrics: TransportMetrics::of("http"),
    };
    Router::new()
        .route("/api/v1/{token}/telemetry", post(post_telemetry))
        .route(
            "/api/v1/{token}/attributes",
            get(get_attributes).post(post_attributes),
        )
        .route("/api/v1/{token}/attributes/updates", get(long_poll::updates))
        .route(
            "/api/v1/{token}/rpc",
            get(long_poll::next_call).post(long_poll::call),
        )
        .route("/api/v1/{token}/rpc/{number}", post(long_poll::answer_call))
        .route("/api/v1/{token}/claim", post(onboarding::claim))
        .route("/api/v1/{token}/firmware", get(firmware::firmware))
        .route("/api/v1/{token}/software", get(firmware::software))
        .route("/api/v1/provision", post(onboarding::provision))
        .with_state(Arc::new(shared))
}

/// The address of the client, if the server knows it.
#[derive(Clone, Copy)]
struct HttpClientAddress(Option<IpAddr>);

impl<S: Send + Sync> FromRequestParts<S> for HttpClientAddress {
    type Rejection = std::convert::Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Self::Rejection> {
        let peer = parts.extensions.get::<ConnectInfo<SocketAddr>>();
        Ok(Self(peer.map(|ConnectInfo(address)| address.ip())))
    }
}

/// Why a request was not served.
enum HttpRefusal {
    UnknownToken,
    TooLarge,
    Overloaded,
    /// It exceeds what the device may send.
    Limited(Limited),
    /// Its address keeps sending wrong credentials.
    TurnedAway,
    TooSlow,
    Disconnected,
    Malformed(JsonError),
    NotTaken,
}

impl IntoResponse for HttpRefusal {
    fn into_response(self) -> Response {
        match self {
            Self::UnknownToken => StatusCode::UNAUTHORIZED.into_response(),
            Self::TooLarge => (StatusCode::PAYLOAD_TOO_LARGE, TOO_LARGE).into_response(),
            Self::Overloaded => StatusCode::SERVICE_UNAVAILABLE.into_response(),
            Self::Limited(why) => (StatusCode::TOO_MANY_REQUESTS, why.to_string()).into_response(),
            Self::TurnedAway => (StatusCode::TOO_MANY_REQUESTS, TURNED_AWAY).into_response(),
            Self::TooSlow => StatusCode::REQUEST_TIMEOUT.into_response(),
            Self::Disconnected => StatusCode::BAD_REQUEST.into_response(),
            Self::Malformed(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
            Self::NotTaken => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
        }
    }
}

impl HttpShared {
    async fn authenticate(
        &self,
        token: &str,
        peer: HttpClientAddress,
    ) -> Result<Arc<DeviceHandle>, HttpRefusal> {
        self.admit(peer)?;
        let device = match self.services.directory.by_token(token).await {
            Ok(Some(device)) => {
                peer.0
                    .inspect(|address| self.services.guard.record_success(*address));
                device
            }
            Ok(None) => {
                self.metrics.refused_logins.increment(1);
                peer.0
                    .inspect(|address| self.services.guard.record_failure(*address));
                return Err(HttpRefusal::UnknownToken);
            }
            Err(error) => return Err(store_failed(&error)),
        };
        self.check(&device).await?;
        Ok(device)
    }

    /// Refuses an address that has sent wrong credentials too often.
    fn admit(&self, peer: HttpClientAddress) -> Result<(), HttpRefusal> {
        match peer.0 {
            Some(address) if !self.services.guard.try_admit(address) => Err(HttpRefusal::TurnedAway),
            _ => Ok(()),
        }
    }

    /// Counts a message with this many values against the device's limits, or refuses it.
    fn count_message(&self, device: &DeviceHandle, points: u32) -> Result<(), HttpRefusal> {
        device.acquire(points).map_err(|limited| {
            self.metrics.count_limited(device.id, &limited);
            HttpRefusal::Limited(limited)
        })
    }

    /// Refreshes a stale device handle, and refuses a device that is revoked or may not send.
    async fn check(&self, device: &DeviceHandle) -> Result<(), HttpRefusal> {
        crate::intake::check(&self.services, device)
            .await
            .map_err(|refused| match refused {
                DeviceRefusal::Revoked => HttpRefusal::UnknownToken,
                DeviceRefusal::UsedUp => {
                    self.metrics.count_limited(device.id, &Limited::UsedUp);
                    HttpRefusal::Limited(Limited::UsedUp)
                }
                DeviceRefusal::Store(error) => store_failed(&error),
            })
    }
}

fn store_failed(error: &fieldline_core::ports::StoreError) -> HttpRefusal {
    if let Some(suppressed) = STORE_GATE.open() {
        warn!(%error, suppressed, "request of a device failed");
    }
    HttpRefusal::NotTaken
}

async fn post_telemetry(
    State(shared): State<Arc<HttpShared>>,
    Path(token): Path<String>,
    peer: HttpClientAddress,
    request: Request,
) -> Result<StatusCode, HttpRefusal> {
    let parse: intake::PayloadParser = |services, device, body, records| {
        let ttl_seconds = device.settings().ttl_seconds;
        payload::telemetry(services, device, ttl_seconds, body, records)
    };
    shared.post(&token, peer, request, parse).await
}

async fn post_attributes(
    State(shared): State<Arc<HttpShared>>,
    Path(token): Path<String>,
    peer: HttpClientAddress,
    request: Request,
) -> Result<StatusCode, HttpRefusal> {
    shared.post(&token, peer, request, payload::attributes).await
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct DeviceAttributeQuery {
    client_keys: Option<String>,
    shared_keys: Option<String>,
}

async fn get_attributes(
    State(shared): State<Arc<HttpShared>>,
    Path(token): Path<String>,
    Query(keys): Query<DeviceAttributeQuery>,
    peer: HttpClientAddress,
) -> Result<Response, HttpRefusal> {
    let device = shared.authenticate(&token, peer).await?;
    shared.count_message(&device, 0)?;
    let names = |list: Option<String>| {
        list.filter(|list| !list.is_empty())
            .map(|list| list.split(',').map(str::to_owned).collect::<Vec<_>>())
    };
    let request = DeviceAttributeRequest {
        client_keys: names(keys.client_keys),
        shared_keys: names(keys.shared_keys),
    };
    let answer = request
        .answer(&shared.services, &device)
        .await
        .map_err(|error| store_failed(&error))?;
    shared.services.activity.record_activity(device.subject);
    Ok(([(header::CONTENT_TYPE, "application/json")], Body::from(answer)).into_response())
}
