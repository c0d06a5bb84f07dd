//! The event loop of publishers and subscribers: one thread for all of their connections.

use std::collections::VecDeque;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::ops::Range;
use std::time::{Duration, Instant};

use fieldline_codec::MqttProtocolVersion;
use mio::{Events, Interest, Poll, Token};

use super::client::{ConnectionStage, PubSubClient};
use super::config::PubSubConfig;
use super::message::{MessageTemplate, UNCOUNTED};
use super::packets;
use super::plan::clients_of;
use super::receipts::{NumberSet, ReceiptLedger};
use crate::engine::{ClientSocket, ClientTls, TimerFd, micros};
use crate::error::{LoadError, LoadResult};
use crate::latency::LatencyRecorder;

const EVENTS: usize = 1_024;
const TIMER: Token = Token(usize::MAX);
/// Most messages in flight of a publisher that sends by the clock.
const OPEN_WINDOW: usize = 1_000;
/// Bytes that are read at once.
const INPUT: usize = 256 << 10;
/// Reads of a connection before others have their turn.
const READS_PER_TURN: usize = 4;
/// Publishers that send more before events are looked at again.
const TURNS: usize = 64;
/// Pause before a lost connection is opened again.
const REDIAL_AFTER: Duration = Duration::from_secs(1);
/// How long nothing may be heard while connections are opened.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(60);

/// How clients reach the broker.
#[derive(Clone)]
pub(super) struct ClientSettings {
    pub(super) target: SocketAddr,
    pub(super) tls: Option<ClientTls>,
    pub(super) version: MqttProtocolVersion,
    pub(super) username: String,
    pub(super) password: Option<String>,
    pub(super) keep_alive: u16,
    /// Messages in flight of each publisher in closed loop.
    pub(super) in_flight: Option<u16>,
}

/// What has happened so far.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct PubSubCounts {
    pub(super) sent: u64,
    pub(super) acknowledged: u64,
    /// In flight on connections that were lost, or refused.
    pub(super) failed: u64,
    pub(super) delivered: u64,
    pub(super) lost_connections: u64,
}

/// What the loop is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RunPhase {
    /// Connections are opened, to sessions that are new where this says so.
    Connecting { clears_sessions: bool },
    /// Messages are sent that are not counted.
    WarmingUp,
    /// Messages are published.
    Publishing,
    /// What is on its way is waited for.
    Draining,
    /// What the round has left with the broker is taken back.
    CleaningUp,
}

/// All clients, and what they have seen.
pub(super) struct PubSubEngine<'a> {
    pub(super) config: &'a PubSubConfig,
    pub(super) settings: ClientSettings,
    poll: Poll,
    timer: TimerFd,
    pub(super) clients: Vec<PubSubClient>,
    pub(super) subscribers: Range<usize>,
    pub(super) publishers: Range<usize>,
    pub(super) template: MessageTemplate,
    pub(super) ledgers: Vec<ReceiptLedger>,
    pub(super) acknowledged: Vec<NumberSet>,
    pub(super) run: u32,
    pub(super) epoch: Instant,
    /// When the load began, since the epoch.
    pub(super) began: Duration,
    pub(super) last_delivery: Option<Duration>,
    pub(super) counts: PubSubCounts,
    pub(super) delivery: LatencyRecorder,
    pub(super) acknowledgement: LatencyRecorder,
    pub(super) phase: RunPhase,
    /// Messages of the schedule that publishers were told of.
    pub(super) scheduled: u64,
    /// Clients that have become ready since connecting began.
    ready: usize,
    refusal: Option<String>,
    /// Connections that may have more to read.
    unread: VecDeque<usize>,
    /// Publishers that may send more.
    pub(super) turns: VecDeque<usize>,
    redials: VecDeque<(Instant, usize)>,
    next_ping: Instant,
    /// The shortest keep-alive that a broker has asked for, seconds.
    pub(super) shortest_keep_alive: u16,
    input: Vec<u8>,
    pub(super) output: Vec<u8>,
}

