//! The load itself: the schedule of messages, and the report of each interval.

use std::time::Duration;

use mio::Events;

use super::plan::{DeviceProtocol, LoadPace};
use super::state::{LoadPhase, now_ms};
use super::tally::{LoadInterval, LoadTotals};
use super::{EVENTS, LoadEngine};
use crate::error::LoadError;

const SECOND: Duration = Duration::from_secs(1);
/// Interval of the check for outstanding replies after the load has ended.
const DRAIN_POLL_INTERVAL: Duration = Duration::from_millis(50);
/// QoS 0 connections that send in one turn, before events are polled again.
const MAX_SENDS_PER_TURN: usize = 64;
/// Pause before another attempt to reopen a connection.
pub(super) const REDIAL_AFTER: Duration = SECOND;

/// Divides the load into intervals.
struct IntervalTicker {
    next: Duration,
    started: Duration,
    before: LoadTotals,
}

impl LoadEngine {
    /// Runs the load, and reports each second to `watch`. Connections must be open. A lost connection is reopened a
    /// second later; its messages in flight have failed, and messages that fall due wait for it.
    ///
    /// # Errors
    /// The system fails to wait for events.
    pub fn run(&mut self, watch: &mut dyn FnMut(&LoadInterval)) -> Result<LoadTotals, LoadError> {
        self.begin();
        let mut events = Events::with_capacity(EVENTS);
        let end = self.plan.duration;
        let mut ticks = IntervalTicker {
            next: SECOND,
            started: Duration::ZERO,
            before: LoadTotals::default(),
        };
        loop {
            let now = self.state.started.elapsed();
            if self.state.is_sending() && now >= end {
                // Even if the loop is late, all due messages are sent.
                self.schedule(end);
                self.stop_sending();
                self.tick(&mut ticks, watch);
            } else if now >= ticks.next {
                self.tick(&mut ticks, watch);
            }
            let wait = if self.state.is_sending() {
                self.redial();
                self.send_queued()
                    .min(self.schedule(now))
                    .min(self.state.next_redial_in())
                    .min(end.saturating_sub(now))
                    .min(ticks.next.saturating_sub(now))
            } else if self.in_flight() == 0 || now >= end + self.plan.reply_timeout {
                break;
            } else {
                DRAIN_POLL_INTERVAL
            };
            self.wait(&mut events, wait)?;
        }
        self.finish();
        self.tick_rest(&mut ticks, watch);
        Ok(self.state.totals.clone())
    }

    /// Starts the clock of the load.
    fn begin(&mut self) {
        self.state.begin(&self.plan);
        for client in &mut self.clients {
            client.due_messages = 0;
        }
        for index in 0..self.clients.len() {
            match self.plan.pace {
                LoadPace::Closed { .. } => self.fill(index),
                LoadPace::Open { .. } => self.take_turn(index),
            }
        }
    }

    fn stop_sending(&mut self) {
        let now = self.state.started.elapsed();
        self.state.phase = LoadPhase::Draining;
        let unsent = self.unsent(now);
        let totals = &mut self.state.totals;
        totals.seconds = now.as_secs_f64();
        totals.acknowledged_in_time = totals.acknowledged;
        totals.unsent = unsent;
    }

    fn finish(&mut self) {
        let unanswered = self.in_flight();
        let (_, last_ms) = self.span();
        let world = &mut self.state;
        world.phase = LoadPhase::Quiet;
        world.totals.failed += unanswered;
        world.totals.unanswered = unanswered;
        world.totals.latency = world.latency.total();
        world.totals.ahead_ms = (last_ms - 1 - now_ms()).max(0);
    }

    /// Reports the time since the last interval.
    fn tick(&mut self, ticks: &mut IntervalTicker, watch: &mut dyn FnMut(&LoadInterval)) {
        let now = self.state.started.elapsed();
        let totals = self.state.totals.clone();
        let interval = LoadInterval {
            at: now,
            length: now.saturating_sub(ticks.started),
            sent: totals.sent - ticks.before.sent,
            acknowledged: totals.acknowledged - ticks.before.acknowledged,
            failed: totals.failed - ticks.before.failed,
            latency: self.state.latency.take_interval(),
        };
        // An interval that the loop has missed is part of this one.
        let missed = now.saturating_sub(ticks.next).as_secs() as u32;
        if now >= ticks.next {
            ticks.next += SECOND * (missed + 1);
        }
        if !self.state.is_sending() && ticks.started < self.plan.duration {
            ticks.next = now + SECOND;
        }
        ticks.started = now;
        ticks.before = totals;
        watch(&interval);
    }

    /// Reports replies after the last full interval, and messages without a reply.
    fn tick_rest(&mut self, ticks: &mut IntervalTicker, watch: &mut dyn FnMut(&LoadInterval)) {
        let (before, now) = (&ticks.before, &self.state.totals);
        if (now.acknowledged, now.failed) != (before.acknowledged, before.failed) {
            self.tick(ticks, watch);
        }
    }

    /// Messages of the schedule that no connection could send.
    fn unsent(&self, now: Duration) -> u64 {
        let LoadPace::Open { per_second } = self.plan.pace else {
            return 0;
        };
        let owed: u64 = self
            .clients
            .iter()
            .map(|client| u64::from(client.due_messages))
            .sum();
        self.plan
            .due(per_second, now)
            .saturating_sub(self.state.scheduled)
            + owed
    }

    /// Sends the messages that are due by `now`, and returns the time until the next one is.
    fn schedule(&mut self, now: Duration) -> Duration {
        let LoadPace::Open { per_second } = self.plan.pace else {
            return Duration::MAX;
        };
        let due = self.plan.due(per_second, now);
        let http = matches!(self.plan.protocol, DeviceProtocol::Http { .. });
        while self.state.scheduled < due {
            let index = if http {
                let Some(index) = self.state.next_in_queue() else {
                    // Replies must come first.
                    return Duration::MAX;
                };
                if let Some(client) = self.clients.get_mut(index) {
                    client.is_queued = false;
                }
                index
            } else {
                let turn = self.state.scheduled as usize % self.state.order.len().max(1);
                self.state.scheduled += 1;
                let index = self.state.order.get(turn).copied().unwrap_or_default() as usize;
                if let Some(client) = self.clients.get_mut(index) {
                    client.due_messages += 1;
                }
                index
            };
            self.fill(index);
        }
        // Sending has taken time as well.
        Duration::try_from_secs_f64(self.state.scheduled as f64 / per_second)
            .unwrap_or(Duration::MAX)
            .saturating_sub(self.state.started.elapsed())
    }

    /// Gives queued QoS 0 connections their turn to send, and returns the time until the next turn.
    fn send_queued(&mut self) -> Duration {
        if !(self.plan.is_unanswered() && matches!(self.plan.pace, LoadPace::Closed { .. })) {
            return Duration::MAX;
        }
        for _ in 0..self.state.queued().min(MAX_SENDS_PER_TURN) {
            let Some(index) = self.state.next_in_queue() else {
                break;
            };
            if let Some(client) = self.clients.get_mut(index) {
                client.is_queued = false;
            }
            self.fill(index);
        }
        match self.state.queued() {
            0 => Duration::MAX,
            _ => Duration::ZERO,
        }
    }

    /// Reopens the lost connections that are due.
    fn redial(&mut self) {
        while let Some(index) = self.state.next_redial() {
            if self.open(index).is_err() {
                self.state.redial(index, REDIAL_AFTER);
            }
        }
    }
}
