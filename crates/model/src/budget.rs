//! What the evaluation of one message by one node may cost.
//!
//! Evaluators count as they go: a step for each value that is looked at, bytes before they are made. What is counted depends
//! on the configuration and the message alone, so that the same message fails at the same place whenever it is handled
//! again. Time is asked only where a library does not tell how much it does: after a regular expression.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Steps of the evaluators of one node for one message: milliseconds of work.
pub const MAX_STEPS: u64 = 1_000_000;
/// Bytes that the evaluators of one node make of one message, beyond the size of the message itself.
pub const MAX_MADE_BYTES: u64 = 4 << 20;
/// Time that the regular expressions of one node may take with one message.
pub const MAX_REGEX_TIME: Duration = Duration::from_millis(250);
/// Messages that one node makes of one.
pub const MAX_BRANCHES: usize = 10_000;
/// Bytes that evaluators make of a message and all that it has become since it first became several: those may wait side by
/// side.
pub const MAX_SHARED_BYTES: u64 = 64 << 20;
/// Bytes of a message that comes to a node, its metadata included.
pub const MAX_MESSAGE_BYTES: usize = 16 << 20;

/// A limit that an evaluation would have gone beyond.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("beyond the limit of {limit}: {figure}, allowed are {allowed}")]
pub struct BudgetOverrun {
    /// Name of the limit.
    pub limit: &'static str,
    /// What the evaluation would have come to.
    pub figure: u64,
    /// What is allowed.
    pub allowed: u64,
}

/// What the evaluators of a node have used of what a message may cost there. Made anew when the message comes to a node.
#[derive(Debug, Clone)]
pub struct EvaluationBudget {
    steps: u64,
    bytes: u64,
    allowed_bytes: u64,
    regex_time: Duration,
    /// Bytes that were made of the message this one was made of, together with all the others.
    shared_bytes: Option<Arc<AtomicU64>>,
}

impl Default for EvaluationBudget {
    fn default() -> Self {
        Self::new()
    }
}

impl EvaluationBudget {
    /// A budget of which nothing is used.
    pub const fn new() -> Self {
        Self {
            steps: 0,
            bytes: 0,
            allowed_bytes: MAX_MADE_BYTES,
            regex_time: Duration::ZERO,
            shared_bytes: None,
        }
    }

    /// Begins anew at the next node; what all messages made of one share goes on.
    #[inline]
    pub fn renew(&mut self) {
        let shared_bytes = self.shared_bytes.take();
        *self = Self {
            shared_bytes,
            ..Self::new()
        };
    }

    /// Counts what is made of the message together with what is made of its clones from now on.
    pub fn share(&mut self) {
        self.shared_bytes.get_or_insert_default();
    }

    /// Counts steps.
    ///
    /// # Errors
    /// They are more than [`MAX_STEPS`] together with those before.
    #[inline]
    pub fn step(&mut self, count: usize) -> Result<(), BudgetOverrun> {
        self.steps = self.steps.saturating_add(count as u64);
        within("steps of an evaluation", self.steps, MAX_STEPS)
    }

    /// Counts the steps of work that goes through so many bytes: as many as it takes the time of.
    ///
    /// # Errors
    /// See [`Self::step`].
    #[inline]
    pub fn read(&mut self, bytes: usize) -> Result<(), BudgetOverrun> {
        self.step(1 + bytes / 64)
    }

    /// Counts bytes that are about to be made.
    ///
    /// # Errors
    /// They are more than [`MAX_MADE_BYTES`] and the message together with those before.
    #[inline]
    pub fn make(&mut self, bytes: usize) -> Result<(), BudgetOverrun> {
        self.bytes = self.bytes.saturating_add(bytes as u64);
        let shared = self.shared_bytes.as_ref().map_or(0, |shared| {
            let before = shared.fetch_add(bytes as u64, Ordering::Relaxed);
            before.saturating_add(bytes as u64)
        });
        within("bytes that an evaluation makes", self.bytes, self.allowed_bytes)?;
        within("bytes that are made of one message", shared, MAX_SHARED_BYTES)
    }

