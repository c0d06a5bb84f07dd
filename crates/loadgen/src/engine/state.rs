//! State shared by the simulated devices: the order of sending, and the counts.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rand::SeedableRng as _;
use rand::rngs::SmallRng;
use rand::seq::SliceRandom as _;

use super::client::{ClientStage, SimulatedClient};
use super::plan::{AlarmLoad, DeviceProtocol, LoadPace, LoadPlan};
use super::tally::{DeviceTally, LoadTotals};
use super::{ServerReply, http, mqtt};
use crate::error::LoadError;
use crate::latency::LatencyRecorder;

/// Most bytes of one read.
const READ_BYTES: usize = 256 << 10;

/// The phase of a load, which decides how a lost connection is handled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LoadPhase {
    /// No load runs: the connection could not be kept open.
    Quiet,
    /// The connection is reopened.
    Sending,
    /// The connection is not needed any more.
    Draining,
}

/// Everything besides the connections.
pub(super) struct LoadState {
    pub(super) devices: Vec<DeviceTally>,
    /// Devices in the order in which they send.
    pub(super) order: Vec<u32>,
    pub(super) random: SmallRng,
    pub(super) latency: LatencyRecorder,
    pub(super) totals: LoadTotals,
    /// Scratch buffer for reads.
    pub(super) input: Box<[u8]>,
    /// Scratch buffer for one write.
    pub(super) output: Vec<u8>,
    pub(super) payload: Vec<u8>,
    pub(super) started: Instant,
    pub(super) started_ms: i64,
    pub(super) phase: LoadPhase,
    /// Messages of the schedule that were given to a connection; in closed loop over HTTP, messages sent.
    pub(super) scheduled: u64,
    pub(super) alarms_sent: u64,
    /// Connections to which the loop gives turns: in open loop those of HTTP without a request, in closed loop those of
    /// QoS 0, which get no replies. Each is queued once, and must be checked before use.
    queue: VecDeque<u32>,
    /// Lost connections, by the time of the load at which they are reopened.
    redials: BinaryHeap<Reverse<(Duration, u32)>>,
    pub(super) connected: usize,
    pub(super) refused: usize,
    pub(super) first_refusal: Option<String>,
    pub(super) opened: usize,
}

