//! Output of a session, within its memory and its rate limit, and the close frame.

use std::time::Duration;

use axum::extract::ws::{CloseFrame, Message, WebSocket};
use tokio::time::{sleep, timeout};

use super::super::updates;
use super::{POLICY, SessionEnd, WsCloseReason, WsSession};

/// Timeout for sending a message.
const SEND_TIMEOUT: Duration = Duration::from_secs(30);
/// Bytes of messages that are not counted.
const FREE_BYTES: usize = 16 << 10;
/// Most bytes of a close reason that fit into a control frame beside the code.
const MAX_REASON: usize = 123;

impl WsSession {
    /// Sends the pending messages; if `limited`, within the update rate of the profile.
    pub(super) async fn flush(&mut self, limited: bool) -> Result<(), SessionEnd> {
        let bytes: usize = self.context.out.iter().map(String::len).sum();
        if bytes > FREE_BYTES
            && let Err(refusal) = self.memory.resize(self.followed_bytes + bytes)
        {
            self.context.out.clear();
            return Err(WsCloseReason(POLICY, refusal.to_string()).into());
        }
        let sent = self.send_all(limited).await;
        self.memory.shrink_to(self.followed_bytes);
        sent
    }

    async fn send_all(&mut self, limited: bool) -> Result<(), SessionEnd> {
        for text in std::mem::take(&mut self.context.out) {
            if limited && !self.quota.try_acquire_update() {
                if !std::mem::replace(&mut self.is_limit_reported, true) {
                    let error = updates::error(0, updates::TOO_MANY, "Too many updates!");
                    self.send(Message::Text(error.into())).await?;
                }
                continue;
            }
            if limited {
                self.is_limit_reported = false;
            }
            self.send(Message::Text(text.into())).await?;
        }
        Ok(())
    }

    pub(super) async fn send(&mut self, message: Message) -> Result<(), SessionEnd> {
        match timeout(SEND_TIMEOUT, self.socket.send(message)).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) | Err(_) => Err(SessionEnd::PeerGone),
        }
    }
}

/// Sends a close frame, and waits a moment for the client to receive it.
pub(super) async fn close_socket(socket: &mut WebSocket, WsCloseReason(code, reason): WsCloseReason) {
    const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);
    let reason = &reason[..reason.floor_char_boundary(MAX_REASON)];
    let frame = CloseFrame {
        code,
        reason: reason.into(),
    };
    let told = async {
        if socket.send(Message::Close(Some(frame))).await.is_ok() {
            while let Some(Ok(_)) = socket.recv().await {}
        }
    };
    tokio::select! {
        () = told => {}
        () = sleep(CLOSE_TIMEOUT) => {}
    }
}