impl<'a> PubSubEngine<'a> {
    /// Prepares the clients of a load without opening connections.
    pub(super) fn new(config: &'a PubSubConfig, settings: ClientSettings, run: u32) -> LoadResult<Self> {
        let poll = Poll::new().map_err(|error| LoadError::Engine(format!("epoll: {error}")))?;
        let timer = TimerFd::new(&poll, TIMER)?;
        let (clients, ledgers) = clients_of(config);
        let subscribers = 0..config.subscribers() as usize;
        let publishers = subscribers.end..subscribers.end + config.publishers() as usize;
        let keys = config.telemetry_keys.as_deref().unwrap_or_default();
        Ok(Self {
            config,
            next_ping: Instant::now() + ping_interval(settings.keep_alive),
            shortest_keep_alive: settings.keep_alive,
            settings,
            poll,
            timer,
            clients,
            acknowledged: vec![NumberSet::default(); publishers.len()],
            subscribers,
            publishers,
            template: MessageTemplate::new(keys, config.min_payload_size),
            ledgers,
            run,
            epoch: Instant::now(),
            began: Duration::ZERO,
            last_delivery: None,
            counts: PubSubCounts::default(),
            delivery: LatencyRecorder::new(),
            acknowledgement: LatencyRecorder::new(),
            phase: RunPhase::Connecting {
                clears_sessions: false,
            },
            scheduled: 0,
            ready: 0,
            refusal: None,
            unread: VecDeque::new(),
            turns: VecDeque::new(),
            redials: VecDeque::new(),
            input: vec![0; INPUT],
            output: Vec::new(),
        })
    }

    /// Opens connections, as many at a time as the load says, until all of them are ready.
    ///
    /// # Errors
    /// One was refused, or the broker does not answer.
    pub(super) fn connect(&mut self, which: &[usize], clears_sessions: bool) -> LoadResult<Duration> {
        self.phase = RunPhase::Connecting { clears_sessions };
        self.ready = 0;
        let began = Instant::now();
        let (mut heard_of, mut known) = (began, 0);
        let mut opened = 0_usize;
        let mut events = Events::with_capacity(EVENTS);
        for index in which {
            if let Some(client) = self.clients.get_mut(*index) {
                client.is_awaited = true;
                client.has_subscribed &= !clears_sessions;
            }
        }
        while self.ready < which.len() {
            if self.ready != known {
                (known, heard_of) = (self.ready, Instant::now());
            }
            if heard_of.elapsed() > CONNECT_TIMEOUT {
                return Err(LoadError::Engine(format!(
                    "{known} of {} clients are connected and subscribed, and nothing was heard for {} s",
                    which.len(),
                    CONNECT_TIMEOUT.as_secs()
                )));
            }
            while opened.saturating_sub(self.ready) < self.config.opening.max(1)
                && let Some(index) = which.get(opened)
            {
                self.open(*index)
                    .map_err(|error| LoadError::Engine(format!("connection {opened}: {error}")))?;
                opened += 1;
            }
            self.turn(&mut events, Duration::from_millis(100))?;
            self.check_refusal()?;
        }
        Ok(began.elapsed())
    }

    /// Fails if a client was not accepted, or was lost before the load.
    pub(super) fn check_refusal(&mut self) -> LoadResult<()> {
        match self.refusal.take() {
            Some(reason) => Err(LoadError::Engine(reason)),
            None => Ok(()),
        }
    }

    /// Goes on for at most this long.
    pub(super) fn turn(&mut self, events: &mut Events, at_most: Duration) -> LoadResult<()> {
        self.redial();
        self.ping();
        let mut wait = at_most;
        if self.phase == RunPhase::Publishing {
            wait = wait.min(self.schedule());
        }
        if let Some((at, _)) = self.redials.front() {
            wait = wait.min(at.saturating_duration_since(Instant::now()));
        }
        for _ in 0..self.turns.len().min(TURNS) {
            if let Some(index) = self.turns.pop_front() {
                if let Some(client) = self.clients.get_mut(index) {
                    client.is_queued = false;
                }
                self.fill(index);
            }
        }
        if !self.turns.is_empty() || !self.unread.is_empty() {
            wait = Duration::ZERO;
        }
        self.wait(events, wait)
    }

    /// Messages that were acknowledged and have not arrived.
    pub(super) fn missing(&self) -> u64 {
        self.ledgers
            .iter()
            .map(|ledger| ledger.missing(&self.acknowledged))
            .sum()
    }

    /// Closes connections in an orderly way; those that were lost are not opened again.
    pub(super) fn disconnect(&mut self, which: Range<usize>) {
        self.redials.retain(|(_, index)| !which.contains(index));
        self.output.clear();
        packets::put_disconnect(self.settings.version, &mut self.output);
        for client in self.clients.get_mut(which).unwrap_or_default() {
            if client.stage == ConnectionStage::Ready && !client.has_unwritten() {
                // The connection is closed in any case.
                let _ = client.write(&self.output);
            }
            self.counts.failed += client.close();
        }
    }

