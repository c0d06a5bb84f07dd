//! A timer finer than the milliseconds of epoll.

use std::os::fd::{AsRawFd as _, OwnedFd};
use std::time::Duration;

use mio::unix::SourceFd;
use mio::{Interest, Poll, Token};
use rustix::time::{Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec};

use crate::error::LoadError;

/// Shorter waits are not worth a system call each: messages that are due meanwhile go out together.
const SHORTEST: Duration = Duration::from_micros(50);
/// What epoll may sleep beyond the timer, which ends the sleep.
const EPOLL_SLACK: Duration = Duration::from_millis(20);

/// Wakes an event loop at a time given in nanoseconds.
pub(super) struct TimerFd(OwnedFd);

impl TimerFd {
    pub(super) fn new(poll: &Poll, token: Token) -> Result<Self, LoadError> {
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

    /// How long the loop may sleep by its own, once the timer is set to wake it after `wait`.
    pub(super) fn bound(&self, wait: Duration) -> Result<Duration, LoadError> {
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
