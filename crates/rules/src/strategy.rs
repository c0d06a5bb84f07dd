//! How the messages of a batch are submitted, and what happens to those that fail or take too long.

use std::time::Duration;

use fieldline_model::entity::{ProcessingStrategyType, Queue, SubmitStrategyType};

/// The strategies of a queue.
#[derive(Debug, Clone, PartialEq)]
pub struct QueueStrategy {
    /// Which messages are processed at the same time.
    pub submit: SubmitStrategyType,
    /// Messages a batch.
    pub batch: usize,
    /// What happens to those that fail.
    pub processing: ProcessingStrategyType,
    /// How often a batch is tried again; 0 for ever.
    pub retries: u32,
    /// Fraction of failed messages above which a batch is not tried again; 0 for any.
    pub failure_fraction: f64,
    /// Before the first retry.
    pub pause: Duration,
    /// What the pause grows to.
    pub max_pause: Duration,
    /// How long the messages of a batch may take.
    pub timeout: Duration,
}

impl Default for QueueStrategy {
    fn default() -> Self {
        Self {
            submit: SubmitStrategyType::Burst,
            batch: 1000,
            processing: ProcessingStrategyType::SkipAllFailures,
            retries: 3,
            failure_fraction: 0.0,
            pause: Duration::from_secs(3),
            max_pause: Duration::from_secs(3),
            timeout: Duration::from_secs(2),
        }
    }
}

impl QueueStrategy {
    /// The strategies of a queue as it is configured.
    pub fn of(queue: &Queue) -> Self {
        let default = Self::default();
        let submit = queue.submit_strategy.unwrap_or_default();
        let processing = queue.processing_strategy.unwrap_or_default();
        let seconds = |seconds: i64| Duration::from_secs(seconds.clamp(0, 86_400).unsigned_abs());
        let pause = seconds(processing.pause_between_retries);
        Self {
            submit: submit.strategy.unwrap_or(default.submit),
            batch: usize::try_from(submit.batch_size).unwrap_or(0).max(1),
            processing: processing.strategy.unwrap_or(default.processing),
            retries: u32::try_from(processing.retries).unwrap_or(0),
            failure_fraction: processing.failure_percentage / 100.0,
            pause,
            max_pause: seconds(processing.max_pause_between_retries).max(pause),
            timeout: Duration::from_millis(queue.pack_processing_timeout.clamp(1, 86_400_000).unsigned_abs()),
        }
    }

    /// Whether messages behind one that has failed wait until it is tried again.
    pub fn keeps_order(&self) -> bool {
        use ProcessingStrategyType as Type;
        matches!(self.processing, Type::RetryAll | Type::RetryFailedAndTimedOut)
    }

    /// Whether messages that ended so are tried again; `Open` means too late.
    pub fn retries_of(&self, outcome: MessageOutcome) -> bool {
        use ProcessingStrategyType as Type;
        let (failed, late) = match self.processing {
            Type::SkipAllFailures | Type::SkipAllFailuresAndTimedOut => (false, false),
            Type::RetryFailed => (true, false),
            Type::RetryTimedOut => (false, true),
            Type::RetryAll | Type::RetryFailedAndTimedOut => (true, true),
        };
        match outcome {
            MessageOutcome::Open => late,
            MessageOutcome::Failed => failed,
            MessageOutcome::Done => false,
        }
    }

    /// How long a message waits that was tried again so often.
    pub fn pause_after(&self, retries: u32) -> Duration {
        let pause = self.pause.saturating_mul(1 << retries.min(16));
        pause.min(self.max_pause)
    }

    /// Whether all messages of a tenant follow each other, not only those of an originator.
    pub fn is_one_by_one(&self) -> bool {
        matches!(
            self.submit,
            SubmitStrategyType::Sequential | SubmitStrategyType::SequentialByTenant
        )
    }

    /// Whether messages that were too late go on in the background.
    pub fn keeps_late(&self) -> bool {
        self.processing == ProcessingStrategyType::SkipAllFailures
    }
}

/// How it stands with a message of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MessageOutcome {
    /// Not submitted yet, or on its way.
    Open,
    /// Acknowledged.
    Done,
    /// Failed.
    Failed,
}

/// What happens next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RetryDecision {
    /// The batch is done with.
    Commit,
    /// These messages are processed again, after a pause.
    Retry(Vec<u32>, Duration),
}

