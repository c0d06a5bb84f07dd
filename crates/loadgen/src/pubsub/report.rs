//! What came out of a load of publishers and subscribers.

use std::time::Duration;

use serde::Serialize;

use super::config::{PubSubConfig, PubSubMode};
use crate::report::units::{count, fixed, ms, plural, rate, seconds, us};
use crate::report::{LatencySummary, MachineSpec};

/// The same load on one or several brokers.
#[derive(Debug, Clone, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PubSubReport {
    /// Name of the load.
    pub(super) title: String,
    /// Version of the program.
    pub(super) version: String,
    /// Start, milliseconds since 1970.
    pub(super) started_at: i64,
    /// The machine of the load generator.
    pub(super) machine: MachineSpec,
    /// What the load is, in words.
    pub(super) load: String,
    /// The load as a file of `tb-mqtt-perf-tests`.
    pub(super) config: Option<PubSubConfig>,
    /// Messages in flight of each publisher in closed loop.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) in_flight: Option<u16>,
    /// One for each broker, in the order they were named.
    pub(super) brokers: Vec<BrokerResult>,
}

/// The rounds of one broker.
#[derive(Debug, Clone, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct BrokerResult {
    /// Its name or address.
    pub(super) name: String,
    /// Its rounds, in order.
    pub(super) rounds: Vec<PubSubOutcome>,
}

/// What came out of one round.
#[derive(Debug, Clone, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PubSubOutcome {
    /// Seconds until all clients were connected and subscribed.
    pub(super) connect_seconds: f64,
    /// Seconds for which messages were published.
    pub(super) publish_seconds: f64,
    /// Messages acknowledged a second in that time.
    pub(super) publish_rate: f64,
    /// Messages delivered a second: while messages were published, or from when subscribers came to the last message.
    pub(super) delivery_rate: f64,
    /// Messages sent.
    pub(super) sent: u64,
    /// Messages acknowledged to their publishers; with QoS 0, written.
    pub(super) acknowledged: u64,
    /// Messages refused, or in flight on connections that were lost.
    pub(super) failed: u64,
    /// Messages that were due and never sent because the broker did not keep up.
    pub(super) unsent: u64,
    /// Messages that have arrived for the first time.
    pub(super) delivered: u64,
    /// Messages that were acknowledged to their publishers and have not arrived, counted for each subscriber.
    pub(super) lost: u64,
    /// Messages that have arrived once more.
    pub(super) duplicated: u64,
    /// Messages of publishers that a subscriber was not to receive.
    pub(super) unexpected: u64,
    /// Connections that were lost.
    pub(super) lost_connections: u64,
    /// From when a message was due (or in closed loop sent) until it arrived.
    pub(super) delivery: LatencySummary,
    /// From when a message was due (or in closed loop sent) until it was acknowledged.
    pub(super) acknowledgement: LatencySummary,
    /// Processor time of the broker a delivered message, microseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) broker_us_per_delivery: Option<f64>,
    /// Processor time of the load generator a delivered message, microseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) generator_us_per_delivery: Option<f64>,
    /// Resident memory of the broker at the end, bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) broker_memory: Option<u64>,
    /// One entry a second.
    pub(super) seconds: Vec<PubSubSecond>,
}

/// One second of a round.
#[derive(Debug, Clone, Copy, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PubSubSecond {
    /// Seconds since the load began, at the end of the interval.
    pub(super) at: f64,
    /// Messages acknowledged a second.
    pub(super) acknowledged: f64,
    /// Messages delivered a second.
    pub(super) delivered: f64,
    /// Times of the messages that arrived in the interval.
    pub(super) delivery: LatencySummary,
}

/// How often something happens a second; 0 where no time has passed.
pub(super) fn per_second(number: u64, time: Duration) -> f64 {
    match time.is_zero() {
        true => 0.0,
        false => number as f64 / time.as_secs_f64(),
    }
}

impl BrokerResult {
    /// The median of a figure over the rounds.
    pub(super) fn median(&self, figure: impl Fn(&PubSubOutcome) -> f64) -> f64 {
        let mut figures: Vec<f64> = self.rounds.iter().map(figure).collect();
        figures.sort_by(f64::total_cmp);
        let upper = figures.get(figures.len() / 2).copied().unwrap_or_default();
        match figures.len() % 2 {
            1 => upper,
            _ => f64::midpoint(
                figures
                    .get((figures.len() / 2).wrapping_sub(1))
                    .copied()
                    .unwrap_or_default(),
                upper,
            ),
        }
    }

    /// A figure that not every round has.
    pub(super) fn known_median(&self, figure: impl Fn(&PubSubOutcome) -> Option<f64>) -> Option<f64> {
        let known = self.rounds.iter().all(|round| figure(round).is_some());
        (known && !self.rounds.is_empty()).then(|| self.median(|round| figure(round).unwrap_or_default()))
    }

    /// The sum of a count over the rounds.
    pub(super) fn sum(&self, count: impl Fn(&PubSubOutcome) -> u64) -> u64 {
        self.rounds.iter().map(count).sum()
    }

