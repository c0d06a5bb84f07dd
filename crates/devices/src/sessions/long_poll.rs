//! Waiting for one thing.

use std::future::poll_fn;
use std::task;

use super::{CloseReason, OutboundPayload, SessionControl, SessionGuard};
use crate::downlink::Downlink;

/// Waits for one thing that a device wants to be sent; see [`SessionRegistry::poll`](super::SessionRegistry::poll).
/// When it is dropped, what has come is lost with it.
pub struct LongPoll(pub(super) SessionGuard);

impl LongPoll {
    /// What it shares with the rest of the platform.
    pub fn control(&self) -> &SessionControl {
        self.0.control()
    }

    /// What was sent.
    ///
    /// # Errors
    /// The device was deleted, or the server stops.
    pub async fn wait(&self) -> Result<Downlink, CloseReason> {
        let control = self.0.control();
        poll_fn(|context| {
            let closed = control.poll_close(context.waker());
            while let Some(letter) = control.take_outbound() {
                if let OutboundPayload::Downlink(downlink) = letter.payload {
                    return task::Poll::Ready(Ok(downlink));
                }
            }
            match closed {
                Some(reason) => task::Poll::Ready(Err(reason)),
                None => task::Poll::Pending,
            }
        })
        .await
    }
}
