//! Which of its actions a save node carries out for a message.

use std::collections::VecDeque;

use parking_lot::Mutex;
use rustc_hash::FxHashSet;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::node::NodeConfigError;

const DAY_MS: i64 = 24 * 60 * 60 * 1000;
const MAX_INTERVAL_SECS: i64 = 24 * 60 * 60;
/// Intervals that are remembered reach back at most so far.
const MAX_REACH_MS: i64 = 2 * DAY_MS;
const MAX_INTERVALS: i64 = 100;
/// Originators that are remembered over all intervals; beyond, the interval that was asked for longest ago is forgotten.
const MAX_ORIGINATORS: usize = 1_000_000;

/// `processingSettings` as stored.
#[derive(Deserialize, JsonSchema)]
#[serde(
    tag = "type",
    rename_all = "SCREAMING_SNAKE_CASE",
    rename_all_fields = "camelCase"
)]
pub(super) enum ProcessingSettings<S> {
    OnEveryMessage,
    WebsocketsOnly,
    Deduplicate {
        #[schemars(title = "Interval", range(min = 1, max = MAX_INTERVAL_SECS), extend("x-unit" = "s"))]
        deduplication_interval_secs: i64,
    },
    Advanced(S),
}

/// What a node does with values, and how often it does each.
pub(super) trait ActionStrategies<const N: usize> {
    /// The actions, as stored.
    const ACTIONS: [&'static str; N];

    /// How often each is carried out.
    fn strategies(self) -> [Option<ActionStrategy>; N];
}

/// The actions of the node that saves time series.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct TimeseriesStrategies {
    #[schemars(required, title = "Time series")]
    timeseries: Option<ActionStrategy>,
    #[schemars(required, title = "Latest values")]
    latest: Option<ActionStrategy>,
    #[schemars(required)]
    web_sockets: Option<ActionStrategy>,
    #[schemars(required, title = "Calculated fields and alarm rules")]
    calculated_fields: Option<ActionStrategy>,
}

impl ActionStrategies<4> for TimeseriesStrategies {
    const ACTIONS: [&'static str; 4] = ["timeseries", "latest", WEB_SOCKETS, "calculatedFields"];

    fn strategies(self) -> [Option<ActionStrategy>; 4] {
        [
            self.timeseries,
            self.latest,
            self.web_sockets,
            self.calculated_fields,
        ]
    }
}

/// The actions of the node that saves attributes.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct AttributeStrategies {
    #[schemars(required)]
    attributes: Option<ActionStrategy>,
    #[schemars(required)]
    web_sockets: Option<ActionStrategy>,
    #[schemars(required, title = "Calculated fields and alarm rules")]
    calculated_fields: Option<ActionStrategy>,
}

impl ActionStrategies<3> for AttributeStrategies {
    const ACTIONS: [&'static str; 3] = ["attributes", WEB_SOCKETS, "calculatedFields"];

    fn strategies(self) -> [Option<ActionStrategy>; 3] {
        [self.attributes, self.web_sockets, self.calculated_fields]
    }
}

/// What open pages are shown.
const WEB_SOCKETS: &str = "webSockets";

/// How often one action is carried out, as stored.
#[derive(Deserialize, JsonSchema)]
#[serde(
    tag = "type",
    rename_all = "SCREAMING_SNAKE_CASE",
    rename_all_fields = "camelCase"
)]
pub(super) enum ActionStrategy {
    OnEveryMessage,
    Deduplicate {
        #[schemars(title = "Interval", range(min = 1, max = MAX_INTERVAL_SECS), extend("x-unit" = "s"))]
        deduplication_interval_secs: i64,
    },
    Skip,
}

/// The setting under which a node did everything before there was a choice.
pub(super) fn on_every_message() -> Value {
    json!({ "type": "ON_EVERY_MESSAGE" })
}

/// Decides which of `N` actions are carried out.
pub(super) enum ActionSelector<const N: usize> {
    Fixed([bool; N]),
    Together(OriginatorDeduplication),
    Each([ActionRule; N]),
}

/// How often one action is carried out.
pub(super) enum ActionRule {
    Always,
    Never,
    First(OriginatorDeduplication),
}

