//! One round of a load on one broker, from the first connection to the last message.

use std::time::{Duration, Instant};

use mio::Events;

use super::client::ClientRole;
use super::config::{PubSubConfig, PubSubMode};
use super::engine::{ClientSettings, PubSubCounts, PubSubEngine, RunPhase};
use super::report::{PubSubOutcome, PubSubSecond, per_second};
use crate::error::{LoadError, LoadResult};
use crate::process::{CpuTime, ProcessSample};

const EVENTS: usize = 1_024;
const SECOND: Duration = Duration::from_secs(1);
/// How long warm-up messages may take to be acknowledged.
const WARM_UP_TIMEOUT: Duration = Duration::from_secs(30);
/// Least time in which nothing may arrive before the rest counts as lost.
const SHORTEST_DRAIN: Duration = Duration::from_secs(1);
/// How often it is looked whether everything has arrived.
const DRAIN_CHECK: Duration = Duration::from_millis(200);

/// A round.
pub(super) struct PubSubRound<'a> {
    pub(super) config: &'a PubSubConfig,
    pub(super) settings: ClientSettings,
    pub(super) warm_up: u32,
    /// The broker's process, if it runs on this machine.
    pub(super) pid: Option<u32>,
    /// A number by which the messages of this round are known.
    pub(super) run: u32,
}

/// The intervals of a round.
struct SecondTicker<'w> {
    next: Duration,
    last: Duration,
    before: PubSubCounts,
    seconds: Vec<PubSubSecond>,
    watch: &'w mut dyn FnMut(&PubSubSecond),
}

impl PubSubRound<'_> {
    /// Runs it, and reports each second to `watch`.
    ///
    /// # Errors
    /// Clients were not accepted, or the system does not let so many connect.
    pub(super) fn run(&self, watch: &mut dyn FnMut(&PubSubSecond)) -> LoadResult<PubSubOutcome> {
        let mut engine = PubSubEngine::new(self.config, self.settings.clone(), self.run)?;
        let mut events = Events::with_capacity(EVENTS);
        let sessions = persistent_sessions(&engine);
        self.clear_sessions(&mut engine, &sessions)?;
        let subscribers: Vec<usize> = engine.subscribers.clone().collect();
        let others: Vec<usize> = (engine.subscribers.end..engine.clients.len()).collect();
        let is_retained = matches!(self.config.mode, PubSubMode::Retained(_));
        let mut connect = Duration::ZERO;
        if !is_retained {
            connect += engine.connect(&subscribers, false)?;
        }
        connect += engine.connect(&others, false)?;
        if !is_retained {
            self.warm_up(&mut engine, &mut events)?;
        }
        if self.config.mode == PubSubMode::Offline {
            engine.disconnect(engine.subscribers.clone());
        }

        let cpu = (self.pid.and_then(CpuTime::of), CpuTime::own());
        engine.begin();
        let mut ticker = SecondTicker {
            next: SECOND,
            last: Duration::ZERO,
            before: engine.counts,
            seconds: Vec::new(),
            watch,
        };
        let published = publish(&mut engine, &mut events, &mut ticker)?;
        let meanwhile = engine.counts;
        let subscribers_came = engine.epoch.elapsed();
        if self.config.mode != PubSubMode::Live {
            connect += engine.connect(&subscribers, false)?;
        }
        engine.phase = RunPhase::Draining;
        self.drain(&mut engine, &mut events, &mut ticker)?;
        ticker.tick(&mut engine);
        let us_per_delivery = |before: Option<CpuTime>, now: Option<CpuTime>| {
            let us = now?.since(&before?)? as f64;
            (engine.counts.delivered > 0).then(|| us / engine.counts.delivered as f64)
        };
        let broker_us = us_per_delivery(cpu.0, self.pid.and_then(CpuTime::of));
        let generator_us = us_per_delivery(cpu.1, CpuTime::own());
        let counts = engine.counts;
        let last = engine.last_delivery.unwrap_or(subscribers_came);
        let outcome = PubSubOutcome {
            connect_seconds: connect.as_secs_f64(),
            publish_seconds: published.as_secs_f64(),
            publish_rate: per_second(meanwhile.acknowledged, published),
            delivery_rate: match self.config.mode {
                PubSubMode::Live => per_second(meanwhile.delivered, published),
                PubSubMode::Offline | PubSubMode::Retained(_) => {
                    per_second(counts.delivered, last.saturating_sub(subscribers_came))
                }
            },
            sent: counts.sent,
            acknowledged: counts.acknowledged,
            failed: counts.failed + engine.unacknowledged(),
            unsent: engine.unsent(),
            delivered: counts.delivered,
            lost: engine.missing(),
            duplicated: engine.ledgers.iter().map(|ledger| ledger.duplicated).sum(),
            unexpected: engine.ledgers.iter().map(|ledger| ledger.unexpected).sum(),
            lost_connections: counts.lost_connections,
            delivery: engine.delivery.total(),
            acknowledgement: engine.acknowledgement.total(),
            broker_us_per_delivery: broker_us,
            generator_us_per_delivery: generator_us,
            broker_memory: self
                .pid
                .and_then(ProcessSample::of)
                .map(|sample| sample.rss_bytes),
            seconds: ticker.seconds,
        };
        if let Err(error) = self.clean_up(&mut engine, &mut events, &sessions) {
            eprintln!("the broker may keep sessions and retained messages of this round: {error}");
        }
        Ok(outcome)
    }

    /// Takes back what the round has left with the broker.
    fn clean_up(
        &self,
        engine: &mut PubSubEngine<'_>,
        events: &mut Events,
        sessions: &[usize],
    ) -> LoadResult<()> {
        if let PubSubMode::Retained(each) = self.config.mode {
            engine.begin_to_clear_retained(each);
            settle(engine, events, |engine| engine.unacknowledged() == 0)?;
        }
        engine.disconnect(0..engine.clients.len());
        self.clear_sessions(engine, sessions)
    }

    /// Ends the sessions of subscribers that outlive their connections.
    fn clear_sessions(&self, engine: &mut PubSubEngine<'_>, sessions: &[usize]) -> LoadResult<()> {
        engine.connect(sessions, true)?;
        engine.disconnect(engine.subscribers.clone());
        Ok(())
    }

    fn warm_up(&self, engine: &mut PubSubEngine<'_>, events: &mut Events) -> LoadResult<()> {
        engine.begin_warm_up(self.warm_up);
        settle(engine, events, |engine| {
            engine.is_warm() && engine.unacknowledged() == 0 && !engine.has_unwritten()
        })
    }

    /// Waits until everything has arrived, or nothing has for as long as the load says.
    fn drain(
        &self,
        engine: &mut PubSubEngine<'_>,
        events: &mut Events,
        ticker: &mut SecondTicker<'_>,
    ) -> LoadResult<()> {
        let patience = Duration::from_secs_f64(self.config.additional_seconds_to_wait).max(SHORTEST_DRAIN);
        let (mut known, mut heard_of) = (progress_of(engine), Instant::now());
        let mut next_check = Instant::now();
        loop {
            if Instant::now() >= next_check {
                next_check = Instant::now() + DRAIN_CHECK;
                let progress = progress_of(engine);
                if progress != known {
                    (known, heard_of) = (progress, Instant::now());
                } else if heard_of.elapsed() >= patience
                    // Looks at each message: not while there are more important things to do.
                    || engine.unacknowledged() == 0 && engine.missing() == 0
                {
                    return Ok(());
                }
            }
            engine.turn(events, DRAIN_CHECK)?;
            ticker.look(engine);
        }
    }
}