impl LoadState {
    pub(super) fn new(plan: &LoadPlan) -> Self {
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
            totals: LoadTotals::default(),
            input: vec![0; READ_BYTES].into_boxed_slice(),
            output: Vec::new(),
            payload: Vec::new(),
            started: Instant::now(),
            started_ms: now_ms(),
            phase: LoadPhase::Quiet,
            scheduled: 0,
            alarms_sent: 0,
            queue: VecDeque::new(),
            redials: BinaryHeap::new(),
            connected: 0,
            refused: 0,
            first_refusal: None,
            opened: 0,
        }
    }

    /// Resets the counts, and starts the clock of a load.
    pub(super) fn begin(&mut self, plan: &LoadPlan) {
        self.devices.fill(DeviceTally::default());
        for (turn, device) in self.order.iter().enumerate() {
            if let Some(device) = self.devices.get_mut(*device as usize) {
                device.turn = turn as u32;
            }
        }
        self.latency = LatencyRecorder::new();
        self.totals = LoadTotals::default();
        self.started = Instant::now();
        self.started_ms = now_ms().max(plan.not_before_ms);
        self.phase = LoadPhase::Sending;
        self.scheduled = 0;
        self.alarms_sent = 0;
        self.redials.clear();
    }

    /// Whether the load is sending.
    pub(super) fn is_sending(&self) -> bool {
        self.phase == LoadPhase::Sending
    }

    /// Queues a connection for its turn.
    pub(super) fn queue(&mut self, client: &mut SimulatedClient, index: usize) {
        if !std::mem::replace(&mut client.is_queued, true) {
            self.queue.push_back(index as u32);
        }
    }

    /// Removes the connection that has waited longest from the queue, and returns it.
    pub(super) fn next_in_queue(&mut self) -> Option<usize> {
        self.queue.pop_front().map(|index| index as usize)
    }

    pub(super) fn queued(&self) -> usize {
        self.queue.len()
    }

    /// Schedules a lost connection to be reopened after a pause.
    pub(super) fn redial(&mut self, index: usize, pause: Duration) {
        let at = self.started.elapsed() + pause;
        self.redials.push(Reverse((at, index as u32)));
    }

    /// Returns a connection that is due to be reopened.
    pub(super) fn next_redial(&mut self) -> Option<usize> {
        let Reverse((at, index)) = *self.redials.peek()?;
        (at <= self.started.elapsed()).then(|| {
            self.redials.pop();
            index as usize
        })
    }

    /// The time until the next connection is due to be reopened.
    pub(super) fn next_redial_in(&self) -> Duration {
        self.redials.peek().map_or(Duration::MAX, |Reverse((at, _))| {
            at.saturating_sub(self.started.elapsed())
        })
    }

    pub(super) fn count_refusal(&mut self, reason: &str) {
        self.refused += 1;
        self.first_refusal.get_or_insert_with(|| reason.to_owned());
    }

    /// Returns the scheduled time of a connection's next message; `None` if none is due.
    pub(super) fn take_due(
        &mut self,
        client: &mut SimulatedClient,
        plan: &LoadPlan,
        per_second: f64,
    ) -> Option<u64> {
        let number = match plan.protocol {
            DeviceProtocol::Mqtt { .. } => {
                client.due_messages = client.due_messages.checked_sub(1)?;
                // A connection has one turn in each round.
                let device = self.devices.get(client.device as usize)?;
                u64::from(device.sent) * self.order.len() as u64 + u64::from(device.turn)
            }
            DeviceProtocol::Http { .. } => {
                self.scheduled += 1;
                self.scheduled - 1
            }
        };
        Some((number as f64 / per_second * 1e6) as u64)
    }

    pub(super) fn put_message(
        &mut self,
        client: &mut SimulatedClient,
        plan: &LoadPlan,
        mark: u64,
        now: Duration,
    ) -> Result<(), LoadError> {
        if let DeviceProtocol::Http { .. } = plan.protocol {
            let number = match plan.pace {
                LoadPace::Open { .. } => self.scheduled - 1,
                LoadPace::Closed { .. } => {
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
        // Each message of a device needs its own timestamp, or one would replace the other.
        device.last_ts = (self.started_ms + now.as_millis() as i64).max(device.last_ts + 1);
        device.sent += 1;
        let ts = (!plan.attributes).then_some(device.last_ts);
        self.payload.clear();
        plan.payload.write(ts, alarm, &mut self.random, &mut self.payload);
        self.totals.payload_bytes += self.payload.len() as u64;
        let number = client.note_sent(mark);
        match &plan.protocol {
            DeviceProtocol::Mqtt { qos, .. } => {
                let topic = if plan.attributes {
                    mqtt::ATTRIBUTES
                } else {
                    mqtt::TELEMETRY
                };
                mqtt::put_message(topic, *qos, number, &self.payload, &mut self.output)
            }
            DeviceProtocol::Http { host, prefix, .. } => {
                let token = plan.tokens.get(client.device as usize).map_or("", String::as_str);
                let what = if plan.attributes {
                    "attributes"
                } else {
                    "telemetry"
                };
                http::put_post(host, prefix, token, what, &self.payload, &mut self.output);
                Ok(())
            }
        }
    }

    fn wants_alarm(&mut self, plan: &LoadPlan, now: Duration) -> bool {
        let AlarmLoad {
            per_second,
            from,
            until,
        } = plan.alarms;
        let seconds = now.as_secs_f64().min(until) - from;
        let wanted = seconds > 0.0 && (self.alarms_sent as f64) < seconds * per_second;
        self.alarms_sent += u64::from(wanted);
        wanted
    }

    /// Handles a reply of the server on a connection.
    pub(super) fn handle_reply(
        &mut self,
        client: &mut SimulatedClient,
        heard: ServerReply<'_>,
        now: u64,
    ) -> Result<(), LoadError> {
        match heard {
            ServerReply::Accepted if client.stage == ClientStage::Greeting => self.make_ready(client),
            ServerReply::Accepted => {}
            ServerReply::Refused(reason) => return Err(LoadError::Engine(reason.to_owned())),
            ServerReply::Acknowledged(id) => match client.note_acknowledged(id) {
                Some(mark) => self.succeed(client.device, mark, now),
                None => self.totals.unexpected += 1,
            },
            ServerReply::Answered { status, .. } => match client.note_answered() {
                Some(mark) if (200..300).contains(&status) => self.succeed(client.device, mark, now),
                Some(_) => {
                    self.totals.failed += 1;
                    self.totals.first_failure.get_or_insert(format!("HTTP {status}"));
                }
                None => self.totals.unexpected += 1,
            },
        }
        Ok(())
    }

    /// Marks a connection as open: messages may be sent.
    pub(super) fn make_ready(&mut self, client: &mut SimulatedClient) {
        client.stage = ClientStage::Ready;
        self.connected += 1;
    }

    /// Counts the QoS 0 messages that the system has accepted.
    pub(super) fn count_written(&mut self, client: &mut SimulatedClient) {
        let now = self.started.elapsed().as_micros() as u64;
        while let Some(mark) = client.note_answered() {
            self.succeed(client.device, mark, now);
        }
    }

    /// Resets the count of a lost QoS 0 connection: its messages may never have been read.
    pub(super) fn reset_acknowledged(&mut self, client: &SimulatedClient) {
        if let Some(device) = self.devices.get_mut(client.device as usize) {
            device.acknowledged = 0;
        }
    }

    fn succeed(&mut self, device: u32, mark: u64, now: u64) {
        self.totals.acknowledged += 1;
        self.latency.record(now.saturating_sub(mark));
        if let Some(device) = self.devices.get_mut(device as usize) {
            device.acknowledged += 1;
        }
    }
}

/// Milliseconds since 1970.
pub(crate) fn now_ms() -> i64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_millis() as i64)
}
