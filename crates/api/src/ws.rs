//! The WebSocket API: values, entities and alarms as they change.
//!
//! | module | job |
//! |---|---|
//! | `commands`, `updates` | messages from and to clients |
//! | `hub`, `mailbox` | subscriptions, and changes not sent to the client yet |
//! | `limits` | limits for the sessions and commands of a tenant |
//! | `login` | authentication |
//! | `session`, `active_command` | one socket: commands, updates, pings |
//! | `values`, `entities`, `alarms` | the commands |
//! | `latest` | latest values that the client knows |

mod active_command;
mod aggregated;
mod alarms;
mod commands;
mod entities;
mod hub;
mod latest;
mod limits;
mod login;
mod mailbox;
mod session;
#[cfg(test)]
mod tests;
mod updates;
mod values;

use axum::Router;
use axum::extract::{Query, State, WebSocketUpgrade};
use axum::response::Response;
use axum::routing::any;
use serde::Deserialize;

use self::session::{WsEndpoint, WsSession};
use crate::state::SharedApi;

pub(crate) use self::hub::SubscriptionHub;
pub(crate) use self::limits::WsLimits;

/// Longest message of a client, bytes.
const MAX_MESSAGE: usize = 32 << 10;
/// Read buffer of a socket, bytes.
const READ_BUFFER: usize = 4 << 10;

#[derive(Deserialize)]
struct WsTokenParams {
    token: Option<String>,
}

/// The WebSocket endpoints. They are not in the REST registry: clients authenticate after connecting.
pub(crate) fn routes() -> Router<SharedApi> {
    Router::new()
        .route("/api/ws", any(general))
        .route("/api/ws/plugins/telemetry", any(telemetry))
        .route("/api/ws/plugins/notifications", any(notifications))
}

async fn general(
    state: State<SharedApi>,
    params: Query<WsTokenParams>,
    upgrade: WebSocketUpgrade,
) -> Response {
    open(state, params, upgrade, WsEndpoint::General)
}

async fn telemetry(
    state: State<SharedApi>,
    params: Query<WsTokenParams>,
    upgrade: WebSocketUpgrade,
) -> Response {
    open(state, params, upgrade, WsEndpoint::Telemetry)
}

async fn notifications(
    state: State<SharedApi>,
    params: Query<WsTokenParams>,
    upgrade: WebSocketUpgrade,
) -> Response {
    open(state, params, upgrade, WsEndpoint::Notifications)
}

fn open(
    State(api): State<SharedApi>,
    Query(params): Query<WsTokenParams>,
    upgrade: WebSocketUpgrade,
    endpoint: WsEndpoint,
) -> Response {
    upgrade
        .max_message_size(MAX_MESSAGE)
        .max_frame_size(MAX_MESSAGE)
        .read_buffer_size(READ_BUFFER)
        .write_buffer_size(0)
        .on_upgrade(move |socket| async move {
            let token = params.token.filter(|token| !token.is_empty());
            WsSession::run(api, socket, endpoint, token).await;
        })
}