impl<const N: usize> ActionSelector<N> {
    /// Reads the settings of a node; none at all do everything.
    pub(super) fn new<S: ActionStrategies<N>>(
        settings: Option<ProcessingSettings<S>>,
    ) -> Result<Self, NodeConfigError> {
        Ok(match settings {
            None | Some(ProcessingSettings::OnEveryMessage) => Self::Fixed([true; N]),
            Some(ProcessingSettings::WebsocketsOnly) => {
                Self::Fixed(S::ACTIONS.map(|action| action == WEB_SOCKETS))
            }
            Some(ProcessingSettings::Deduplicate {
                deduplication_interval_secs,
            }) => Self::Together(OriginatorDeduplication::new(
                deduplication_interval_secs,
                "processingSettings.deduplicationIntervalSecs",
            )?),
            Some(ProcessingSettings::Advanced(strategies)) => {
                let mut rules = Vec::with_capacity(N);
                for (action, strategy) in S::ACTIONS.into_iter().zip(strategies.strategies()) {
                    let field = format!("processingSettings.{action}");
                    rules.push(ActionRule::new(strategy, &field)?);
                }
                let rules = rules.try_into();
                Self::Each(
                    rules.map_err(|_| NodeConfigError::new("processingSettings", "has other actions"))?,
                )
            }
        })
    }

    /// Which actions are carried out for a message about an originator at a time.
    pub(super) fn decide(&self, ts: i64, originator: Uuid, now_ms: i64) -> [bool; N] {
        match self {
            Self::Fixed(actions) => *actions,
            Self::Together(deduplication) => [deduplication.is_first(ts, originator, now_ms); N],
            Self::Each(rules) => rules.each_ref().map(|rule| match rule {
                ActionRule::Always => true,
                ActionRule::Never => false,
                ActionRule::First(deduplication) => deduplication.is_first(ts, originator, now_ms),
            }),
        }
    }
}

impl ActionRule {
    fn new(strategy: Option<ActionStrategy>, field: &str) -> Result<Self, NodeConfigError> {
        Ok(match strategy {
            None => {
                return Err(NodeConfigError::new(
                    field,
                    "must be set where the type is ADVANCED",
                ));
            }
            Some(ActionStrategy::OnEveryMessage) => Self::Always,
            Some(ActionStrategy::Skip) => Self::Never,
            Some(ActionStrategy::Deduplicate {
                deduplication_interval_secs: secs,
            }) => Self::First(OriginatorDeduplication::new(
                secs,
                &format!("{field}.deduplicationIntervalSecs"),
            )?),
        })
    }
}

/// Lets the first message of an originator in each interval pass. Intervals are counted from the epoch, by the messages'
/// own times.
pub(super) struct OriginatorDeduplication {
    interval_ms: i64,
    expiry_ms: i64,
    max_intervals: usize,
    seen: Mutex<SeenOriginators>,
}

#[derive(Default)]
struct SeenOriginators {
    /// The one that was asked for last stands last.
    intervals: VecDeque<DeduplicationInterval>,
    originators: usize,
}

struct DeduplicationInterval {
    number: i64,
    used_ms: i64,
    originators: FxHashSet<Uuid>,
}

impl OriginatorDeduplication {
    fn new(secs: i64, field: &str) -> Result<Self, NodeConfigError> {
        if !(1..=MAX_INTERVAL_SECS).contains(&secs) {
            let problem = format!(
                "Deduplication interval must be at least 1 second(s) and at most {MAX_INTERVAL_SECS} second(s), was {secs} second(s)"
            );
            return Err(NodeConfigError::new(field, problem));
        }
        let interval_ms = secs * 1000;
        Ok(Self {
            interval_ms,
            expiry_ms: (interval_ms * 10).clamp(10 * 60 * 1000, MAX_REACH_MS),
            max_intervals: usize::try_from((MAX_REACH_MS / interval_ms).min(MAX_INTERVALS)).unwrap_or(1),
            seen: Mutex::default(),
        })
    }

    fn is_first(&self, ts: i64, originator: Uuid, now_ms: i64) -> bool {
        let number = ts / self.interval_ms;
        let mut seen = self.seen.lock();
        if seen.intervals.back().is_none_or(|last| last.number != number) {
            seen.bring_forward(number, now_ms.saturating_sub(self.expiry_ms), self.max_intervals);
        }
        let Some(interval) = seen.intervals.back_mut() else {
            return true;
        };
        interval.used_ms = now_ms;
        let is_first = interval.originators.insert(originator);
        if is_first {
            seen.originators += 1;
            while seen.originators > MAX_ORIGINATORS && seen.intervals.len() > 1 {
                seen.forget_oldest();
            }
            if seen.originators > MAX_ORIGINATORS {
                // One interval alone has too many: rather store a message twice than run out of memory.
                seen.forget_oldest();
            }
        }
        is_first
    }
}

