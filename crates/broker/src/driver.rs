//! Runs the connections of an event loop.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io::ErrorKind;
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};

use fieldline_codec::{MqttPropertyBuf, ReasonCode};
use fieldline_core::pending_commits::PendingCommits;
use fieldline_core::ports::AppendError;
use fieldline_event_loop::{
    ConnectionAbsence, ConnectionDriver, ConnectionKey, ConnectionTurn, LoopHandle, NextTurn,
};
use fieldline_model::record::RecordBatch;
use mio::net::TcpStream;
use tokio::runtime::Handle;

use crate::broker::Broker;
use crate::connection::{BrokerConnection, ClientAwayStep, ClientPhase};
use crate::packets::BATCH_BYTES;
use crate::session::SessionMember;
use crate::subscriptions::TopicMatches;

/// Most bytes of one read.
const READ_BYTES: usize = 64 << 10;
/// Output from which on nothing is added before it is written, bytes.
pub(crate) const OUT_BYTES: usize = 64 << 10;
/// A buffer that one large message has grown beyond this size gives the memory back, bytes.
const KEPT_BYTES: usize = 256 << 10;

/// Buffers that are kept for the outputs of the next turns, and the size of the largest of them.
const SPARE_BUFFERS: usize = 1_024;
const SPARE_BYTES: usize = 4 << 10;
/// How long a client that was told something at the end has to read it.
const LINGER: Duration = Duration::from_secs(2);

/// What the turns of a loop share.
pub(crate) struct TurnBuffers {
    /// Records of this turn.
    pub(crate) batch: RecordBatch,
    /// Whether somebody waits until they are durable.
    pub(crate) is_awaited: bool,
    pub(crate) found: TopicMatches<SessionMember>,
    /// Whether these are the subscribers of the packet at hand already.
    pub(crate) has_found: bool,
    /// Whether a packet of this turn need not wait for room.
    pub(crate) has_passed: bool,
    pub(crate) scratch: Vec<u8>,
    pub(crate) properties: MqttPropertyBuf,
    /// Milliseconds since the loop began.
    pub(crate) now_ms: u64,
}

/// The driver of one event loop.
pub(crate) struct BrokerDriver {
    broker: Arc<Broker>,
    runtime: Handle,
    started: Instant,
    input: Box<[u8]>,
    buffers: TurnBuffers,
    commits: PendingCommits<ConnectionKey>,
    /// Buffers for the outputs of the next turns.
    spare: Vec<Vec<u8>>,
    /// When connections are looked at that may have been silent for too long.
    watched: BinaryHeap<Reverse<(Instant, ConnectionKey)>>,
    /// When connections are looked at whose messages wait for room.
    held: BinaryHeap<Reverse<(Instant, ConnectionKey)>>,
}

/// What became of something that a connection waited for.
pub(crate) enum ClientOutcome {
    /// Its records.
    Append(Result<(), AppendError>),
    /// The time of which it was watched.
    Silence(Instant),
    /// A message has waited as long as it may, until then.
    HoldOver(Instant),
}

type Turn<'a> = ConnectionTurn<'a, BrokerConnection>;

impl BrokerDriver {
    /// Creates the driver of a loop. What waits goes to tasks of the runtime.
    pub(crate) fn new(broker: Arc<Broker>, handle: &LoopHandle<BrokerConnection>, runtime: Handle) -> Self {
        Self {
            broker,
            runtime,
            started: Instant::now(),
            input: vec![0; READ_BYTES].into_boxed_slice(),
            buffers: TurnBuffers {
                batch: RecordBatch::new(),
                is_awaited: false,
                found: TopicMatches::default(),
                has_found: false,
                has_passed: false,
                scratch: Vec::new(),
                properties: MqttPropertyBuf::new(),
                now_ms: 0,
            },
            commits: PendingCommits::new(handle.waker()),
            spare: Vec::new(),
            watched: BinaryHeap::new(),
            held: BinaryHeap::new(),
        }
    }

