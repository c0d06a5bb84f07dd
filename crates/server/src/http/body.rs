//! Request bodies that must arrive in time, and the handling of bodies that no handler reads.

use std::future::{Future as _, poll_fn};
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use hyper::body::{Body, Buf as _, Frame, SizeHint};
use parking_lot::Mutex;
use tokio::time::Instant;

use super::timer::PeerTimeout;

/// Timeouts for the arrival of a body.
#[derive(Debug, Clone, Copy)]
pub(super) struct BodyTimeouts {
    /// Longest silence.
    pub(super) silence: Duration,
    /// Time until all of it has arrived.
    pub(super) whole: Duration,
}

/// Most bytes of a body that are read only to discard them: beyond that a new connection is cheaper.
const MAX_DISCARD_BYTES: usize = 256 << 10;
/// How long the discarding may take.
const DISCARD_TIMEOUT: Duration = Duration::from_millis(500);

/// The rest of a body whose request was answered without reading all of it, for example because its token has expired.
/// Clients send the body in a packet after the head: if the server closed the connection at that point, their next
/// request on it would fail.
pub(super) struct UnreadBody<B>(Arc<Mutex<Option<B>>>);

impl<B> UnreadBody<B>
where
    B: Body + Unpin,
{
    /// Reads and discards the rest, so that the connection can be used again; returns whether the end was reached.
    pub(super) async fn discard(self) -> bool {
        let Some(mut body) = self.0.lock().take() else {
            return true;
        };
        if body.size_hint().lower() > MAX_DISCARD_BYTES as u64 {
            return false;
        }
        let all = async {
            let mut read = 0;
            while let Some(frame) = poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await {
                read += match frame {
                    Ok(frame) => frame.data_ref().map_or(0, |data| data.remaining()),
                    Err(_) => return false,
                };
                if read > MAX_DISCARD_BYTES {
                    return false;
                }
            }
            true
        };
        tokio::time::timeout(DISCARD_TIMEOUT, all).await.unwrap_or(false)
    }
}

/// A body that fails when it is late. Reading data that has arrived never fails, however late it is read.
pub(super) struct TimedBody<B: Body> {
    /// Present until the body is dropped.
    body: Option<B>,
    /// Receives the body when it is dropped before its end.
    unread: Option<Arc<Mutex<Option<B>>>>,
    silence: Duration,
    deadline: Instant,
    /// Deadline of the whole body; set from the first wait for the peer.
    late: Option<PeerTimeout>,
    /// Timeout of the silence; set while waiting for the peer.
    silent: Option<PeerTimeout>,
}

impl<B: Body> TimedBody<B> {
    pub(super) fn new(body: B, patience: BodyTimeouts) -> Self {
        Self {
            body: Some(body),
            unread: None,
            silence: patience.silence,
            deadline: Instant::now() + patience.whole,
            late: None,
            silent: None,
        }
    }

    /// Returns a handle to what will be left of the body when it is dropped; `None` if the body has already ended.
    pub(super) fn unread(&mut self) -> Option<UnreadBody<B>> {
        if self.body.as_ref().is_none_or(Body::is_end_stream) {
            return None;
        }
        let unread = Arc::default();
        self.unread = Some(Arc::clone(&unread));
        Some(UnreadBody(unread))
    }
}

impl<B: Body> Drop for TimedBody<B> {
    fn drop(&mut self) {
        if let (Some(body), Some(unread)) = (self.body.take(), self.unread.take())
            && !body.is_end_stream()
        {
            *unread.lock() = Some(body);
        }
    }
}

impl<B> Body for TimedBody<B>
where
    B: Body + Unpin,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    type Data = B::Data;
    type Error = Box<dyn std::error::Error + Send + Sync>;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        let Some(body) = &mut self.body else {
            return Poll::Ready(None);
        };
        if let Poll::Ready(frame) = Pin::new(body).poll_frame(context) {
            self.silent = None;
            return Poll::Ready(frame.map(|frame| frame.map_err(Into::into)));
        }
        let (deadline, until) = (self.deadline, Instant::now() + self.silence);
        // Once the whole body is late, it stays late, whatever still drips in.
        let late = self.late.get_or_insert_with(|| PeerTimeout::at(deadline));
        if Pin::new(late).poll(context).is_pending() {
            let silent = self.silent.get_or_insert_with(|| PeerTimeout::at(until));
            ready!(Pin::new(silent).poll(context));
        }
        // A late body is not read to its end after the answer either.
        self.unread = None;
        let late = io::Error::new(
            io::ErrorKind::TimedOut,
            "the body of the request did not arrive in time",
        );
        Poll::Ready(Some(Err(late.into())))
    }

    fn is_end_stream(&self) -> bool {
        self.body.as_ref().is_none_or(Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.body.as_ref().map_or_else(SizeHint::new, Body::size_hint)
    }
}

#[cfg(test)]
mod tests {
    use axum::body::Bytes;

    use super::*;

    /// Yields a byte at that interval, forever.
    struct Drip(Duration, Pin<Box<tokio::time::Sleep>>);

    impl Body for Drip {
        type Data = Bytes;
        type Error = io::Error;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            context: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
            ready!(self.1.as_mut().poll(context));
            let next = Instant::now() + self.0;
            self.1.as_mut().reset(next);
            Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(b"x")))))
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_drips_fails_when_the_whole_is_late_however_fast_it_drips() {
        let patience = BodyTimeouts {
            silence: Duration::from_secs(1),
            whole: Duration::from_secs(10),
        };
        for pause in [1, 10, 900] {
            let pause = Duration::from_millis(pause);
            let begun = Instant::now();
            let mut body = TimedBody::new(Drip(pause, Box::pin(tokio::time::sleep(pause))), patience);
            let mut frame = async || poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await;
            while frame().await.is_some_and(|frame| frame.is_ok()) {}
            let taken = begun.elapsed();
            assert!(patience.whole <= taken && taken < 2 * patience.whole, "{taken:?}");
        }
    }
}