/// How often a batch was tried.
#[derive(Debug)]
pub struct BatchAttempts {
    made: u32,
    initial: usize,
    pause: Duration,
}

impl BatchAttempts {
    /// Before the first one, of so many messages.
    pub fn new(strategy: &QueueStrategy, initial: usize) -> Self {
        Self {
            made: 0,
            initial,
            pause: strategy.pause,
        }
    }

    /// Decides what becomes of a batch whose time is up or whose messages are all done; `Open` means too late.
    pub fn decide(
        &mut self,
        strategy: &QueueStrategy,
        outcomes: impl Iterator<Item = MessageOutcome> + Clone,
    ) -> RetryDecision {
        use ProcessingStrategyType as Type;
        let is_wanted = |outcome| strategy.retries_of(outcome);
        let unsuccessful = outcomes
            .clone()
            .filter(|outcome| *outcome != MessageOutcome::Done)
            .count();
        let wanted = outcomes.clone().filter(|outcome| is_wanted(*outcome)).count();
        if wanted == 0 {
            return RetryDecision::Commit;
        }
        if strategy.retries > 0 && self.made >= strategy.retries {
            return RetryDecision::Commit;
        }
        let fraction = unsuccessful as f64 / self.initial.max(1) as f64;
        if strategy.failure_fraction > 0.0 && fraction > strategy.failure_fraction {
            return RetryDecision::Commit;
        }
        self.made += 1;
        let pause = self.pause;
        self.pause = (self.pause * 2).min(strategy.max_pause);
        let again = (0..)
            .zip(outcomes)
            .filter(|(_, outcome)| strategy.processing == Type::RetryAll || is_wanted(*outcome))
            .map(|(index, _)| index)
            .collect();
        RetryDecision::Retry(again, pause)
    }

    /// How often it was tried again.
    pub const fn retries(&self) -> u32 {
        self.made
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use MessageOutcome::{Done, Failed, Open};
    use ProcessingStrategyType as Type;

    fn strategy(processing: Type, retries: u32, failure_fraction: f64) -> QueueStrategy {
        QueueStrategy {
            processing,
            retries,
            failure_fraction,
            pause: Duration::from_secs(1),
            max_pause: Duration::from_secs(4),
            ..QueueStrategy::default()
        }
    }

    #[test]
    fn each_strategy_tries_again_what_it_says() {
        let outcomes = [Done, Failed, Open, Done];
        for (processing, expected) in [
            (Type::SkipAllFailures, None),
            (Type::SkipAllFailuresAndTimedOut, None),
            (Type::RetryAll, Some(vec![0, 1, 2, 3])),
            (Type::RetryFailed, Some(vec![1])),
            (Type::RetryTimedOut, Some(vec![2])),
            (Type::RetryFailedAndTimedOut, Some(vec![1, 2])),
        ] {
            let strategy = strategy(processing, 3, 0.0);
            let verdict = BatchAttempts::new(&strategy, 4).decide(&strategy, outcomes.into_iter());
            let expected = expected.map_or(RetryDecision::Commit, |again| {
                RetryDecision::Retry(again, Duration::from_secs(1))
            });
            assert_eq!(verdict, expected, "{processing:?}");
        }
    }

    #[test]
    fn retries_end_by_number_and_by_the_fraction_of_failures_and_the_pause_grows() {
        let limited = strategy(Type::RetryFailed, 4, 0.0);
        let mut attempts = BatchAttempts::new(&limited, 2);
        let pauses: Vec<_> =
            std::iter::from_fn(|| match attempts.decide(&limited, [Failed, Done].into_iter()) {
                RetryDecision::Retry(_, pause) => Some(pause.as_secs()),
                RetryDecision::Commit => None,
            })
            .collect();
        assert_eq!(pauses, [1, 2, 4, 4]);

        let tolerant = strategy(Type::RetryFailed, 0, 0.5);
        let decide = |outcomes: [MessageOutcome; 4]| {
            BatchAttempts::new(&tolerant, 4).decide(&tolerant, outcomes.into_iter())
        };
        assert_ne!(decide([Failed, Failed, Done, Done]), RetryDecision::Commit);
        assert_eq!(decide([Failed, Failed, Failed, Done]), RetryDecision::Commit);
    }
}