    /// Bytes that were made so far.
    pub const fn made(&self) -> u64 {
        self.bytes
    }

    /// What was made since then is held no longer.
    pub fn release(&mut self, made: u64) {
        let released = self.bytes.saturating_sub(made);
        self.bytes -= released;
        if let Some(shared) = &self.shared_bytes {
            shared.fetch_sub(released, Ordering::Relaxed);
        }
    }

    /// Whether so many bytes more fit without [`Self::allow_message`].
    pub fn has_room(&self, bytes: usize) -> bool {
        self.bytes.saturating_add(bytes as u64) <= self.allowed_bytes
    }

    /// Allows as many bytes as a message of this size has, besides [`MAX_MADE_BYTES`]. Whatever takes part of a large
    /// message has made no more than there was.
    #[inline]
    pub fn allow_message(&mut self, bytes: usize) {
        let message = bytes.min(MAX_MESSAGE_BYTES) as u64;
        self.allowed_bytes = self.allowed_bytes.max(MAX_MADE_BYTES + message);
    }

    /// Prepares a message that becomes so many.
    ///
    /// # Errors
    /// They are more than [`MAX_BRANCHES`].
    pub fn branch(&mut self, count: usize) -> Result<(), BudgetOverrun> {
        self.share();
        within(
            "messages that a node makes of one",
            count as u64,
            MAX_BRANCHES as u64,
        )
    }

    /// Counts the time since a regular expression was begun.
    ///
    /// # Errors
    /// It is more than [`MAX_REGEX_TIME`] together with the one before.
    pub fn regex_since(&mut self, began: Instant) -> Result<(), BudgetOverrun> {
        self.regex_time = self.regex_time.saturating_add(began.elapsed());
        let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        within(
            "milliseconds of regular expressions",
            millis(self.regex_time),
            millis(MAX_REGEX_TIME),
        )
    }
}

/// Whether a figure is within a limit.
///
/// # Errors
/// It is beyond.
#[inline]
pub fn within(limit: &'static str, figure: u64, allowed: u64) -> Result<(), BudgetOverrun> {
    if figure <= allowed {
        return Ok(());
    }
    Err(BudgetOverrun {
        limit,
        figure,
        allowed,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_and_bytes_add_up_to_their_limits_and_no_further() {
        let mut budget = EvaluationBudget::new();
        assert_eq!(budget.step(999_999), Ok(()));
        assert_eq!(budget.step(1), Ok(()));
        let refused = budget.step(1).unwrap_err();
        assert_eq!(
            refused.to_string(),
            "beyond the limit of steps of an evaluation: 1000001, allowed are 1000000"
        );
        assert_eq!(budget.make(4 << 20), Ok(()));
        assert!(!budget.has_room(1));
        budget.allow_message(10);
        assert_eq!(budget.make(10), Ok(()));
        assert_eq!(
            budget.make(1),
            Err(BudgetOverrun {
                limit: "bytes that an evaluation makes",
                figure: (4 << 20) + 11,
                allowed: (4 << 20) + 10,
            })
        );
        budget.release(5);
        assert_eq!((budget.made(), budget.make(100)), (5, Ok(())));
        assert!(budget.step(usize::MAX).is_err(), "nothing overflows");
    }

    #[test]
    fn a_node_makes_so_many_messages_of_one() {
        let mut budget = EvaluationBudget::new();
        assert_eq!(budget.branch(MAX_BRANCHES), Ok(()));
        assert_eq!(budget.branch(MAX_BRANCHES + 1).unwrap_err().figure, 10_001);
    }

    #[test]
    fn all_messages_made_of_one_share_what_is_made_of_it() {
        let mut budget = EvaluationBudget::new();
        budget.branch(20).unwrap();
        let mut branches = vec![budget; 20];
        let refused = branches.iter_mut().find_map(|branch| {
            branch.renew();
            branch.make(4 << 20).err()
        });
        assert_eq!(
            refused,
            Some(BudgetOverrun {
                limit: "bytes that are made of one message",
                figure: 68 << 20,
                allowed: 64 << 20,
            })
        );
    }
}
