//! What the simulated devices share: who sends what next, and what has been counted.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rand::SeedableRng as _;
use rand::rngs::SmallRng;
use rand::seq::SliceRandom as _;

use super::client::{Client, Stage};
use super::plan::{Alarms, Pace, Plan, Protocol};
use super::tally::{DeviceTally, Totals};
use super::{Heard, http, mqtt};
use crate::error::LoadError;
use crate::latency::LatencyRecorder;

/// What one read takes at most.
const READ_BYTES: usize = 256 << 10;

/// Everything beside the connections.
pub(super) struct World {
    pub(super) devices: Vec<DeviceTally>,
    /// Devices in the order in which they send.
    pub(super) order: Vec<u32>,
    pub(super) random: SmallRng,
    pub(super) latency: LatencyRecorder,
    pub(super) totals: Totals,
    /// Scratch for reads.
    pub(super) input: Box<[u8]>,
    /// Scratch for what is written at once.
    pub(super) output: Vec<u8>,
    pub(super) payload: Vec<u8>,
    pub(super) started: Instant,
    pub(super) started_ms: i64,
    pub(super) sending: bool,
    /// Messages of the schedule that have been handed to a connection, or in closed loop those sent.
    pub(super) scheduled: u64,
    pub(super) alarms_sent: u64,
    /// HTTP connections without a request.
    pub(super) idle: Vec<u32>,
    pub(super) connected: usize,
    pub(super) refused: usize,
    pub(super) first_refusal: Option<String>,
    pub(super) opened: usize,
}

impl World {
    pub(super) fn new(plan: &Plan) -> Self {
        let mut random = SmallRng::seed_from_u64(plan.seed);
        let mut order: Vec<u32> = (0..plan.tokens.len() as u32).collect();
        if !plan.sequential {
            order.shuffle(&mut random);
        }
        Self {
            devices: vec![DeviceTally::default(); plan.tokens.len()],
            order,
            random,
            latency: LatencyRecorder::new(),
            totals: Totals::default(),
            input: vec![0; READ_BYTES].into_boxed_slice(),
            output: Vec::new(),
            payload: Vec::new(),
            started: Instant::now(),
            started_ms: now_ms(),
            sending: false,
            scheduled: 0,
            alarms_sent: 0,
            idle: Vec::new(),
            connected: 0,
            refused: 0,
            first_refusal: None,
            opened: 0,
        }
    }

    /// Forgets what was counted and starts the clock of a load.
    pub(super) fn begin(&mut self) {
        self.devices.fill(DeviceTally::default());
        for (turn, device) in self.order.iter().enumerate() {
            if let Some(device) = self.devices.get_mut(*device as usize) {
                device.turn = turn as u32;
            }
        }
        self.latency = LatencyRecorder::new();
        self.totals = Totals::default();
        self.started = Instant::now();
        self.started_ms = now_ms();
        self.sending = true;
        self.scheduled = 0;
        self.alarms_sent = 0;
    }

    pub(super) fn refuse(&mut self, reason: &str) {
        self.refused += 1;
        self.first_refusal.get_or_insert_with(|| reason.to_owned());
    }

    /// The time that the next message of a connection belongs to; none if it owes nothing.
    pub(super) fn due(&mut self, client: &mut Client, plan: &Plan, per_second: f64) -> Option<u64> {
        let number = match plan.protocol {
            Protocol::Mqtt { .. } => {
                client.owed = client.owed.checked_sub(1)?;
                // The connection's turns come once a round.
                let device = self.devices.get(client.device as usize)?;
                u64::from(device.sent) * self.order.len() as u64 + u64::from(device.turn)
            }
            Protocol::Http { .. } => {
                self.scheduled += 1;
                self.scheduled - 1
            }
        };
        Some((number as f64 / per_second * 1e6) as u64)
    }

    pub(super) fn put_message(
        &mut self,
        client: &mut Client,
        plan: &Plan,
        mark: u64,
        now: Duration,
    ) -> Result<(), LoadError> {
        if let Protocol::Http { .. } = plan.protocol {
            let number = match plan.pace {
                Pace::Open { .. } => self.scheduled - 1,
                Pace::Closed { .. } => {
                    self.scheduled += 1;
                    self.scheduled - 1
                }
            };
            let turn = number as usize % self.order.len().max(1);
            client.device = self.order.get(turn).copied().unwrap_or_default();
        }
        let alarm = self.wants_alarm(plan, now);
        let Some(device) = self.devices.get_mut(client.device as usize) else {
            return Ok(());
        };
        // Each message of a device has a time of its own, or one would replace the other.
        device.last_ts = (self.started_ms + now.as_millis() as i64).max(device.last_ts + 1);
        device.sent += 1;
        let ts = (!plan.attributes).then_some(device.last_ts);
        self.payload.clear();
        plan.payload.write(ts, alarm, &mut self.random, &mut self.payload);
        self.totals.payload_bytes += self.payload.len() as u64;
        let number = client.note_sent(mark);
        match &plan.protocol {
            Protocol::Mqtt { qos, .. } => {
                let topic = if plan.attributes {
                    mqtt::ATTRIBUTES
                } else {
                    mqtt::TELEMETRY
                };
                mqtt::put_message(topic, *qos, number, &self.payload, &mut self.output)
            }
            Protocol::Http { host, .. } => {
                let token = plan.tokens.get(client.device as usize).map_or("", String::as_str);
                let what = if plan.attributes {
                    "attributes"
                } else {
                    "telemetry"
                };
                http::put_post(host, token, what, &self.payload, &mut self.output);
                Ok(())
            }
        }
    }

    fn wants_alarm(&mut self, plan: &Plan, now: Duration) -> bool {
        let Alarms {
            per_second,
            from,
            until,
        } = plan.alarms;
        let seconds = now.as_secs_f64().min(until) - from;
        let wanted = seconds > 0.0 && (self.alarms_sent as f64) < seconds * per_second;
        self.alarms_sent += u64::from(wanted);
        wanted
    }

    pub(super) fn note(&mut self, client: &mut Client, heard: Heard<'_>, now: u64) -> Result<(), LoadError> {
        match heard {
            Heard::Accepted if client.stage == Stage::Greeting => {
                client.stage = Stage::Ready;
                self.connected += 1;
            }
            Heard::Accepted => {}
            Heard::Refused(reason) => return Err(LoadError::Engine(reason.to_owned())),
            Heard::Acknowledged(id) => match client.note_acknowledged(id) {
                Some(mark) => self.succeed(client.device, mark, now),
                None => self.totals.strange += 1,
            },
            Heard::Answered { status, .. } => match client.note_answered() {
                Some(mark) if (200..300).contains(&status) => self.succeed(client.device, mark, now),
                Some(_) => {
                    self.totals.failed += 1;
                    self.totals.first_failure.get_or_insert(format!("HTTP {status}"));
                }
                None => self.totals.strange += 1,
            },
        }
        Ok(())
    }

    pub(super) fn succeed(&mut self, device: u32, mark: u64, now: u64) {
        self.totals.acknowledged += 1;
        self.latency.record(now.saturating_sub(mark));
        if let Some(device) = self.devices.get_mut(device as usize) {
            device.acknowledged += 1;
        }
    }
}

fn now_ms() -> i64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_millis() as i64)
}
