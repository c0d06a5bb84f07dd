//! A timer with a finer resolution than the milliseconds of epoll.

use std::os::fd::{AsRawFd as _, OwnedFd};
use std::time::Duration;

use mio::unix::SourceFd;
use mio::{Interest, Poll, Token};
use rustix::time::{Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec};

use crate::error::LoadError;

/// Shortest wait: a shorter one is not worth a system call, and messages that fall due meanwhile are sent together.
const SHORTEST: Duration = Duration::from_micros(50);
/// Extra time of the epoll wait, so that the timer ends it first.
const EPOLL_SLACK: Duration = Duration::from_millis(20);

/// Wakes an event loop with nanosecond resolution.
pub(crate) struct TimerFd(OwnedFd);

impl TimerFd {
    pub(crate) fn new(poll: &Poll, token: Token) -> Result<Self, LoadError> {
        let failed = |error: std::io::Error| LoadError::Engine(format!("timer: {error}"));
        let timer = rustix::time::timerfd_create(
            TimerfdClockId::Monotonic,
            TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC,
        )
        .map_err(|error| failed(error.into()))?;
        poll.registry()
            .register(&mut SourceFd(&timer.as_raw_fd()), token, Interest::READABLE)
            .map_err(failed)?;
        Ok(Self(timer))
    }

    /// Sets the timer to wake the loop after `wait`, and returns the longest time that epoll itself may wait.
    pub(crate) fn bound(&self, wait: Duration) -> Result<Duration, LoadError> {
        if wait.is_zero() {
            return Ok(wait);
        }
        let wait = wait.max(SHORTEST);
        let spec = Itimerspec {
            it_interval: Timespec::default(),
            it_value: Timespec {
                tv_sec: i64::try_from(wait.as_secs()).unwrap_or(i64::MAX),
                tv_nsec: i64::from(wait.subsec_nanos()),
            },
        };
        rustix::time::timerfd_settime(&self.0, TimerfdTimerFlags::empty(), &spec)
            .map_err(|error| LoadError::Engine(format!("timer: {error}")))?;
        Ok(wait.saturating_add(EPOLL_SLACK))
    }
}
