//! The event loop of the load generator: one thread for all connections, no allocation a message.

use std::io::ErrorKind;
use std::time::{Duration, Instant};

use mio::{Events, Poll, Token};

use crate::error::LoadError;
use client::{Client, Stage};
use timer::Timer;
use world::World;

mod client;
mod http;
mod link;
mod mqtt;
mod plan;
mod tally;
mod timer;
mod traffic;
mod world;

pub use link::Tls;
pub use plan::{Alarms, Pace, Plan, Protocol};
pub use tally::{DeviceTally, Interval, Totals};

/// Messages in flight on a connection in open loop, at most.
const OPEN_WINDOW: usize = 64;
/// Events of one wake-up.
const EVENTS: usize = 1_024;
const TIMER: Token = Token(usize::MAX);

/// What an answer of the server means.
enum Heard<'a> {
    /// The device was let in.
    Accepted,
    /// It was not, for this reason.
    Refused(&'a str),
    /// The message with this packet identifier is acknowledged.
    Acknowledged(u16),
    /// An HTTP request was answered.
    Answered { status: u16, closes: bool },
}

/// Simulated devices and their connections.
pub struct Engine {
    plan: Plan,
    poll: Poll,
    timer: Timer,
    clients: Vec<Client>,
    world: World,
}

impl Engine {
    /// Prepares a load without opening connections.
    pub fn new(plan: Plan) -> Result<Self, LoadError> {
        let poll = Poll::new().map_err(|error| LoadError::Engine(format!("epoll: {error}")))?;
        let timer = Timer::new(&poll, TIMER)?;
        let window = match (plan.pace, &plan.protocol) {
            (_, Protocol::Http { .. }) => 1,
            (Pace::Closed { in_flight }, _) => usize::from(in_flight.max(1)),
            (Pace::Open { .. }, _) => OPEN_WINDOW,
        };
        let clients = (0..plan.connections())
            .map(|index| Client::new(index as u32, window))
            .collect();
        let world = World::new(&plan);
        Ok(Self {
            plan,
            poll,
            timer,
            clients,
            world,
        })
    }

    /// Opens connections, a number at a time, until `count` are open or refused, and tells `progress` how many are open.
    /// Returns how long it took.
    pub fn connect(&mut self, count: usize, progress: &mut dyn FnMut(usize)) -> Result<Duration, LoadError> {
        let count = count.min(self.clients.len());
        let started = Instant::now();
        let mut events = Events::with_capacity(EVENTS);
        let mut heard_of = Instant::now();
        let mut known = 0;
        let mut told = Instant::now();
        loop {
            let settled = self.world.connected + self.world.refused;
            if settled != known {
                known = settled;
                heard_of = Instant::now();
            }
            if settled >= count {
                break;
            }
            if heard_of.elapsed() > self.plan.patience {
                return Err(LoadError::Engine(format!(
                    "{} of {} connections are open, and nothing was heard for {} s",
                    self.world.connected,
                    count,
                    self.plan.patience.as_secs()
                )));
            }
            while self.world.opened < count && self.world.opened - settled < self.plan.opening {
                let index = self.world.opened;
                self.world.opened += 1;
                self.open(index)?;
            }
            self.wait(&mut events, Some(Duration::from_millis(100)))?;
            if told.elapsed() > Duration::from_secs(1) {
                told = Instant::now();
                progress(self.world.connected);
            }
        }
        match &self.world.first_refusal {
            Some(reason) if self.world.connected == 0 => Err(LoadError::Engine(format!(
                "none of {count} connections was accepted: {reason}"
            ))),
            _ => Ok(started.elapsed()),
        }
    }

    /// Connections that are open, and those that were refused with the first reason.
    pub fn connected(&self) -> (usize, usize, Option<&str>) {
        (
            self.world.connected,
            self.world.refused,
            self.world.first_refusal.as_deref(),
        )
    }

    /// Lets each device send `message` once, a pack at a time, and waits for the acknowledgements.
    pub fn warm_up(&mut self, message: &[u8], pack: usize) -> Result<(), LoadError> {
        let Protocol::Mqtt { qos, .. } = self.plan.protocol else {
            return Ok(());
        };
        let mut events = Events::with_capacity(EVENTS);
        for first in (0..self.clients.len()).step_by(pack.max(1)) {
            for index in first..(first + pack.max(1)).min(self.clients.len()) {
                self.send(index, qos, message)?;
            }
            let asked = Instant::now();
            while self.in_flight() > 0 {
                if asked.elapsed() > self.plan.patience {
                    return Err(LoadError::Engine(format!(
                        "warm-up messages were not acknowledged within {} s",
                        self.plan.patience.as_secs()
                    )));
                }
                self.wait(&mut events, Some(Duration::from_millis(50)))?;
            }
        }
        Ok(())
    }