    /// Whether all that was acknowledged has arrived.
    pub(super) fn has_lost_nothing(&self) -> bool {
        self.sum(|round| round.lost) == 0
    }

    /// The figures of the table, by their names.
    pub(super) fn figures(&self) -> Vec<(&'static str, String)> {
        let latency = |of: fn(&PubSubOutcome) -> u64| ms(self.median(|round| of(round) as f64));
        let cpu =
            |of: fn(&PubSubOutcome) -> Option<f64>| self.known_median(of).map_or_else(|| "–".to_owned(), us);
        vec![
            ("deliveries", rate(self.median(|round| round.delivery_rate))),
            ("acknowledged", rate(self.median(|round| round.publish_rate))),
            ("lost", count(self.sum(|round| round.lost))),
            ("duplicated", count(self.sum(|round| round.duplicated))),
            (
                "failed or not sent",
                count(self.sum(|round| round.failed + round.unsent)),
            ),
            ("delivery p50", latency(|round| round.delivery.p50)),
            ("delivery p99", latency(|round| round.delivery.p99)),
            ("delivery max", latency(|round| round.delivery.max)),
            ("acknowledgement p50", latency(|round| round.acknowledgement.p50)),
            ("acknowledgement p99", latency(|round| round.acknowledgement.p99)),
            ("broker CPU a delivery", cpu(|round| round.broker_us_per_delivery)),
            (
                "generator CPU a delivery",
                cpu(|round| round.generator_us_per_delivery),
            ),
        ]
    }
}

impl PubSubReport {
    /// Whether no broker has lost anything that it had acknowledged.
    pub(super) fn has_lost_nothing(&self) -> bool {
        self.brokers.iter().all(BrokerResult::has_lost_nothing)
    }

    /// The report in lines, a column for each broker.
    pub(super) fn text(&self) -> String {
        let mut rows = vec![(
            "",
            self.brokers
                .iter()
                .map(|broker| broker.name.clone())
                .collect::<Vec<_>>(),
        )];
        for broker in &self.brokers {
            for (at, (name, value)) in broker.figures().into_iter().enumerate() {
                match rows.get_mut(at + 1) {
                    Some((_, values)) => values.push(value),
                    None => rows.push((name, vec![value])),
                }
            }
        }
        let width = |cells: &mut dyn Iterator<Item = usize>| cells.max().unwrap_or_default();
        let first = width(&mut rows.iter().map(|(name, _)| name.chars().count()));
        let columns: Vec<usize> = (0..self.brokers.len())
            .map(|at| {
                width(
                    &mut rows
                        .iter()
                        .filter_map(|(_, cells)| cells.get(at))
                        .map(|cell| cell.chars().count()),
                )
            })
            .collect();
        let mut text = format!("{}\n", self.load);
        for (name, cells) in rows {
            text += &format!("{name:first$}");
            for (cell, width) in cells.iter().zip(&columns) {
                text += &format!("  {cell:>width$}");
            }
            text.truncate(text.trim_end().len());
            text.push('\n');
        }
        text
    }
}

/// What a load is, in words.
pub(super) fn in_words(config: &PubSubConfig, in_flight: Option<u16>) -> String {
    let persistent = config
        .subscriber_groups
        .iter()
        .filter(|group| group.persistent_session_info.is_some());
    let persistent: u64 = persistent.map(|group| u64::from(group.subscribers)).sum();
    let subscribers = match persistent {
        0 => plural(config.subscribers(), "subscriber"),
        all if all == config.subscribers() => {
            format!("{} with persistent sessions", plural(all, "subscriber"))
        }
        some => format!(
            "{}, {some} with persistent sessions",
            plural(config.subscribers(), "subscriber")
        ),
    };
    let pace = match (config.mode, in_flight) {
        (PubSubMode::Retained(each), _) => format!("{} each, retained", plural(each, "message")),
        (_, Some(in_flight)) => {
            format!(
                "{} in flight each for {}",
                plural(in_flight, "message"),
                seconds(config.seconds_to_run)
            )
        }
        (_, None) => format!(
            "{} messages/s each for {}",
            fixed(config.rate, 2).trim_end_matches('0').trim_end_matches('.'),
            seconds(config.seconds_to_run)
        ),
    };
    let presence = match config.mode {
        PubSubMode::Live => "",
        PubSubMode::Offline => ", away meanwhile",
        PubSubMode::Retained(_) => ", afterwards",
    };
    format!(
        "{} at QoS {}, {pace}; {subscribers} at QoS {}{presence}; {} idle",
        plural(config.publishers(), "publisher"),
        config.publisher_qos,
        config.subscriber_qos,
        config.dummy_clients
    )
}

/// A line of progress.
pub(super) fn progress(second: &PubSubSecond) -> String {
    format!(
        "{:>6} s  acknowledged {:>9}/s  delivered {:>9}/s  p50 {:>8}  p99 {:>8}",
        fixed(second.at, 0),
        count(second.acknowledged as u64),
        count(second.delivered as u64),
        ms(second.delivery.p50 as f64),
        ms(second.delivery.p99 as f64)
    )
}
