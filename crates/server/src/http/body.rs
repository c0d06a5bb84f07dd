//! Bodies of requests that must arrive in time.

use std::future::Future as _;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use hyper::body::{Body, Frame, SizeHint};
use tokio::time::Instant;

use super::timer::Timeout;

/// How long a body is waited for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Patience {
    /// Longest silence.
    pub(super) silence: Duration,
    /// Until all of it has arrived.
    pub(super) whole: Duration,
}

/// A body that fails when it is late. Reading what has arrived never fails, however late it is read.
pub(super) struct TimedBody<B> {
    body: B,
    silence: Duration,
    deadline: Instant,
    /// There while the peer is waited for.
    timeout: Option<Timeout>,
}

impl<B> TimedBody<B> {
    pub(super) fn new(body: B, patience: Patience) -> Self {
        Self {
            body,
            silence: patience.silence,
            deadline: Instant::now() + patience.whole,
            timeout: None,
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
        if let Poll::Ready(frame) = Pin::new(&mut self.body).poll_frame(context) {
            self.timeout = None;
            return Poll::Ready(frame.map(|frame| frame.map_err(Into::into)));
        }
        let until = self.deadline.min(Instant::now() + self.silence);
        let timeout = self.timeout.get_or_insert_with(|| Timeout::at(until));
        ready!(Pin::new(timeout).poll(context));
        let late = io::Error::new(
            io::ErrorKind::TimedOut,
            "the body of the request did not arrive in time",
        );
        Poll::Ready(Some(Err(late.into())))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
