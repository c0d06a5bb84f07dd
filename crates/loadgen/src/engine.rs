//! The event loop of the load generator: one thread for all connections, without an allocation per message.

use std::io::ErrorKind;
use std::time::{Duration, Instant};

use mio::{Events, Poll, Token};

use crate::error::LoadError;
use client::{ClientStage, SimulatedClient};
use state::{LoadPhase, LoadState};

mod client;
mod http;
mod mqtt;
mod plan;
mod run;
mod socket;
mod state;
mod tally;
mod timer;
mod traffic;

pub(crate) use client::{IDS, packet_id};
pub use plan::{AlarmLoad, DeviceProtocol, LoadPace, LoadPlan};
pub(crate) use socket::ClientSocket;
pub use socket::ClientTls;
pub(crate) use state::now_ms;
pub use tally::{DeviceTally, LoadInterval, LoadTotals};
pub(crate) use timer::TimerFd;

/// Most messages in flight on a connection in open loop.
const OPEN_WINDOW: usize = 64;
/// Most events of one wake-up.
const EVENTS: usize = 1_024;
const TIMER: Token = Token(usize::MAX);

/// A reply of the server.
enum ServerReply<'a> {
    /// The server has accepted the device.
    Accepted,
    /// The server has refused the device, for this reason.
    Refused(&'a str),
    /// The message with this packet identifier is acknowledged.
    Acknowledged(u16),
    /// An HTTP request was answered.
    Answered { status: u16, closes: bool },
}

/// Simulated devices and their connections.
pub struct LoadEngine {
    plan: LoadPlan,
    poll: Poll,
    timer: TimerFd,
    clients: Vec<SimulatedClient>,
    state: LoadState,
}

impl LoadEngine {
    /// Prepares a load without opening connections.
    ///
    /// # Errors
    /// The system has no event queue or timer.
    pub fn new(plan: LoadPlan) -> Result<Self, LoadError> {
        let poll = Poll::new().map_err(|error| LoadError::Engine(format!("epoll: {error}")))?;
        let timer = TimerFd::new(&poll, TIMER)?;
        let window = match (plan.pace, &plan.protocol) {
            (_, DeviceProtocol::Http { .. }) => 1,
            (LoadPace::Closed { in_flight }, _) => usize::from(in_flight.max(1)),
            (LoadPace::Open { .. }, _) => OPEN_WINDOW,
        };
        let clients = (0..plan.connections())
            .map(|index| SimulatedClient::new(index as u32, window))
            .collect();
        let world = LoadState::new(&plan);
        Ok(Self {
            plan,
            poll,
            timer,
            clients,
            state: world,
        })
    }

    /// Opens connections, at most the plan's `opening` at a time, until `count` of them are open or refused. Reports
    /// the number of open ones to `progress`, and returns the duration.
    ///
    /// # Errors
    /// All were refused, the server did not react within the plan's reply timeout, or the system has no more sockets.
    pub fn connect(&mut self, count: usize, progress: &mut dyn FnMut(usize)) -> Result<Duration, LoadError> {
        let count = count.min(self.clients.len());
        let started = Instant::now();
        let mut events = Events::with_capacity(EVENTS);
        let mut heard_of = Instant::now();
        let mut known = 0;
        let mut told = Instant::now();
        loop {
            let settled = self.state.connected + self.state.refused;
            if settled != known {
                known = settled;
                heard_of = Instant::now();
            }
            if settled >= count {
                break;
            }
            if heard_of.elapsed() > self.plan.reply_timeout {
                return Err(LoadError::Engine(format!(
                    "{} of {} connections are open, and nothing was heard for {} s",
                    self.state.connected,
                    count,
                    self.plan.reply_timeout.as_secs()
                )));
            }
            while self.state.opened < count && self.state.opened - settled < self.plan.opening.max(1) {
                let index = self.state.opened;
                self.open(index)
                    .map_err(|error| LoadError::Engine(format!("connection {index}: {error}")))?;
                self.state.opened += 1;
            }
            self.wait(&mut events, Duration::from_millis(100))?;
            if told.elapsed() > Duration::from_secs(1) {
                told = Instant::now();
                progress(self.state.connected);
            }
        }
        match &self.state.first_refusal {
            Some(reason) if self.state.connected == 0 => Err(LoadError::Engine(format!(
                "none of {count} connections was accepted: {reason}"
            ))),
            _ => Ok(started.elapsed()),
        }
    }

