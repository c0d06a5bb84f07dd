//! Long polling: RPC in both directions, and updates of shared attributes.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::{Path, Query, Request, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use fieldline_devices::directory::DeviceHandle;
use fieldline_devices::downlink::{Downlink, Subscriptions};
use fieldline_devices::sessions::CloseReason;
use fieldline_model::record::RecordBatch;
use fieldline_model::{DeviceId, TenantId, json};
use serde::Deserialize;

use super::{DeviceHttpLimits, HttpClientAddress, HttpRefusal, HttpShared, body};

/// How long a request waits that names no timeout; [`LONGEST_WAIT`] is the most it may name.
const WAIT: Duration = Duration::from_secs(60);
const LONGEST_WAIT: Duration = Duration::from_secs(300);
/// Largest body of an RPC request or response, bytes.
const MAX_BODY: usize = 64 << 10;

#[derive(Deserialize)]
pub(super) struct DeviceWaitQuery {
    /// Milliseconds; 0 for the default.
    timeout: Option<u64>,
}

impl DeviceWaitQuery {
    fn time(&self) -> Duration {
        match self.timeout.unwrap_or(0) {
            0 => WAIT,
            ms => Duration::from_millis(ms).min(LONGEST_WAIT),
        }
    }
}

fn json(body: impl Into<Body>) -> Response {
    ([(header::CONTENT_TYPE, "application/json")], body.into()).into_response()
}

impl HttpShared {
    pub(super) async fn admit_device(
        &self,
        token: &str,
        peer: HttpClientAddress,
    ) -> Result<Arc<DeviceHandle>, HttpRefusal> {
        let device = self.authenticate(token, peer).await?;
        self.count_message(&device, 0)?;
        self.services.activity.record_activity(device.subject);
        Ok(device)
    }

    /// Waits for the next downlink of a kind that the device wants.
    async fn wait(
        &self,
        device: &Arc<DeviceHandle>,
        wants: Subscriptions,
        time: Duration,
    ) -> Result<Downlink, Response> {
        let services = &self.services;
        let poll = services.sessions.poll(device.clone());
        services
            .rpc
            .set_subscriptions(device.subject, poll.control(), wants);
        match tokio::time::timeout(time, poll.wait()).await {
            Ok(Ok(downlink)) => Ok(downlink),
            Ok(Err(CloseReason::CredentialsChanged)) => {
                Err((StatusCode::FORBIDDEN, "Device was deleted!").into_response())
            }
            Ok(Err(CloseReason::Shutdown)) => Err(StatusCode::SERVICE_UNAVAILABLE.into_response()),
            Ok(Err(_)) | Err(_) => Err(StatusCode::REQUEST_TIMEOUT.into_response()),
        }
    }

    pub(super) async fn small_body(
        &self,
        tenant: TenantId,
        device: DeviceId,
        request: Request,
    ) -> Result<Vec<u8>, HttpRefusal> {
        let limits = DeviceHttpLimits {
            max_body: self.limits.max_body.min(MAX_BODY),
            ..self.limits
        };
        let mut share = self.memory.for_body(tenant, device);
        body::read(request, limits, &mut share).await
    }
}

/// Waits until shared attributes change.
pub(super) async fn updates(
    State(shared): State<Arc<HttpShared>>,
    Path(token): Path<String>,
    Query(waiting): Query<DeviceWaitQuery>,
    peer: HttpClientAddress,
) -> Result<Response, HttpRefusal> {
    let device = shared.admit_device(&token, peer).await?;
    Ok(
        match shared
            .wait(&device, Subscriptions::ATTRIBUTES, waiting.time())
            .await
        {
            Ok(Downlink::Attributes(update)) => json(update.to_json()),
            Ok(_) => StatusCode::REQUEST_TIMEOUT.into_response(),
            Err(answer) => answer,
        },
    )
}

/// Waits for an RPC request to the device.
pub(super) async fn next_call(
    State(shared): State<Arc<HttpShared>>,
    Path(token): Path<String>,
    Query(waiting): Query<DeviceWaitQuery>,
    peer: HttpClientAddress,
) -> Result<Response, HttpRefusal> {
    let device = shared.admit_device(&token, peer).await?;
    Ok(
        match shared.wait(&device, Subscriptions::RPC, waiting.time()).await {
            Ok(Downlink::Call(call)) => {
                shared.services.rpc.handle_sent(&call, false);
                json(call.to_numbered_json())
            }
            Ok(_) => StatusCode::REQUEST_TIMEOUT.into_response(),
            Err(answer) => answer,
        },
    )
}

/// Takes the device's response to an RPC.
pub(super) async fn answer_call(
    State(shared): State<Arc<HttpShared>>,
    Path((token, number)): Path<(String, i32)>,
    peer: HttpClientAddress,
    request: Request,
) -> Result<StatusCode, HttpRefusal> {
    let device = shared.admit_device(&token, peer).await?;
    let answer = shared
        .small_body(device.subject.tenant, device.id, request)
        .await?;
    let answer = String::from_utf8_lossy(&answer).into_owned();
    match shared.services.rpc.handle_answer(device.subject, number, answer) {
        true => Ok(StatusCode::OK),
        false => Err(HttpRefusal::Overloaded),
    }
}

/// Sends an RPC request of the device to the platform, and waits for the response.
pub(super) async fn call(
    State(shared): State<Arc<HttpShared>>,
    Path(token): Path<String>,
    peer: HttpClientAddress,
    request: Request,
) -> Result<Response, HttpRefusal> {
    let device = shared.admit_device(&token, peer).await?;
    let body = shared
        .small_body(device.subject.tenant, device.id, request)
        .await?;
    let call = json::client_rpc(&body).map_err(HttpRefusal::Malformed)?;
    let (services, subject) = (&shared.services, device.subject);
    let now = services.clock.now_ms();
    let (message, answer) = services
        .rpc
        .client
        .begin_request(subject, &call, now)
        .ok_or(HttpRefusal::Overloaded)?;
    let mut records = RecordBatch::new();
    records.push_message(subject.tenant, &message);
    shared.append(&device, &records).await?;
    // After the RPC timeout, the answer is `{"error":"timeout"}`; an error here means that nobody will answer.
    Ok(match answer.await {
        Ok(answer) => json(answer.to_string()),
        Err(_) => StatusCode::REQUEST_TIMEOUT.into_response(),
    })
}