    /// Whether something waits to be written.
    pub(super) fn has_unwritten(&self) -> bool {
        self.clients.iter().any(PubSubClient::has_unwritten)
    }

    fn open(&mut self, index: usize) -> std::io::Result<()> {
        let Some(client) = self.clients.get_mut(index) else {
            return Ok(());
        };
        // It was lost, and is wanted again before its turn.
        if client.stage != ConnectionStage::Closed {
            return Ok(());
        }
        let mut socket = ClientSocket::open(self.settings.target, index, self.settings.tls.as_ref())?;
        let both = Interest::READABLE | Interest::WRITABLE;
        self.poll
            .registry()
            .register(socket.socket(), Token(index), both)?;
        client.socket = Some(socket);
        client.stage = ConnectionStage::Opening;
        Ok(())
    }

    fn wait(&mut self, events: &mut Events, at_most: Duration) -> LoadResult<()> {
        let wait = self.timer.bound(at_most)?;
        match self.poll.poll(events, Some(wait)) {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::Interrupted => return Ok(()),
            Err(error) => return Err(LoadError::Engine(format!("epoll: {error}"))),
        }
        for _ in 0..self.unread.len() {
            let Some(index) = self.unread.pop_front() else {
                break;
            };
            // It may have been lost and opened again.
            if self
                .clients
                .get(index)
                .is_some_and(|client| client.stage > ConnectionStage::Opening)
            {
                // No event would tell again of what is left, nor of the end behind it.
                self.handle(index, false, true, true);
            }
        }
        for event in events.iter() {
            if event.token() != TIMER {
                let ended = event.is_read_closed() || event.is_error();
                self.handle(event.token().0, event.is_writable(), event.is_readable(), ended);
            }
        }
        Ok(())
    }

    fn handle(&mut self, index: usize, writable: bool, readable: bool, ended: bool) {
        if let Err(reason) = self.advance(index, writable, readable, ended) {
            self.handle_loss(index, &reason);
        }
    }

    fn advance(&mut self, index: usize, writable: bool, readable: bool, ended: bool) -> Result<(), String> {
        let Some(client) = self.clients.get_mut(index) else {
            return Ok(());
        };
        if client.stage == ConnectionStage::Closed {
            return Ok(());
        }
        if client.stage == ConnectionStage::Opening {
            if !writable && !ended {
                return Ok(());
            }
            if let Some(Ok(Some(error)) | Err(error)) =
                client.socket.as_mut().map(|socket| socket.socket().take_error())
            {
                return Err(error.to_string());
            }
            client.stage = ConnectionStage::Greeting;
            self.output.clear();
            let clears = self.phase
                == RunPhase::Connecting {
                    clears_sessions: true,
                };
            packets::put_connect(client, &self.settings, clears, &mut self.output)?;
            client.write(&self.output)?;
        }
        if writable {
            client.flush()?;
        }
        let is_tls = client.socket.as_ref().is_some_and(ClientSocket::is_tls);
        if readable || ended || is_tls {
            self.read(index, ended || is_tls)?;
        }
        self.count_written(index);
        self.fill(index);
        Ok(())
    }

    fn read(&mut self, index: usize, to_the_end: bool) -> Result<(), String> {
        let mut input = std::mem::take(&mut self.input);
        let result = self.read_into(index, &mut input, to_the_end);
        self.input = input;
        result
    }

    fn read_into(&mut self, index: usize, input: &mut [u8], to_the_end: bool) -> Result<(), String> {
        for _ in 0..READS_PER_TURN {
            let Some(client) = self.clients.get_mut(index) else {
                return Ok(());
            };
            let Some(socket) = client.socket.as_mut() else {
                return Ok(());
            };
            let read = match socket.read(input) {
                Ok(0) => return Err("the broker closed the connection".to_owned()),
                Ok(read) => read,
                // TLS may have to answer what it has read.
                Err(error) if error.kind() == ErrorKind::WouldBlock => return client.flush(),
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Err(error.to_string()),
            };
            let is_emptied = read < input.len();
            self.handle_input(index, input.get(..read).unwrap_or_default())?;
            if is_emptied && !to_the_end {
                return Ok(());
            }
        }
        self.unread.push_back(index);
        Ok(())
    }

