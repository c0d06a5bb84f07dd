//! The event loop of publishers and subscribers: one thread for all of their connections.

use std::collections::VecDeque;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::ops::Range;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use fieldline_codec::{MqttProtocolVersion, QoS};
use mio::{Events, Interest, Poll, Token};

use super::client::{ClientRole, ConnectionStage, PubSubClient, UnacknowledgedMessage};
use super::config::{PubSubConfig, PubSubMode};
use super::message::{MessageStamp, MessageTemplate, UNCOUNTED};
use super::packets;
use super::receipts::{NumberSet, ReceiptLedger};
use crate::engine::{ClientSocket, ClientTls, TimerFd};
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
/// Publishers of QoS 0 that send before events are looked at again.
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
    /// Messages are published.
    Publishing,
    /// What is on its way is waited for.
    Draining,
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
    run: u32,
    pub(super) epoch: Instant,
    /// When the load began, since the epoch.
    pub(super) began: Duration,
    pub(super) last_delivery: Option<Duration>,
    pub(super) counts: PubSubCounts,
    pub(super) delivery: LatencyRecorder,
    pub(super) acknowledgement: LatencyRecorder,
    pub(super) phase: RunPhase,
    /// Messages of the schedule that publishers were told of.
    scheduled: u64,
    /// Connections that are open or refused since connecting began.
    settled: usize,
    refusal: Option<String>,
    /// Connections that may have more to read.
    unread: VecDeque<usize>,
    /// Publishers that may send more.
    turns: VecDeque<usize>,
    redials: VecDeque<(Instant, usize)>,
    next_ping: Instant,
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
            settled: 0,
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
        self.settled = 0;
        let began = Instant::now();
        let (mut heard_of, mut known) = (began, 0);
        let mut opened = 0;
        let mut events = Events::with_capacity(EVENTS);
        while self.settled < which.len() {
            if self.settled != known {
                (known, heard_of) = (self.settled, Instant::now());
            }
            if heard_of.elapsed() > CONNECT_TIMEOUT {
                return Err(LoadError::Engine(format!(
                    "{known} of {} clients are connected and subscribed, and nothing was heard for {} s",
                    which.len(),
                    CONNECT_TIMEOUT.as_secs()
                )));
            }
            while opened - self.settled < self.config.opening.max(1)
                && let Some(index) = which.get(opened)
            {
                self.open(*index)
                    .map_err(|error| LoadError::Engine(format!("connection {opened}: {error}")))?;
                opened += 1;
            }
            self.wait(&mut events, Duration::from_millis(100))?;
            if let Some(reason) = self.refusal.take() {
                return Err(LoadError::Engine(reason));
            }
        }
        Ok(began.elapsed())
    }

    /// Begins to publish.
    pub(super) fn begin(&mut self) {
        self.phase = RunPhase::Publishing;
        self.began = self.epoch.elapsed();
        if self.is_closed_loop() {
            for index in self.publishers.clone() {
                self.fill(index);
            }
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

    /// Messages that were not acknowledged yet.
    pub(super) fn unacknowledged(&self) -> u64 {
        let publishers = self.clients.get(self.publishers.clone()).unwrap_or_default();
        publishers
            .iter()
            .map(|client| client.in_flight.len() as u64)
            .sum()
    }

    /// Messages that were acknowledged and have not arrived.
    pub(super) fn missing(&self) -> u64 {
        self.ledgers
            .iter()
            .map(|ledger| ledger.missing(&self.acknowledged))
            .sum()
    }

    /// Whether each publisher has published all that it is to publish.
    pub(super) fn has_published_all(&self) -> bool {
        let PubSubMode::Retained(each) = self.config.mode else {
            return false;
        };
        let publishers = self.clients.get(self.publishers.clone()).unwrap_or_default();
        publishers.iter().all(|client| client.next_number >= each)
    }

    /// Whether messages are sent as fast as they are acknowledged.
    pub(super) fn is_closed_loop(&self) -> bool {
        self.settings.in_flight.is_some() || matches!(self.config.mode, PubSubMode::Retained(_))
    }

    /// Closes connections in an orderly way.
    pub(super) fn disconnect(&mut self, which: Range<usize>) {
        self.output.clear();
        packets::put_disconnect(self.settings.version, &mut self.output);
        for client in self.clients.get_mut(which).unwrap_or_default() {
            if client.stage == ConnectionStage::Ready && client.out.is_empty() {
                // The connection is closed in any case.
                let _ = client.write(&self.output);
            }
            self.counts.failed += client.close();
        }
    }

    /// Sends so many messages of each publisher that are not counted.
    pub(super) fn send_uncounted(&mut self, each: u32) {
        for _ in 0..each {
            for index in self.publishers.clone() {
                self.output.clear();
                let Some(client) = self.clients.get_mut(index) else {
                    continue;
                };
                let stamp = MessageStamp {
                    run: self.run,
                    publisher: 0,
                    number: UNCOUNTED,
                    due_us: 0,
                };
                let qos = self.config.qos().0;
                let message = self.template.write(now_ms(), &stamp);
                let packet_id = client.take_packet_id();
                if qos != QoS::AtMostOnce {
                    client.in_flight.push_back(UnacknowledgedMessage {
                        packet_id,
                        number: UNCOUNTED,
                        due_us: 0,
                    });
                }
                let topic = &client.topic;
                packets::put_publish(
                    topic,
                    message,
                    qos,
                    packet_id,
                    false,
                    self.settings.version,
                    &mut self.output,
                );
                if let Err(reason) = client.write(&self.output) {
                    self.handle_loss(index, &reason);
                }
            }
        }
    }

    /// Clears what the publishers' topics retain.
    pub(super) fn clear_retained(&mut self, each: u32) {
        for index in self.publishers.clone() {
            self.output.clear();
            let Some(client) = self.clients.get_mut(index) else {
                continue;
            };
            for number in 0..each {
                let topic = retained_topic(&client.topic, number);
                packets::put_publish(
                    &topic,
                    b"",
                    QoS::AtMostOnce,
                    0,
                    true,
                    self.settings.version,
                    &mut self.output,
                );
            }
            if let Err(reason) = client.write(&self.output) {
                self.handle_loss(index, &reason);
            }
        }
    }

    /// Whether something waits to be written.
    pub(super) fn has_unwritten(&self) -> bool {
        self.clients.iter().any(|client| !client.out.is_empty())
    }

    fn open(&mut self, index: usize) -> std::io::Result<()> {
        let Some(client) = self.clients.get_mut(index) else {
            return Ok(());
        };
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
            if let Some(index) = self.unread.pop_front() {
                self.handle(index, false, true, false);
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
        }
        if matches!(self.phase, RunPhase::Connecting { .. }) {
            self.settled += 1;
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

    /// A message is acknowledged, or with QoS 0 written.
    pub(super) fn count_acknowledged(&mut self, publisher: u32, message: &UnacknowledgedMessage) {
        if message.number == UNCOUNTED {
            return;
        }
        self.counts.acknowledged += 1;
        let now = micros(self.epoch.elapsed());
        self.acknowledgement.record(now.saturating_sub(message.due_us));
        if let Some(set) = self.acknowledged.get_mut(publisher as usize) {
            set.insert(message.number);
        }
    }

    /// Sends what a publisher has to send and has room for, in one write.
    fn fill(&mut self, index: usize) {
        if self.phase != RunPhase::Publishing {
            return;
        }
        self.output.clear();
        let qos = self.config.qos().0;
        let (each, retain) = match self.config.mode {
            PubSubMode::Retained(each) => (each, true),
            PubSubMode::Live | PubSubMode::Offline => (u32::MAX - 1, false),
        };
        let is_closed_loop = self.is_closed_loop();
        let now = self.epoch.elapsed();
        let burst = self.settings.in_flight.map_or(1, usize::from);
        let Some(client) = self.clients.get_mut(index) else {
            return;
        };
        let ClientRole::Publisher(publisher) = client.role else {
            return;
        };
        let first = client.next_number;
        while client.has_room(qos)
            && client.next_number < each
            && (is_closed_loop || client.owed > 0)
            && !(qos == QoS::AtMostOnce && is_closed_loop && (client.next_number - first) as usize >= burst)
        {
            let number = client.next_number;
            client.next_number += 1;
            let due_us = if is_closed_loop {
                micros(now)
            } else {
                client.owed -= 1;
                micros(self.began) + due_us(self.config, publisher, number)
            };
            let stamp = MessageStamp {
                run: self.run,
                publisher,
                number,
                due_us,
            };
            let message = self.template.write(now_ms(), &stamp);
            let packet_id = client.take_packet_id();
            let topic = match retain {
                true => &retained_topic(&client.topic, number),
                false => &client.topic,
            };
            packets::put_publish(
                topic,
                message,
                qos,
                packet_id,
                retain,
                self.settings.version,
                &mut self.output,
            );
            client.in_flight.push_back(UnacknowledgedMessage {
                packet_id,
                number,
                due_us,
            });
        }
        if self.output.is_empty() {
            return;
        }
        self.counts.sent += u64::from(client.next_number - first);
        let written = client.write(&self.output);
        if qos == QoS::AtMostOnce {
            let sent = std::mem::take(&mut client.in_flight);
            if is_closed_loop && !client.is_queued && written.is_ok() {
                client.is_queued = true;
                self.turns.push_back(index);
            }
            for message in &sent {
                self.count_acknowledged(publisher, message);
            }
        }
        if let Err(reason) = written {
            self.handle_loss(index, &reason);
        }
    }

    /// Tells publishers of messages that are due; returns the time until the next one is.
    pub(super) fn schedule(&mut self) -> Duration {
        let publishers = self.publishers.len() as u64;
        if self.is_closed_loop() || publishers == 0 {
            return Duration::MAX;
        }
        let rate = self.config.rate * publishers as f64;
        let all = (self.config.seconds_to_run * rate).ceil() as u64;
        let elapsed = self.epoch.elapsed().saturating_sub(self.began);
        let due = ((elapsed.as_secs_f64() * rate) as u64 + 1).min(all);
        while self.scheduled < due {
            let index = self.publishers.start + (self.scheduled % publishers) as usize;
            self.scheduled += 1;
            if let Some(client) = self.clients.get_mut(index) {
                client.owed += 1;
            }
            self.fill(index);
        }
        if self.scheduled >= all {
            return Duration::MAX;
        }
        Duration::try_from_secs_f64(self.scheduled as f64 / rate)
            .unwrap_or(Duration::MAX)
            .saturating_sub(self.epoch.elapsed().saturating_sub(self.began))
    }

    /// Messages that were due and never sent.
    pub(super) fn unsent(&self) -> u64 {
        let publishers = self.clients.get(self.publishers.clone()).unwrap_or_default();
        publishers.iter().map(|client| u64::from(client.owed)).sum()
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
        if Instant::now() < self.next_ping || self.settings.keep_alive == 0 {
            return;
        }
        self.next_ping = Instant::now() + ping_interval(self.settings.keep_alive);
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
        let failed = client.close();
        match self.phase {
            RunPhase::Connecting { .. } => {
                let refusal = format!("client {} was not accepted: {reason}", client.id);
                self.refusal.get_or_insert(refusal);
            }
            RunPhase::Publishing | RunPhase::Draining => {
                self.counts.failed += failed;
                self.counts.lost_connections += u64::from(was_ready);
                self.redials.push_back((Instant::now() + REDIAL_AFTER, index));
            }
        }
    }
}

/// The clients of a load, subscribers first, then publishers, then those that do nothing; and the ledgers of the
/// subscribers.
fn clients_of(config: &PubSubConfig) -> (Vec<PubSubClient>, Vec<ReceiptLedger>) {
    let mut clients = Vec::with_capacity(config.clients() as usize);
    let mut ledgers = Vec::new();
    let mut first = 0;
    let numbers: Vec<(i32, Range<u32>)> = config
        .publisher_groups
        .iter()
        .map(|group| {
            let range = first..first + group.publishers;
            first = range.end;
            (group.id, range)
        })
        .collect();
    for group in &config.subscriber_groups {
        let expected = || {
            numbers
                .iter()
                .filter(|(id, _)| group.expected_publisher_groups.contains(id))
                .map(|(_, range)| range.clone())
        };
        for index in 0..group.subscribers {
            if index == 0 || !group.is_shared() {
                ledgers.push(ReceiptLedger::new(expected()));
            }
            let role = ClientRole::Subscriber {
                ledger: ledgers.len() as u32 - 1,
                is_persistent: group.persistent_session_info.is_some(),
            };
            let id = group.client_id(index);
            let filter = group.topic_filter.clone();
            clients.push(PubSubClient::new(role, id, filter, !group.are_applications()));
        }
    }
    let mut publisher = 0;
    for group in &config.publisher_groups {
        for index in 0..group.publishers {
            let role = ClientRole::Publisher(publisher);
            publisher += 1;
            clients.push(PubSubClient::new(
                role,
                group.client_id(index),
                group.topic(index),
                true,
            ));
        }
    }
    for index in 0..config.dummy_clients {
        let id = format!("test_dummy_client_{index}");
        clients.push(PubSubClient::new(ClientRole::Dummy, id, String::new(), true));
    }
    (clients, ledgers)
}

/// When a message is due, microseconds since the load began: publishers take turns.
fn due_us(config: &PubSubConfig, publisher: u32, number: u32) -> u64 {
    let publishers = config.publishers() as f64;
    let place = f64::from(number) * publishers + f64::from(publisher);
    (place / (publishers * config.rate) * 1e6) as u64
}

/// The topic of a message that is retained.
fn retained_topic(topic: &str, number: u32) -> String {
    format!("{topic}/{number}")
}

/// The window of a publisher: what the broker takes, and what the load asks for.
pub(super) fn window(settings: &ClientSettings, receive_maximum: Option<u16>) -> usize {
    let wanted = settings.in_flight.map_or(OPEN_WINDOW, usize::from);
    wanted.min(usize::from(receive_maximum.unwrap_or(u16::MAX)))
}

fn ping_interval(keep_alive: u16) -> Duration {
    Duration::from_secs(u64::from(keep_alive)).mul_f64(0.5)
}

fn now_ms() -> i64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_millis() as i64)
}

fn micros(time: Duration) -> u64 {
    time.as_micros() as u64
}