    /// Returns the numbers of open and of refused connections, and the reason of the first refusal.
    pub fn connected(&self) -> (usize, usize, Option<&str>) {
        (
            self.state.connected,
            self.state.refused,
            self.state.first_refusal.as_deref(),
        )
    }

    /// Sends `message` once from each connected device, `pack` devices at a time, and waits for the acknowledgements.
    /// Sends nothing over HTTP, where connections belong to no device.
    ///
    /// # Errors
    /// An acknowledgement did not arrive within the plan's reply timeout.
    pub fn warm_up(&mut self, message: &[u8], pack: usize) -> Result<(), LoadError> {
        let DeviceProtocol::Mqtt { qos, .. } = self.plan.protocol else {
            return Ok(());
        };
        let mut events = Events::with_capacity(EVENTS);
        for first in (0..self.clients.len()).step_by(pack.max(1)) {
            for index in first..(first + pack.max(1)).min(self.clients.len()) {
                self.send(index, qos, message)?;
            }
            let asked = Instant::now();
            while self.in_flight() > 0 {
                if asked.elapsed() > self.plan.reply_timeout {
                    return Err(LoadError::Engine(format!(
                        "warm-up messages were not acknowledged within {} s",
                        self.plan.reply_timeout.as_secs()
                    )));
                }
                self.wait(&mut events, Duration::from_millis(50))?;
            }
        }
        Ok(())
    }

    /// The counts of sent and acknowledged messages of each device in the last load, in the order of the tokens.
    pub fn devices(&self) -> &[DeviceTally] {
        &self.state.devices
    }

    /// The plan of the engine.
    pub fn plan(&self) -> &LoadPlan {
        &self.plan
    }

    /// The time span of the last load's messages, in milliseconds since 1970, the end excluded.
    pub fn span(&self) -> (i64, i64) {
        let last = self.state.devices.iter().map(|device| device.last_ts).max();
        let begin = self.state.started_ms;
        (begin, last.unwrap_or(begin).max(begin) + 1)
    }

    /// Closes all connections in an orderly way, as devices do.
    pub fn disconnect(&mut self) {
        self.state.phase = LoadPhase::Quiet;
        let mqtt = matches!(self.plan.protocol, DeviceProtocol::Mqtt { .. });
        self.state.output.clear();
        mqtt::put_disconnect(&mut self.state.output);
        for client in &mut self.clients {
            // No packet can follow one that is half written.
            if mqtt && client.stage == ClientStage::Ready && !client.has_unwritten() {
                // The connection is closed in any case.
                let _ = client.write(&self.state.output);
            }
            client.close();
        }
        self.state.connected = 0;
    }

    fn in_flight(&self) -> u64 {
        self.clients.iter().map(SimulatedClient::in_flight).sum()
    }

    /// Waits for events for at most `at_most`, and handles them.
    fn wait(&mut self, events: &mut Events, at_most: Duration) -> Result<(), LoadError> {
        let wait = self.timer.bound(at_most)?;
        match self.poll.poll(events, Some(wait)) {
            Ok(()) => {}
            // Events left from the last poll have been handled already.
            Err(error) if error.kind() == ErrorKind::Interrupted => return Ok(()),
            Err(error) => return Err(LoadError::Engine(format!("epoll: {error}"))),
        }
        for event in events.iter() {
            let Token(index) = event.token();
            if event.token() != TIMER {
                let ended = event.is_read_closed() || event.is_error();
                self.handle(index, event.is_writable(), event.is_readable(), ended);
            }
        }
        Ok(())
    }
}

pub(crate) fn micros(time: Duration) -> u64 {
    time.as_micros() as u64
}
