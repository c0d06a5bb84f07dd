//! Decides whether a message that was not taken is sent again.

use std::collections::HashSet;
use std::time::Duration;

use fieldline_connectors::Backoff;

pub(crate) const FIRST_PAUSE: Duration = Duration::from_millis(500);
pub(crate) const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// Shortest pause before a destination that is not there is looked for again.
const DESTINATION_PAUSE: Duration = Duration::from_secs(10);

/// Attempts for a message that is itself at fault.
pub(crate) const ATTEMPTS: u32 = 5;
/// Attempts for a message while others are taken: a side that takes others is there.
const STRIKES: u32 = 20;
/// Both for what follows on the topic of a message that was given up.
const FURTHER_ATTEMPTS: u32 = 1;
const FURTHER_STRIKES: u32 = 5;
/// Most topics that are known for messages that were given up; it begins again beyond.
const MOST_TOPICS: usize = 1_000;

/// Why a side does not take a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RefusalCause {
    /// The message, as the side says.
    Message,
    /// Where the message should go is not there.
    Destination,
    /// The side, as far as anybody knows.
    Side,
    /// The side has no time or no room, as it says.
    Busy,
}

/// What a side takes, and of what it has taken nothing lately.
#[derive(Default)]
pub(crate) struct RetryPolicy {
    taken: u64,
    given_up: HashSet<String>,
}

/// How often a message was not taken.
pub(crate) struct MessageRetries {
    pub(crate) attempts: u32,
    /// Attempts at which the message was at fault.
    faults: u32,
    strikes: u32,
    /// What the side had taken at the last attempt.
    taken: u64,
    /// Whether a message of the topic was given up before it came.
    is_further: bool,
    backoff: Backoff,
}

impl RetryPolicy {
    /// The retries of a message that is sent for the first time.
    pub(crate) fn first(&self, topic: &str) -> MessageRetries {
        MessageRetries {
            attempts: 0,
            faults: 0,
            strikes: 0,
            taken: self.taken,
            is_further: self.given_up.contains(topic),
            backoff: Backoff::new(FIRST_PAUSE, LONGEST_PAUSE),
        }
    }

    /// The side has taken a message of a topic.
    pub(crate) fn note_taken(&mut self, topic: &str) {
        self.taken += 1;
        if !self.given_up.is_empty() {
            self.given_up.remove(topic);
        }
    }

    /// How long to wait with a message that was not taken; `None` if it is given up. While a side takes nothing at all, no message
    /// is given up that is not itself at fault.
    pub(crate) fn pause(
        &mut self,
        topic: &str,
        retries: &mut MessageRetries,
        cause: RefusalCause,
    ) -> Option<Duration> {
        retries.attempts += 1;
        let others_were_taken = std::mem::replace(&mut retries.taken, self.taken) != self.taken;
        let (most_faults, most_strikes) = match retries.is_further {
            true => (FURTHER_ATTEMPTS, FURTHER_STRIKES),
            false => (ATTEMPTS, STRIKES),
        };
        let is_over = match cause {
            RefusalCause::Message | RefusalCause::Destination => {
                retries.faults += 1;
                retries.faults >= most_faults
            }
            RefusalCause::Side => {
                retries.strikes += u32::from(others_were_taken);
                retries.strikes >= most_strikes
            }
            RefusalCause::Busy => false,
        };
        if is_over {
            if self.given_up.len() >= MOST_TOPICS {
                self.given_up.clear();
            }
            self.given_up.insert(topic.to_owned());
            return None;
        }
        let pause = retries.backoff.pause();
        Some(match cause {
            RefusalCause::Destination => pause.max(DESTINATION_PAUSE),
            _ => pause,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::RefusalCause::{Busy, Destination, Message, Side};
    use super::*;

    #[test]
    fn nothing_is_given_up_while_a_side_is_away_and_after_it_has_come_back() {
        let mut policy = RetryPolicy::default();
        let mut waiting: Vec<_> = (0..100).map(|_| policy.first("a")).collect();
        for _ in 0..50 {
            for retries in &mut waiting {
                assert!(policy.pause("a", retries, Side).is_some());
            }
        }
        policy.note_taken("a");
        for retries in &mut waiting {
            assert!(
                policy.pause("a", retries, Side).is_some(),
                "one that was taken is no reason"
            );
        }
    }

    #[test]
    fn a_message_that_is_not_taken_while_others_are_is_given_up() {
        let mut policy = RetryPolicy::default();
        let mut retries = policy.first("a");
        let attempts = |policy: &mut RetryPolicy, retries: &mut MessageRetries| {
            (1..).find(|_| {
                policy.note_taken("other");
                policy.pause("a", retries, Side).is_none()
            })
        };
        assert_eq!(attempts(&mut policy, &mut retries), Some(20));
        // What follows on its topic keeps the others waiting for a shorter time, until one is taken.
        let mut next = policy.first("a");
        assert_eq!(attempts(&mut policy, &mut next), Some(5));
        policy.note_taken("a");
        let mut next = policy.first("a");
        assert_eq!(attempts(&mut policy, &mut next), Some(20));
    }

    #[test]
    fn a_message_that_is_itself_at_fault_is_given_up_by_its_attempts() {
        let mut policy = RetryPolicy::default();
        let mut retries = policy.first("a");
        for _ in 1..ATTEMPTS {
            assert!(policy.pause("a", &mut retries, Message).is_some());
        }
        assert_eq!(policy.pause("a", &mut retries, Message), None);
        let mut next = policy.first("a");
        assert_eq!(policy.pause("a", &mut next, Message), None);
    }

    #[test]
    fn what_was_not_the_fault_of_a_message_does_not_count_against_it() {
        let mut policy = RetryPolicy::default();
        let mut retries = policy.first("a");
        for _ in 0..100 {
            assert!(policy.pause("a", &mut retries, Side).is_some());
            policy.note_taken("b");
            assert!(policy.pause("a", &mut retries, Busy).is_some());
        }
        for _ in 1..ATTEMPTS {
            let pause = policy.pause("a", &mut retries, Destination);
            assert!(pause.is_some_and(|pause| pause >= DESTINATION_PAUSE));
        }
        assert_eq!(policy.pause("a", &mut retries, Message), None);
    }

    #[test]
    fn topics_of_messages_that_were_given_up_take_a_bounded_room() {
        let mut policy = RetryPolicy::default();
        for topic in 0..3 * MOST_TOPICS {
            let mut retries = policy.first(&topic.to_string());
            for _ in 0..ATTEMPTS {
                let _ = policy.pause(&topic.to_string(), &mut retries, Message);
            }
            assert!(policy.given_up.len() <= MOST_TOPICS);
        }
    }
}
