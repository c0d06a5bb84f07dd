//! Timeouts of connections that do not fire because the whole process was paused.
//!
//! When a paused process resumes, its timers have expired, but data that its peers sent meanwhile has not been read
//! yet. So an expired timeout waits a moment for arrived data before it fires.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use hyper::rt::{Sleep, Timer};
use tokio::time::Instant;

/// Time for the runtime to notice data that has arrived.
const ARRIVAL_GRACE: Duration = Duration::from_millis(20);

/// Resolves a moment after a point in time.
#[derive(Debug)]
pub(super) struct PeerTimeout {
    sleep: Pin<Box<tokio::time::Sleep>>,
    has_passed: bool,
}

impl PeerTimeout {
    /// Creates a timeout at this time.
    pub(super) fn at(deadline: Instant) -> Self {
        Self {
            sleep: Box::pin(tokio::time::sleep_until(deadline)),
            has_passed: false,
        }
    }
}

impl Future for PeerTimeout {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        ready!(self.sleep.as_mut().poll(context));
        if !self.has_passed {
            self.has_passed = true;
            self.sleep.as_mut().reset(Instant::now() + ARRIVAL_GRACE);
            ready!(self.sleep.as_mut().poll(context));
        }
        Poll::Ready(())
    }
}

impl Sleep for PeerTimeout {}

/// Creates such timeouts for the HTTP server.
#[derive(Debug, Clone, Copy)]
pub(super) struct PeerTimer;

impl Timer for PeerTimer {
    fn sleep(&self, duration: Duration) -> Pin<Box<dyn Sleep>> {
        Box::pin(PeerTimeout::at(Instant::now() + duration))
    }

    fn sleep_until(&self, deadline: std::time::Instant) -> Pin<Box<dyn Sleep>> {
        Box::pin(PeerTimeout::at(deadline.into()))
    }

    fn reset(&self, sleep: &mut Pin<Box<dyn Sleep>>, deadline: std::time::Instant) {
        match sleep.as_mut().downcast_mut_pin::<PeerTimeout>() {
            Some(mut timeout) => {
                timeout.sleep.as_mut().reset(deadline.into());
                timeout.has_passed = false;
            }
            None => *sleep = self.sleep_until(deadline),
        }
    }

    fn now(&self) -> std::time::Instant {
        Instant::now().into()
    }
}