    /// Runs the load and tells `watch` of each second. Connections have to be open.
    pub fn run(&mut self, watch: &mut dyn FnMut(&Interval)) -> Result<Totals, LoadError> {
        self.begin();
        let mut events = Events::with_capacity(EVENTS);
        let end = self.plan.duration;
        let mut next_tick = Duration::from_secs(1);
        let mut before = Totals::default();
        let mut tick_started = Duration::ZERO;
        loop {
            let now = self.world.started.elapsed();
            if self.world.sending && now >= end {
                self.world.sending = false;
                self.world.totals.seconds = now.as_secs_f64();
                self.world.totals.acknowledged_in_time = self.world.totals.acknowledged;
                self.world.totals.unsent = self.unsent(now);
            }
            if now >= next_tick || !self.world.sending && next_tick < end + Duration::from_secs(1) {
                let interval = Interval {
                    at: now,
                    length: now.saturating_sub(tick_started),
                    sent: self.world.totals.sent - before.sent,
                    acknowledged: self.world.totals.acknowledged - before.acknowledged,
                    failed: self.world.totals.failed - before.failed,
                    latency: self.world.latency.take_interval(),
                };
                before = self.world.totals.clone();
                tick_started = now;
                while next_tick <= now {
                    next_tick += Duration::from_secs(1);
                }
                if !self.world.sending {
                    next_tick = end + Duration::from_secs(1);
                }
                watch(&interval);
            }
            if !self.world.sending && (self.in_flight() == 0 || now >= end + self.plan.patience) {
                break;
            }
            let wait = self.schedule(now)?;
            let wait = if self.world.sending {
                wait.min(end.saturating_sub(now))
                    .min(next_tick.saturating_sub(now))
            } else {
                Duration::from_millis(50)
            };
            self.wait(&mut events, Some(wait))?;
        }
        let unanswered = self.in_flight();
        self.world.totals.failed += unanswered;
        self.world.totals.unanswered = unanswered;
        self.world.totals.latency = self.world.latency.total();
        Ok(self.world.totals.clone())
    }

    /// Starts the clock of the load.
    fn begin(&mut self) {
        self.world.begin();
        for client in &mut self.clients {
            client.owed = 0;
        }
        if matches!(self.plan.pace, Pace::Closed { .. }) {
            for index in 0..self.clients.len() {
                self.fill(index);
            }
        }
    }

    /// What each device has sent and got acknowledged in the last load, in the order of the tokens.
    pub fn devices(&self) -> &[DeviceTally] {
        &self.world.devices
    }

    /// The plan it runs.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// When the last load began and until when its messages are dated, in milliseconds since 1970, the end excluded.
    pub fn span(&self) -> (i64, i64) {
        let last = self.world.devices.iter().map(|device| device.last_ts).max();
        (self.world.started_ms, last.unwrap_or(self.world.started_ms) + 1)
    }

    /// Ends all connections as devices do.
    pub fn disconnect(&mut self) {
        let mqtt = matches!(self.plan.protocol, Protocol::Mqtt { .. });
        self.world.output.clear();
        mqtt::put_disconnect(&mut self.world.output);
        for client in &mut self.clients {
            if let (true, Stage::Ready, Some(link)) = (mqtt, client.stage, client.link.as_mut()) {
                // The connection is closed in any case.
                let _ = link.write(&self.world.output).and_then(|_| link.flush());
            }
            client.close(Stage::Lost);
        }
    }

    fn in_flight(&self) -> u64 {
        let (sent, answered) = self.clients.iter().fold((0, 0), |(sent, answered), client| {
            (sent + client.sent, answered + client.answered)
        });
        sent - answered
    }

    /// Messages of the schedule that no connection could take.
    fn unsent(&self, now: Duration) -> u64 {
        let Pace::Open { per_second } = self.plan.pace else {
            return 0;
        };
        let due = (now.min(self.plan.duration).as_secs_f64() * per_second) as u64;
        let owed: u64 = self.clients.iter().map(|client| u64::from(client.owed)).sum();
        due.saturating_sub(self.world.scheduled) + owed
    }

    /// Sends what is due and returns how long nothing else will be.
    fn schedule(&mut self, now: Duration) -> Result<Duration, LoadError> {
        let (Pace::Open { per_second }, true) = (self.plan.pace, self.world.sending) else {
            return Ok(Duration::MAX);
        };
        let due = (now.as_secs_f64() * per_second) as u64 + 1;
        let http = matches!(self.plan.protocol, Protocol::Http { .. });
        while self.world.scheduled < due {
            let index = if http {
                let Some(index) = self.world.idle.pop() else {
                    // Answers come first.
                    return Ok(Duration::MAX);
                };
                index as usize
            } else {
                let turn = self.world.scheduled as usize % self.world.order.len().max(1);
                self.world.scheduled += 1;
                let index = self.world.order.get(turn).copied().unwrap_or_default() as usize;
                if let Some(client) = self.clients.get_mut(index) {
                    client.owed += 1;
                }
                index
            };
            self.fill(index);
        }
        Ok(Duration::from_secs_f64(self.world.scheduled as f64 / per_second).saturating_sub(now))
    }

    /// Waits for events, at most so long, and handles them.
    fn wait(&mut self, events: &mut Events, at_most: Option<Duration>) -> Result<(), LoadError> {
        let wait = self.timer.bound(at_most)?;
        match self.poll.poll(events, wait) {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(LoadError::Engine(format!("epoll: {error}"))),
        }
        for event in events.iter() {
            let Token(index) = event.token();
            if event.token() != TIMER {
                self.handle(
                    index,
                    event.is_writable(),
                    event.is_readable(),
                    event.is_read_closed(),
                );
            }
        }
        Ok(())
    }
}

fn micros(time: Duration) -> u64 {
    time.as_micros() as u64
}
