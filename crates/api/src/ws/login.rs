//! Who is at the other end of a socket: by a token in the address, or a first message that proves it.

use std::time::Duration;

use axum::extract::ws::{Message, WebSocket};
use fieldline_entities::access::Principal;
use tokio::time::{Instant, timeout_at};

use super::commands::{AuthCommand, CommandWrapper, WsCommand};
use super::session::{BAD_DATA, POLICY, SessionEnd, WsCloseReason};
use crate::auth::TokenIdentity;
use crate::error::ApiError;
use crate::state::SharedApi;

/// How long a socket may stay without proof of who is there.
const AUTH_TIMEOUT: Duration = Duration::from_secs(10);

/// What proves who is there, to be shown again while the socket is open.
pub(super) enum WsCredentials {
    /// An access token that counted.
    Token(TokenIdentity),
    /// An API key.
    Key(String),
}

/// Somebody who has proved who they are.
pub(super) struct AuthenticatedPeer {
    pub(super) who: Principal,
    pub(super) proof: WsCredentials,
    /// The commands that came with the proof.
    pub(super) commands: Vec<WsCommand>,
}

impl WsCredentials {
    /// Who it speaks for now, if it still counts. A token that expires meanwhile is no reason; a key is.
    pub(super) async fn authenticate(&self, api: &SharedApi) -> Result<Principal, ApiError> {
        let ticket = match self {
            Self::Token(ticket) => *ticket,
            Self::Key(value) => api.api_keys.identity(value, api.clock.now_ms()).await?,
        };
        let known = api.sessions.authenticate(ticket).await?;
        Ok(Principal::of(&known.user))
    }
}

/// Who comes with an access token.
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

/// Waits for the message that says who is there.
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