    fn read(&mut self, connection: &mut BrokerConnection, turn: &mut Turn<'_>) -> NextTurn {
        self.buffers.batch.clear();
        self.buffers.is_awaited = false;
        if std::mem::take(&mut connection.has_input) {
            receive_kept(connection, &mut self.buffers, turn);
        } else if turn.readiness.readable {
            match connection.stream.read(&mut self.input) {
                Ok(0) => return close(connection),
                Ok(length) => {
                    // A short read has emptied the socket.
                    if length < self.input.len() && !turn.readiness.ended && !connection.stream.is_layered() {
                        turn.readiness.readable = false;
                    }
                    connection.note_activity(self.buffers.now_ms);
                    let bytes = self.input.get(..length).unwrap_or_default();
                    if connection.input.is_empty() {
                        let used = connection.receive(bytes, &mut self.buffers, turn);
                        let rest = bytes.get(used..).unwrap_or_default();
                        connection.input.extend_from_slice(rest);
                        keep_rest(connection, &self.buffers);
                    } else {
                        connection.input.extend_from_slice(bytes);
                        receive_kept(connection, &mut self.buffers, turn);
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => turn.readiness.readable = false,
                Err(_) => return close(connection),
            }
        }
        let next = self.append(connection, turn);
        self.buffers.batch.shrink_to(KEPT_BYTES);
        next
    }

    fn append(&mut self, connection: &mut BrokerConnection, turn: &mut Turn<'_>) -> NextTurn {
        if self.buffers.batch.is_empty() {
            return self.deliver(connection, turn);
        }
        connection.publications.begin_append();
        match self.broker.append(&self.buffers.batch) {
            Ok(append) if self.buffers.is_awaited => match self.commits.add(append, turn.key) {
                Poll::Ready(outcome) => connection.settle(outcome),
                Poll::Pending => {
                    connection.phase = ClientPhase::Committing;
                    return NextTurn::Outcome;
                }
            },
            // A retained message of QoS 0: nobody waits for it.
            Ok(_) => connection.settle(Ok(())),
            Err(AppendError::Busy) => {
                let (broker, batch) = (self.broker.clone(), std::mem::take(&mut self.buffers.batch));
                let append = Box::pin(async move { broker.append_durably(&batch).await });
                return leave(connection, ClientAwayStep::Append(append));
            }
            Err(error) => connection.settle(Err(error)),
        }
        self.deliver(connection, turn)
    }

    /// Adds what waits for the client to the output, and writes it.
    fn deliver(&mut self, connection: &mut BrokerConnection, turn: &mut Turn<'_>) -> NextTurn {
        if connection.end.is_none() {
            let authentication = connection.authentication.as_ref();
            if authentication.is_some_and(|authentication| authentication.has_begun()) {
                return leave(connection, ClientAwayStep::Authenticate);
            }
            if connection.deliver(&mut self.buffers) {
                return leave(connection, ClientAwayStep::LoadPage);
            }
        }
        self.write(connection, turn)
    }

    /// Writes the output. A client that does not read keeps only itself waiting.
    fn write(&mut self, connection: &mut BrokerConnection, turn: &mut Turn<'_>) -> NextTurn {
        if !connection.out.is_empty() {
            let before = connection.written;
            let written = connection
                .stream
                .write_all(&connection.out, &mut connection.written);
            if connection.written > before && connection.phase == ClientPhase::Writing {
                // Nothing is read from a client that the broker waits for, so that what it says cannot count.
                connection.note_activity(self.buffers.now_ms);
            }
            match written {
                Ok(()) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    if connection.end.is_none() {
                        connection.phase = ClientPhase::Writing;
                    } else if connection.phase != ClientPhase::Ending {
                        connection.phase = ClientPhase::Ending;
                        self.linger(connection, turn.key);
                    }
                    return NextTurn::Write;
                }
                Err(_) => return close(connection),
            }
            connection.written = 0;
        }
        if connection.out.capacity() > 0 {
            self.keep_spare(&mut connection.out);
        }
        if connection.end.is_some() {
            return self.finish(connection, turn);
        }
        let is_held = std::mem::take(&mut connection.hold.is_held) && !connection.hold.is_woken;
        // What was sent meanwhile has to be acknowledged, for which the client is read.
        if is_held && connection.open.session.lock().queue.is_empty() {
            return self.hold(connection, turn.key);
        }
        connection.phase = ClientPhase::Reading;
        if connection.has_input || turn.readiness.readable || connection.has_more() {
            NextTurn::Others
        } else {
            NextTurn::Read
        }
    }

    /// Lets a connection wait until those have room who get what it publishes, or for so long as the settings say.
    fn hold(&mut self, connection: &mut BrokerConnection, key: ConnectionKey) -> NextTurn {
        let now = Instant::now();
        let until = connection.hold.since().unwrap_or(now) + self.broker.options.publisher_wait.0;
        if until <= now {
            connection.phase = ClientPhase::Reading;
            return NextTurn::Others;
        }
        connection.phase = ClientPhase::Held;
        if connection.hold.timer.replace(until) != Some(until) {
            self.held.push(Reverse((until, key)));
        }
        NextTurn::Outcome
    }

    /// Takes the buffer of an output that was written: a connection that has nothing to write needs none.
    fn keep_spare(&mut self, out: &mut Vec<u8>) {
        let mut buffer = std::mem::take(out);
        buffer.clear();
        if self.spare.len() < SPARE_BUFFERS && (1..=SPARE_BYTES).contains(&buffer.capacity()) {
            self.spare.push(buffer);
        }
    }

    /// Closes the session of a connection that has ended, and the connection once its client has read what it was told.
    fn finish(&mut self, connection: &mut BrokerConnection, turn: &mut Turn<'_>) -> NextTurn {
        Self::close_session(connection);
        if !connection.lingers {
            return NextTurn::Close;
        }
        connection.stream.shut_down();
        connection.phase = ClientPhase::Draining;
        self.linger(connection, turn.key);
        self.drain(connection, turn)
    }

    /// Gives a client that is told something at the end a moment to read it.
    fn linger(&mut self, connection: &mut BrokerConnection, key: ConnectionKey) {
        let at = Instant::now() + LINGER;
        connection.watched = Some(at);
        self.watched.push(Reverse((at, key)));
    }

    fn drain(&mut self, connection: &mut BrokerConnection, turn: &mut Turn<'_>) -> NextTurn {
        match connection.stream.read(&mut self.input) {
            Ok(1..) => NextTurn::Others,
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                turn.readiness.readable = false;
                NextTurn::Read
            }
            Ok(0) | Err(_) => NextTurn::Close,
        }
    }

