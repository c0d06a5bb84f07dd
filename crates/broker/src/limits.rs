//! How many messages clients may publish and get.

use fieldline_core::clock::SharedClock;
use fieldline_core::rate_limits::{RateLimit, RateLimiter};

use crate::options::Options;

/// The rates of the settings; most installations have none.
pub(crate) struct MessageLimits {
    clock: SharedClock,
    total: Option<RateLimiter>,
    kept: Option<RateLimiter>,
    incoming: Option<RateLimit>,
    outgoing: Option<RateLimit>,
}

impl MessageLimits {
    /// The limits of the settings, which were checked.
    pub(crate) fn new(options: &Options, clock: &SharedClock) -> Self {
        let limit = |text: &str| RateLimit::parse(text).ok().flatten();
        let limiter = |text: &str| limit(text).map(|limit| RateLimiter::new(limit, clock.clone()));
        Self {
            total: limiter(&options.total_rate_limit),
            kept: limiter(&options.kept_rate_limit),
            incoming: limit(&options.incoming_rate_limit),
            outgoing: limit(&options.outgoing_rate_limit),
            clock: clock.clone(),
        }
    }

    /// The limit of what a client that connects may publish.
    pub(crate) fn incoming_of_client(&self) -> Option<Box<RateLimiter>> {
        self.of_client(self.incoming.as_ref())
    }

    /// The limit of the messages of QoS 0 that a client that connects gets.
    pub(crate) fn outgoing_of_client(&self) -> Option<Box<RateLimiter>> {
        self.of_client(self.outgoing.as_ref())
    }

    fn of_client(&self, limit: Option<&RateLimit>) -> Option<Box<RateLimiter>> {
        limit.map(|limit| Box::new(RateLimiter::new(limit.clone(), self.clock.clone())))
    }

    /// Whether all clients together may publish a message more; it counts.
    pub(crate) fn admits(&self) -> bool {
        has_room(self.total.as_ref())
    }

    /// Whether a message may be kept for a client of the type DEVICE; it counts.
    pub(crate) fn may_keep(&self) -> bool {
        has_room(self.kept.as_ref())
    }
}

/// Whether a limit, if there is one, has room for a message; it counts.
pub(crate) fn has_room(limiter: Option<&RateLimiter>) -> bool {
    limiter.is_none_or(|limiter| limiter.try_take(1))
}
