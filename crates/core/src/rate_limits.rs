//! Rate limits in the syntax of tenant profiles: `100:1,1000:60` allows 100 per second and 1000 per minute.
//!
//! Each pair is a token bucket that starts full and refills evenly; a request passes if every bucket holds enough
//! tokens.

use std::fmt;

use parking_lot::Mutex;

use crate::clock::SharedClock;

/// Most buckets of one limit.
const MAX_BUCKETS: usize = 16;

/// A parsed limit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RateLimit(Vec<BucketRate>);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct BucketRate {
    capacity: u64,
    period_ms: u64,
}

/// The text is not a valid limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a rate limit is written as `number:seconds`, several of them separated by commas")]
pub struct RateParseError;

impl RateLimit {
    /// Parses a limit; an empty text means no limit.
    ///
    /// # Errors
    /// The text is not a valid limit.
    pub fn parse(text: &str) -> Result<Option<Self>, RateParseError> {
        if text.trim().is_empty() {
            return Ok(None);
        }
        let bandwidths: Option<Vec<BucketRate>> = text.split(',').map(BucketRate::parse).collect();
        match bandwidths {
            Some(bandwidths) if bandwidths.len() <= MAX_BUCKETS => Ok(Some(Self(bandwidths))),
            _ => Err(RateParseError),
        }
    }
}

/// In the syntax of tenant profiles.
impl fmt::Display for RateLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, bandwidth) in self.0.iter().enumerate() {
            let comma = if index > 0 { "," } else { "" };
            write!(f, "{comma}{}:{}", bandwidth.capacity, bandwidth.period_ms / 1_000)?;
        }
        Ok(())
    }
}

impl BucketRate {
    fn parse(text: &str) -> Option<Self> {
        let (capacity, seconds) = text.trim().split_once(':')?;
        let capacity: u64 = capacity.trim().parse().ok()?;
        let seconds: u64 = seconds.trim().parse().ok()?;
        let period_ms = seconds.checked_mul(1_000)?;
        (capacity > 0 && period_ms > 0).then_some(Self { capacity, period_ms })
    }
}

/// The tokens left of a limit.
pub struct RateLimiter {
    limit: RateLimit,
    clock: SharedClock,
    buckets: Mutex<Vec<TokenBucket>>,
}

/// The tokens left, each divided into as many parts as the period has milliseconds, so that nothing is rounded away.
#[derive(Clone, Copy)]
struct TokenBucket {
    parts: u128,
    at_ms: i64,
}

impl RateLimiter {
    /// Creates a limiter with full buckets.
    pub fn new(limit: RateLimit, clock: SharedClock) -> Self {
        let now = clock.now_ms();
        let full = |bandwidth: &BucketRate| TokenBucket {
            parts: bandwidth.full(),
            at_ms: now,
        };
        let buckets = limit.0.iter().map(full).collect();
        Self {
            limit,
            clock,
            buckets: Mutex::new(buckets),
        }
    }

    /// The limit that it enforces.
    pub const fn limit(&self) -> &RateLimit {
        &self.limit
    }

    /// Takes `count` tokens from every bucket, or none if any bucket holds fewer.
    pub fn try_take(&self, count: u64) -> bool {
        let now = self.clock.now_ms();
        let mut buckets = self.buckets.lock();
        let pairs = || self.limit.0.iter();
        for (bandwidth, bucket) in pairs().zip(buckets.iter_mut()) {
            // If the clock was set back, refilling continues from the new time.
            let passed = now.saturating_sub(bucket.at_ms).max(0).unsigned_abs();
            let filled = u128::from(passed) * u128::from(bandwidth.capacity);
            bucket.parts = bucket.parts.saturating_add(filled).min(bandwidth.full());
            bucket.at_ms = now;
        }
        let need = |bandwidth: &BucketRate| u128::from(count) * u128::from(bandwidth.period_ms);
        let has_all = pairs()
            .zip(buckets.iter())
            .all(|(bandwidth, bucket)| bucket.parts >= need(bandwidth));
        if has_all {
            for (bandwidth, bucket) in pairs().zip(buckets.iter_mut()) {
                bucket.parts -= need(bandwidth);
            }
        }
        has_all
    }
}

impl BucketRate {
    fn full(&self) -> u128 {
        u128::from(self.capacity) * u128::from(self.period_ms)
    }
}

impl fmt::Debug for RateLimiter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("RateLimiter").field(&self.limit).finish()
    }
}

/// Rate limits of messages: of messages without values, of messages with values, and of the values.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MessageRates {
    /// Messages without values.
    pub messages: Option<RateLimit>,
    /// Messages with values.
    pub telemetry_messages: Option<RateLimit>,
    /// Values.
    pub telemetry_points: Option<RateLimit>,
}

impl MessageRates {
    /// Parses the three limits. An invalid text means no limit, because profiles stored earlier may hold anything.
    pub fn parse(texts: [Option<&str>; 3]) -> Self {
        let [messages, telemetry_messages, telemetry_points] =
            texts.map(|text| RateLimit::parse(text.unwrap_or_default()).unwrap_or_default());
        Self {
            messages,
            telemetry_messages,
            telemetry_points,
        }
    }