    fn close_session(connection: &mut BrokerConnection) {
        if let Some(end) = connection.end {
            connection.open.close(end);
        }
    }

    /// Looks whether the connection has to end, and asks to be woken again.
    fn look_up(connection: &mut BrokerConnection, turn: &mut Turn<'_>) {
        turn.readiness.woken = false;
        let close = {
            let mut inner = connection.open.session.lock();
            match &mut inner.link {
                Some(link) if link.epoch == connection.open.epoch => {
                    link.waker.get_or_insert_with(|| turn.waker());
                    link.close
                }
                _ => Some(ReasonCode::SessionTakenOver),
            }
        };
        if let Some(code) = close
            && connection.end.is_none()
        {
            if connection.written == 0 {
                connection.out.clear();
                connection.refuse(code, code.name());
            } else {
                // No packet can follow a part of one.
                connection.end_as(true);
            }
        }
    }

    fn watch(&mut self, connection: &mut BrokerConnection, key: ConnectionKey) {
        let deadline_ms = connection.deadline_ms();
        let at = self.started + Duration::from_millis(deadline_ms.unwrap_or(0));
        connection.watched = Some(at);
        if deadline_ms.is_some() {
            self.watched.push(Reverse((at, key)));
        }
    }
}

impl ConnectionDriver for BrokerDriver {
    type Connection = BrokerConnection;
    type Outcome = ClientOutcome;

    fn socket(connection: &mut BrokerConnection) -> &mut TcpStream {
        connection.stream.stream()
    }

    fn turn(&mut self, connection: &mut BrokerConnection, turn: &mut Turn<'_>) -> NextTurn {
        self.buffers.now_ms = self.started.elapsed().as_millis() as u64;
        if connection.phase == ClientPhase::Draining {
            return self.drain(connection, turn);
        }
        if std::mem::take(&mut connection.comes_back) {
            connection.note_activity(self.buffers.now_ms);
            // Where it is watched already, nothing is due yet.
            if connection.watched.is_none_or(|at| at <= Instant::now()) {
                self.watch(connection, turn.key);
            }
            turn.readiness.woken = true;
        }
        if connection.out.capacity() == 0
            && let Some(spare) = self.spare.pop()
        {
            connection.out = spare;
        }
        if turn.readiness.woken {
            connection.hold.is_woken = true;
            Self::look_up(connection, turn);
            let is_left_alone = matches!(connection.phase, ClientPhase::Committing | ClientPhase::Ending);
            if connection.end.is_some() && !is_left_alone {
                return match connection.written {
                    0 => self.write(connection, turn),
                    _ => NextTurn::Close,
                };
            }
        }
        match connection.phase {
            ClientPhase::Reading => self.read(connection, turn),
            ClientPhase::Committing => NextTurn::Outcome,
            ClientPhase::Held => {
                // It was not read meanwhile.
                connection.note_activity(self.buffers.now_ms);
                self.read(connection, turn)
            }
            ClientPhase::Delivering => self.deliver(connection, turn),
            ClientPhase::Writing | ClientPhase::Ending => self.write(connection, turn),
            ClientPhase::Draining => self.drain(connection, turn),
        }
    }

