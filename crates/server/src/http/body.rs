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
    /// There from the first time that the peer was waited for.
    late: Option<Timeout>,
    /// There while the peer is waited for.
    silent: Option<Timeout>,
}

impl<B> TimedBody<B> {
    pub(super) fn new(body: B, patience: Patience) -> Self {
        Self {
            body,
            silence: patience.silence,
            deadline: Instant::now() + patience.whole,
            late: None,
            silent: None,
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
            self.silent = None;
            return Poll::Ready(frame.map(|frame| frame.map_err(Into::into)));
        }
        let (deadline, until) = (self.deadline, Instant::now() + self.silence);
        // One that is too late as a whole stays so, whatever drips in meanwhile.
        let late = self.late.get_or_insert_with(|| Timeout::at(deadline));
        if Pin::new(late).poll(context).is_pending() {
            let silent = self.silent.get_or_insert_with(|| Timeout::at(until));
            ready!(Pin::new(silent).poll(context));
        }
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

#[cfg(test)]
mod tests {
    use axum::body::Bytes;

    use super::*;

    /// A byte each time that so much time has passed, for ever.
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
        let patience = Patience {
            silence: Duration::from_secs(1),
            whole: Duration::from_secs(10),
        };
        for pause in [1, 10, 900] {
            let pause = Duration::from_millis(pause);
            let begun = Instant::now();
            let mut body = TimedBody::new(Drip(pause, Box::pin(tokio::time::sleep(pause))), patience);
            let mut frame =
                async || std::future::poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await;
            while frame().await.is_some_and(|frame| frame.is_ok()) {}
            let taken = begun.elapsed();
            assert!(patience.whole <= taken && taken < 2 * patience.whole, "{taken:?}");
        }
    }
}