    /// Returns whether nothing is limited.
    pub const fn is_none(&self) -> bool {
        self.messages.is_none() && self.telemetry_messages.is_none() && self.telemetry_points.is_none()
    }
}

/// The tokens left of the limits of messages.
#[derive(Debug)]
pub struct MessageLimiter {
    rates: MessageRates,
    messages: Option<RateLimiter>,
    telemetry_messages: Option<RateLimiter>,
    telemetry_points: Option<RateLimiter>,
}

impl MessageLimiter {
    /// Creates a limiter with full buckets.
    pub fn new(rates: &MessageRates, clock: &SharedClock) -> Self {
        let limiter =
            |limit: &Option<RateLimit>| limit.clone().map(|limit| RateLimiter::new(limit, clock.clone()));
        Self {
            messages: limiter(&rates.messages),
            telemetry_messages: limiter(&rates.telemetry_messages),
            telemetry_points: limiter(&rates.telemetry_points),
            rates: rates.clone(),
        }
    }

    /// The limits that it enforces.
    pub const fn rates(&self) -> &MessageRates {
        &self.rates
    }

    /// Counts a message with `points` values.
    ///
    /// # Errors
    /// The message exceeds a limit.
    pub fn acquire(&self, points: u32) -> Result<(), RateLimitViolation> {
        let take = |limiter: &Option<RateLimiter>, of: &'static str, count: u32| match limiter {
            Some(limiter) if !limiter.try_take(count.into()) => Err(RateLimitViolation {
                of,
                limit: limiter.limit().clone(),
            }),
            _ => Ok(()),
        };
        if points == 0 {
            take(&self.messages, "messages", 1)
        } else {
            take(&self.telemetry_messages, "telemetry messages", 1)?;
            take(&self.telemetry_points, "telemetry data points", points)
        }
    }
}

/// The limit that a message exceeds.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{of}, {limit}")]
pub struct RateLimitViolation {
    /// The limited quantity.
    pub of: &'static str,
    /// The limit.
    pub limit: RateLimit,
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicI64, Ordering};

    use super::*;
    use crate::clock::Clock;

    #[derive(Default)]
    struct Hand(AtomicI64);

    impl Clock for Hand {
        fn now_ms(&self) -> i64 {
            self.0.load(Ordering::Relaxed)
        }
    }

    fn limit(text: &str) -> RateLimit {
        RateLimit::parse(text).unwrap().unwrap()
    }

    #[test]
    fn every_pair_has_to_hold_enough_and_fills_up_evenly() {
        let hand = Arc::new(Hand::default());
        let limiter = RateLimiter::new(limit("10:1, 15:60"), hand.clone());
        assert!(limiter.try_take(10));
        assert!(!limiter.try_take(1), "the second is full");
        hand.0.fetch_add(100, Ordering::Relaxed);
        assert!(limiter.try_take(1), "a tenth of a second brings one back");
        assert!(!limiter.try_take(1));
        hand.0.fetch_add(5_000, Ordering::Relaxed);
        // The minute bucket had 15 tokens left and got 1.275 back, of which 11 are gone.
        assert!(
            !limiter.try_take(6),
            "the minute is full, and a refusal takes nothing"
        );
        assert!(limiter.try_take(5));
        assert!(!limiter.try_take(1));
        hand.0.fetch_add(-3_600_000, Ordering::Relaxed);
        assert!(!limiter.try_take(1), "a clock that was set back brings nothing");
        hand.0.fetch_add(4_000, Ordering::Relaxed);
        assert!(limiter.try_take(1), "and takes nothing");
    }

    #[test]
    fn what_is_no_limit_is_refused() {
        for text in ["x", "1", "1:", ":1", "0:1", "1:0", "-1:1", "1:1,", "1:1;2:2"] {
            assert_eq!(RateLimit::parse(text), Err(RateParseError), "{text}");
        }
        assert_eq!(RateLimit::parse(" "), Ok(None));
        let many = ["1:1"; MAX_BUCKETS + 1].join(",");
        assert_eq!(RateLimit::parse(&many), Err(RateParseError));
    }

    #[test]
    fn messages_with_values_have_limits_of_their_own() {
        let clock: SharedClock = Arc::new(Hand::default());
        let rates = MessageRates::parse([Some("1:1"), Some("3:1"), Some("10:1")]);
        let limiter = MessageLimiter::new(&rates, &clock);
        let passes = |points| limiter.acquire(points).map_err(|exceeded| exceeded.to_string());
        assert_eq!(passes(0), Ok(()));
        assert_eq!(passes(0), Err("messages, 1:1".to_owned()));
        assert_eq!(passes(6), Ok(()));
        assert_eq!(passes(6), Err("telemetry data points, 10:1".to_owned()));
        assert_eq!(passes(1), Ok(()));
        assert_eq!(passes(1), Err("telemetry messages, 3:1".to_owned()));
        let free = MessageLimiter::new(&MessageRates::parse([None, Some("nonsense"), None]), &clock);
        assert!(free.rates().is_none() && free.acquire(1_000).is_ok());
    }
}