    fn resume(
        &mut self,
        connection: &mut BrokerConnection,
        outcome: ClientOutcome,
        turn: &mut Turn<'_>,
    ) -> NextTurn {
        self.buffers.now_ms = self.started.elapsed().as_millis() as u64;
        match outcome {
            ClientOutcome::Append(outcome) if connection.phase == ClientPhase::Committing => {
                connection.settle(outcome);
                self.deliver(connection, turn)
            }
            ClientOutcome::Silence(at) if connection.watched == Some(at) => {
                if connection.comes_back {
                    // It was away, and was not heard meanwhile.
                    return self.turn(connection, turn);
                }
                if matches!(connection.phase, ClientPhase::Draining | ClientPhase::Ending) {
                    return NextTurn::Close;
                }
                let is_unread = connection.has_input && connection.phase != ClientPhase::Writing;
                if is_unread || connection.phase == ClientPhase::Committing {
                    // The client waits for the broker.
                    connection.note_activity(self.buffers.now_ms);
                }
                let is_over = connection
                    .deadline_ms()
                    .is_some_and(|deadline_ms| deadline_ms <= self.buffers.now_ms);
                if is_over
                    && matches!(connection.phase, ClientPhase::Reading | ClientPhase::Writing)
                    && !std::mem::replace(&mut connection.is_last_look, true)
                {
                    // What has come while this process stood still counts.
                    turn.readiness.readable = true;
                    self.watch(connection, turn.key);
                    return self.turn(connection, turn);
                }
                if is_over {
                    if connection.written == 0 {
                        connection.refuse(ReasonCode::KeepAliveTimeout, "keep-alive");
                        return self.write(connection, turn);
                    }
                    return close(connection);
                }
                self.watch(connection, turn.key);
                self.turn(connection, turn)
            }
            ClientOutcome::HoldOver(at) if connection.hold.timer == Some(at) => {
                connection.hold.timer = None;
                self.turn(connection, turn)
            }
            // Most messages had room long before.
            ClientOutcome::HoldOver(_) => connection.phase.awaited(),
            // It is about something that is over.
            _ => self.turn(connection, turn),
        }
    }

    fn collect(&mut self, now: Instant, outcomes: &mut Vec<(ConnectionKey, ClientOutcome)>) {
        self.commits
            .collect(|key, outcome| outcomes.push((key, ClientOutcome::Append(outcome))));
        while let Some(&Reverse((at, key))) = self.watched.peek()
            && at <= now
        {
            self.watched.pop();
            outcomes.push((key, ClientOutcome::Silence(at)));
        }
        while let Some(&Reverse((at, key))) = self.held.peek()
            && at <= now
        {
            self.held.pop();
            outcomes.push((key, ClientOutcome::HoldOver(at)));
        }
    }

    fn next_due(&self) -> Option<Instant> {
        let timers = [self.watched.peek(), self.held.peek()];
        timers.into_iter().flatten().map(|Reverse((at, _))| *at).min()
    }

    fn detach(
        &mut self,
        mut connection: Box<BrokerConnection>,
        absence: ConnectionAbsence<BrokerConnection>,
    ) {
        connection.comes_back = true;
        self.runtime.spawn(async move {
            connection.take_away_step().await;
            absence.end(connection);
        });
    }

    fn close(&mut self, mut connection: Box<BrokerConnection>) {
        // One without an end is closed by being dropped, as that of a client that has vanished.
        Self::close_session(&mut connection);
        if connection.phase != ClientPhase::Draining {
            connection.stream.shut_down();
        }
    }
}

/// Handles the packets of what was kept, and keeps what is left.
fn receive_kept(connection: &mut BrokerConnection, buffers: &mut TurnBuffers, turn: &Turn<'_>) {
    let mut input = std::mem::take(&mut connection.input);
    let used = connection.receive(&input, buffers, turn);
    input.drain(..used);
    connection.input = input;
    keep_rest(connection, buffers);
}

/// Accounts for what is left of an input: the beginning of a packet, or packets that have to wait.
fn keep_rest(connection: &mut BrokerConnection, buffers: &TurnBuffers) {
    if connection.end.is_some() {
        connection.input.clear();
    }
    // What was left for the next turn may have whole packets.
    connection.has_input = !connection.input.is_empty()
        && (connection.hold.is_held || buffers.batch.as_bytes().len() >= BATCH_BYTES);
    let is_held = connection.hold.is_held;
    if connection.input.is_empty()
        || is_held
        || connection.input.capacity() > KEPT_BYTES.max(2 * connection.input.len())
    {
        connection.input.shrink_to_fit();
    }
    if !connection.reservation.resize(connection.input.capacity()) {
        connection.refuse(
            ReasonCode::QuotaExceeded,
            "too many packets of which a part has arrived",
        );
    }
}

/// Ends a connection at once: its client is gone.
const fn close(connection: &mut BrokerConnection) -> NextTurn {
    if connection.end.is_none() {
        connection.end_as(true);
    }
    NextTurn::Close
}

fn leave(connection: &mut BrokerConnection, step: ClientAwayStep) -> NextTurn {
    connection.away = Some(Box::new(step));
    NextTurn::Leave
}
