//! Authentication of a socket, by a token in the URL or by its first message.

use std::time::Duration;

use axum::extract::ws::{Message, WebSocket};
use fieldline_entities::access::Principal;
use tokio::time::{Instant, timeout_at};

use super::commands::{AuthCommand, CommandWrapper, WsCommand};
use super::session::{BAD_DATA, POLICY, SessionEnd, WsCloseReason};
use crate::auth::TokenIdentity;
use crate::error::ApiError;
use crate::state::SharedApi;

/// How long a socket may stay unauthenticated.
const AUTH_TIMEOUT: Duration = Duration::from_secs(10);

/// The credentials of a session, checked again while the socket is open.
pub(super) enum WsCredentials {
    /// A valid access token.
    Token(TokenIdentity),
    /// An API key.
    Key(String),
}

/// An authenticated client.
pub(super) struct AuthenticatedPeer {
    pub(super) who: Principal,
    pub(super) proof: WsCredentials,
    /// The commands in the authentication message.
    pub(super) commands: Vec<WsCommand>,
}

impl WsCredentials {
    /// Returns the current principal of the credentials, if they are still valid. An expired token stays valid for the
    /// session; an expired key does not.
    pub(super) async fn authenticate(&self, api: &SharedApi) -> Result<Principal, ApiError> {
        let ticket = match self {
            Self::Token(ticket) => *ticket,
            Self::Key(value) => api.api_keys.identity(value, api.clock.now_ms()).await?,
        };
        let known = api.sessions.authenticate(ticket).await?;
        Ok(Principal::of(&known.user))
    }
}

/// Authenticates with an access token.
pub(super) async fn by_token(api: &SharedApi, token: &str) -> Result<AuthenticatedPeer, ApiError> {
    let claims = api.tokens.read_access(token, api.clock.now_ms())?;
    authenticated(api, WsCredentials::Token(claims.identity())).await
}

async fn by_command(api: &SharedApi, command: AuthCommand) -> Result<AuthenticatedPeer, ApiError> {
    if command.api_key.is_empty() {
        return by_token(api, &command.token).await;
    }
    authenticated(api, WsCredentials::Key(command.api_key)).await
}

async fn authenticated(api: &SharedApi, proof: WsCredentials) -> Result<AuthenticatedPeer, ApiError> {
    Ok(AuthenticatedPeer {
        who: proof.authenticate(api).await?,
        proof,
        commands: Vec::new(),
    })
}

/// Waits for the authentication message.
pub(super) async fn log_in(api: &SharedApi, socket: &mut WebSocket) -> Result<AuthenticatedPeer, SessionEnd> {
    let deadline = Instant::now() + AUTH_TIMEOUT;
    loop {
        let message = timeout_at(deadline, socket.recv()).await;
        let text = match message {
            Err(_) => return Err(WsCloseReason(POLICY, "Authentication timeout".to_owned()).into()),
            Ok(Some(Ok(Message::Text(text)))) => text,
            Ok(Some(Ok(Message::Close(_)) | Err(_)) | None) => return Err(SessionEnd::PeerGone),
            Ok(Some(Ok(_))) => continue,
        };
        let wrapper: CommandWrapper = serde_json::from_str(&text)
            .map_err(|_| WsCloseReason(BAD_DATA, "Failed to parse the payload".to_owned()))?;
        let Some(proof) = wrapper.auth_cmd else {
            return Err(WsCloseReason(POLICY, "Auth cmd is missing".to_owned()).into());
        };
        return match by_command(api, proof).await {
            Ok(known) => Ok(AuthenticatedPeer {
                commands: wrapper.cmds,
                ..known
            }),
            Err(error) => Err(WsCloseReason(BAD_DATA, error.message().to_owned()).into()),
        };
    }
}