impl SeenOriginators {
    fn bring_forward(&mut self, number: i64, expired_ms: i64, max: usize) {
        while self
            .intervals
            .front()
            .is_some_and(|interval| interval.used_ms < expired_ms)
        {
            self.forget_oldest();
        }
        let known = self
            .intervals
            .iter()
            .position(|interval| interval.number == number);
        let interval =
            known
                .and_then(|at| self.intervals.remove(at))
                .unwrap_or_else(|| DeduplicationInterval {
                    number,
                    used_ms: 0,
                    originators: FxHashSet::default(),
                });
        self.intervals.push_back(interval);
        while self.intervals.len() > max.max(1) {
            self.forget_oldest();
        }
    }

    fn forget_oldest(&mut self) {
        if let Some(interval) = self.intervals.pop_front() {
            self.originators -= interval.originators.len();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings<S: serde::de::DeserializeOwned>(value: Value) -> Option<ProcessingSettings<S>> {
        Some(serde_json::from_value(value).unwrap())
    }

    fn timeseries(value: Value) -> Result<ActionSelector<4>, NodeConfigError> {
        ActionSelector::new(settings::<TimeseriesStrategies>(value))
    }

    fn problem<const N: usize>(result: Result<ActionSelector<N>, NodeConfigError>) -> String {
        match result {
            Ok(_) => "fine".to_owned(),
            Err(error) => error.field,
        }
    }

    #[test]
    fn the_first_message_of_an_originator_and_interval_passes() {
        let once = json!({ "type": "DEDUPLICATE", "deduplicationIntervalSecs": 10 });
        let processing = timeseries(once).unwrap();
        let (a, b) = (Uuid::from_u128(1), Uuid::from_u128(2));
        let passes = |ts, who| processing.decide(ts, who, 50_000) == [true; 4];
        assert!(passes(10_000, a) && passes(10_000, b));
        assert!(!passes(19_999, a));
        assert!(passes(20_000, a));
        assert!(!passes(10_001, b), "an earlier interval is still known");
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let once = OriginatorDeduplication::new(60, "x").unwrap();
        for number in 0..1000 {
            assert!(once.is_first(number * 60_000, Uuid::nil(), 1_000_000));
        }
        assert_eq!(once.seen.lock().intervals.len(), 100);
        assert!(once.is_first(5_000_000_000, Uuid::nil(), 1_000_000 + 3 * DAY_MS));
        assert_eq!(once.seen.lock().intervals.len(), 1, "the others have expired");
        assert_eq!(once.seen.lock().originators, 1);
    }

    #[test]
    fn each_action_has_its_own_rule() {
        let advanced = json!({
            "type": "ADVANCED", "timeseries": {"type": "ON_EVERY_MESSAGE"}, "latest": {"type": "SKIP"},
            "webSockets": {"type": "SKIP"}, "calculatedFields": {"type": "DEDUPLICATE", "deduplicationIntervalSecs": 1},
        });
        let processing = timeseries(advanced).unwrap();
        assert_eq!(processing.decide(5, Uuid::nil(), 5), [true, false, false, true]);
        assert_eq!(processing.decide(6, Uuid::nil(), 5), [true, false, false, false]);
        let sockets = settings::<AttributeStrategies>(json!({ "type": "WEBSOCKETS_ONLY" }));
        let processing = ActionSelector::new(sockets).unwrap();
        assert_eq!(processing.decide(5, Uuid::nil(), 5), [false, true, false]);
    }

    #[test]
    fn wrong_settings_are_named() {
        let long = json!({ "type": "DEDUPLICATE", "deduplicationIntervalSecs": 86_401 });
        assert_eq!(
            problem(timeseries(long)),
            "processingSettings.deduplicationIntervalSecs"
        );
        let part = json!({ "type": "ADVANCED", "timeseries": {"type": "SKIP"} });
        assert_eq!(problem(timeseries(part)), "processingSettings.latest");
    }
}