    fn handle_input(&mut self, index: usize, input: &[u8]) -> Result<(), String> {
        let Some(client) = self.clients.get_mut(index) else {
            return Ok(());
        };
        let mut joined = std::mem::take(&mut client.partial);
        let whole = if joined.is_empty() {
            input
        } else {
            joined.extend_from_slice(input);
            joined.as_slice()
        };
        let mut output = std::mem::take(&mut self.output);
        output.clear();
        let used = self.handle_packets(index, whole, &mut output);
        let result = used.and_then(|used| {
            let Some(client) = self.clients.get_mut(index) else {
                return Ok(());
            };
            client
                .partial
                .extend_from_slice(whole.get(used..).unwrap_or_default());
            match output.is_empty() {
                true => Ok(()),
                false => client.write(&output),
            }
        });
        self.output = output;
        result
    }

    /// A client is connected, and subscribed where that is its job.
    pub(super) fn make_ready(&mut self, index: usize) {
        if let Some(client) = self.clients.get_mut(index) {
            client.stage = ConnectionStage::Ready;
            self.ready += usize::from(std::mem::take(&mut client.is_awaited));
        }
    }

    /// A message has arrived at a subscriber.
    pub(super) fn receive(&mut self, ledger: u32, payload: &[u8]) {
        let Some(stamp) = self.template.read(payload) else {
            return;
        };
        if stamp.run != self.run || stamp.number == UNCOUNTED {
            return;
        }
        // What nobody has sent is of somebody else.
        let sender = self.publishers.start + stamp.publisher as usize;
        let is_sent = self
            .clients
            .get(sender)
            .is_some_and(|client| stamp.number < client.next_number);
        let Some(ledger) = self.ledgers.get_mut(ledger as usize).filter(|_| is_sent) else {
            return;
        };
        if ledger.note(stamp.publisher, stamp.number) {
            let now = self.epoch.elapsed();
            self.counts.delivered += 1;
            self.last_delivery = Some(now);
            self.delivery.record(micros(now).saturating_sub(stamp.due_us));
        }
    }

    fn redial(&mut self) {
        while let Some((at, index)) = self.redials.front().copied()
            && at <= Instant::now()
        {
            self.redials.pop_front();
            if self.open(index).is_err() {
                self.redials.push_back((Instant::now() + REDIAL_AFTER, index));
            }
        }
    }

    /// Lets the broker know that clients are alive that have nothing to say.
    fn ping(&mut self) {
        let interval = ping_interval(self.shortest_keep_alive);
        // A broker may have asked for a shorter one since.
        self.next_ping = self.next_ping.min(Instant::now() + interval);
        if self.shortest_keep_alive == 0 || Instant::now() < self.next_ping {
            return;
        }
        self.next_ping = Instant::now() + ping_interval(self.shortest_keep_alive);
        for index in 0..self.clients.len() {
            let Some(client) = self.clients.get_mut(index) else {
                continue;
            };
            if client.stage == ConnectionStage::Ready
                && let Err(reason) = client.write(packets::PINGREQ)
            {
                self.handle_loss(index, &reason);
            }
        }
    }

    /// A connection has ended. During the load it is opened again.
    pub(super) fn handle_loss(&mut self, index: usize, reason: &str) {
        let Some(client) = self.clients.get_mut(index) else {
            return;
        };
        if client.stage == ConnectionStage::Closed {
            return;
        }
        let was_ready = client.stage == ConnectionStage::Ready;
        let is_awaited = std::mem::take(&mut client.is_awaited);
        let failed = client.close();
        if is_awaited || matches!(self.phase, RunPhase::WarmingUp | RunPhase::CleaningUp) {
            let refusal = format!("client {} was not accepted, or lost: {reason}", client.id);
            self.refusal.get_or_insert(refusal);
            return;
        }
        self.counts.failed += failed;
        self.counts.lost_connections += u64::from(was_ready);
        self.redials.push_back((Instant::now() + REDIAL_AFTER, index));
    }
}

/// The window of a publisher: what the broker takes, and what the load asks for.
pub(super) fn window(settings: &ClientSettings, receive_maximum: Option<u16>) -> usize {
    let wanted = settings.in_flight.map_or(OPEN_WINDOW, usize::from);
    wanted.min(usize::from(receive_maximum.unwrap_or(u16::MAX)))
}

fn ping_interval(keep_alive: u16) -> Duration {
    Duration::from_secs(u64::from(keep_alive)).mul_f64(0.5)
}