/// Publishes for as long as the load says, or until each publisher has published all; returns how long that took.
fn publish(
    engine: &mut PubSubEngine<'_>,
    events: &mut Events,
    ticker: &mut SecondTicker<'_>,
) -> LoadResult<Duration> {
    let is_counted = matches!(engine.config.mode, PubSubMode::Retained(_));
    let end = Duration::from_secs_f64(engine.config.seconds_to_run);
    loop {
        let since = engine.epoch.elapsed().saturating_sub(engine.began);
        let is_over = if is_counted {
            engine.has_published_all() && engine.unacknowledged() == 0 && !engine.has_unwritten()
        } else {
            since >= end
        };
        if is_over {
            // Even if the loop is late, all due messages are sent.
            engine.schedule();
            return Ok(since);
        }
        if is_counted && since > end.max(WARM_UP_TIMEOUT) {
            return Err(LoadError::Engine(format!(
                "{} messages to be retained were not acknowledged within {} s",
                engine.unacknowledged(),
                since.as_secs()
            )));
        }
        engine.turn(
            events,
            end.saturating_sub(since)
                .clamp(Duration::from_millis(1), SECOND / 10),
        )?;
        ticker.look(engine);
    }
}

fn progress_of(engine: &PubSubEngine<'_>) -> (u64, u64) {
    (engine.counts.delivered, engine.counts.acknowledged)
}

/// Goes on until something is so.
fn settle(
    engine: &mut PubSubEngine<'_>,
    events: &mut Events,
    is_so: impl Fn(&PubSubEngine<'_>) -> bool,
) -> LoadResult<()> {
    let began = Instant::now();
    while !is_so(engine) {
        if began.elapsed() > WARM_UP_TIMEOUT {
            return Err(LoadError::Engine(format!(
                "{} messages outside of the load were not acknowledged within {} s",
                engine.unacknowledged(),
                WARM_UP_TIMEOUT.as_secs()
            )));
        }
        engine.turn(events, Duration::from_millis(50))?;
        engine.check_refusal()?;
    }
    Ok(())
}

/// Subscribers whose sessions outlive their connections.
fn persistent_sessions(engine: &PubSubEngine<'_>) -> Vec<usize> {
    let is_persistent = |role| {
        matches!(
            role,
            ClientRole::Subscriber {
                is_persistent: true,
                ..
            }
        )
    };
    let subscribers = engine.clients.iter().take(engine.subscribers.end).enumerate();
    subscribers
        .filter(|(_, client)| is_persistent(client.role))
        .map(|(index, _)| index)
        .collect()
}

impl SecondTicker<'_> {
    /// Reports the last second once it is over.
    fn look(&mut self, engine: &mut PubSubEngine<'_>) {
        let now = engine.epoch.elapsed().saturating_sub(engine.began);
        if now >= self.next {
            self.next = now + SECOND;
            self.tick(engine);
        }
    }

    fn tick(&mut self, engine: &mut PubSubEngine<'_>) {
        let now = engine.epoch.elapsed().saturating_sub(engine.began);
        let length = now.saturating_sub(self.last).as_secs_f64().max(1e-6);
        let of = |now: u64, before: u64| (now - before) as f64 / length;
        let second = PubSubSecond {
            at: now.as_secs_f64(),
            acknowledged: of(engine.counts.acknowledged, self.before.acknowledged),
            delivered: of(engine.counts.delivered, self.before.delivered),
            delivery: engine.delivery.take_interval(),
        };
        self.last = now;
        self.before = engine.counts;
        self.seconds.push(second);
        (self.watch)(&second);
    }
}
