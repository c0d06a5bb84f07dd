//! Runs the connections of an event loop: everything that does not wait for a store.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io::ErrorKind;
use std::task::Poll;
use std::time::Instant;

use fieldline_codec::ReasonCode;
use fieldline_core::pending_commits::PendingCommits;
use fieldline_core::ports::AppendError;
use fieldline_event_loop::{
    ConnectionAbsence, ConnectionDriver, ConnectionKey, ConnectionTurn, LoopHandle, NextTurn,
};
use fieldline_model::record::RecordBatch;
use mio::net::TcpStream;
use tokio::runtime::Handle;
use tracing::debug;

use super::connection::{AwayStep, ConnectionEnd, ConnectionPhase, MqttConnection};
use super::packet_handler::ReadOutcome;

/// Most bytes of one read.
const READ_BYTES: usize = 64 << 10;

/// A batch that one large message has grown beyond this size gives the memory back, bytes.
const BATCH_BYTES: usize = 256 << 10;

/// The driver of one event loop, with what its connections share for the time of a turn.
pub(super) struct MqttDriver {
    runtime: Handle,
    input: Box<[u8]>,
    batch: RecordBatch,
    commits: PendingCommits<ConnectionKey>,
    /// Connections that must have written a large message by then.
    deadlines: BinaryHeap<Reverse<(Instant, ConnectionKey)>>,
}

/// What became of something that a connection waited for.
pub(super) enum DriverOutcome {
    /// Its records.
    Append(Result<(), AppendError>),
    /// The time that a large message may take is over.
    Deadline,
}

type Turn<'a> = ConnectionTurn<'a, MqttConnection>;

impl MqttDriver {
    /// Creates the driver of a loop. What waits goes to tasks of the runtime.
    pub(super) fn new(handle: &LoopHandle<MqttConnection>, runtime: Handle) -> Self {
        Self {
            runtime,
            input: vec![0; READ_BYTES].into_boxed_slice(),
            batch: RecordBatch::new(),
            commits: PendingCommits::new(handle.waker()),
            deadlines: BinaryHeap::new(),
        }
    }

    /// Reads once, or goes on with kept input, and appends the records to the journal.
    fn read(&mut self, connection: &mut MqttConnection, turn: &mut Turn<'_>) -> NextTurn {
        self.batch.clear();
        connection.records = 0;
        if std::mem::take(&mut connection.pending) {
            connection.step = connection.handler.resume(&connection.shared, &mut self.batch);
        } else if turn.readiness.readable {
            match connection.stream.read(&mut self.input) {
                Ok(0) => return end(connection, ConnectionEnd::Peer),
                Ok(length) => {
                    // A short read has emptied the socket.
                    if length < self.input.len() && !turn.readiness.ended && !connection.stream.is_layered() {
                        turn.readiness.readable = false;
                    }
                    self.receive(connection, length);
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    turn.readiness.readable = false;
                    return self.deliver_only(connection, turn);
                }
                Err(_) => return end(connection, ConnectionEnd::Peer),
            }
        } else {
            return self.deliver_only(connection, turn);
        }
        let next = self.append(connection, turn);
        self.batch.shrink_to(BATCH_BYTES);
        next
    }

    /// Handles input. If the device is stale, the input is kept until its current settings are loaded.
    fn receive(&mut self, connection: &mut MqttConnection, length: usize) {
        let input = self.input.get(..length).unwrap_or_default();
        connection.step = if connection.handler.device().is_stale() {
            connection.handler.buffer_input(input);
            connection.pending = true;
            ReadOutcome::Continue
        } else {
            connection
                .handler
                .receive(&connection.shared, input, &mut self.batch)
        };
    }

    /// Sends queued messages where nothing was read. That does not prove that the device is there.
    fn deliver_only(&mut self, connection: &mut MqttConnection, turn: &mut Turn<'_>) -> NextTurn {
        if !connection.handler.can_deliver() {
            return NextTurn::Read;
        }
        connection.step = ReadOutcome::Continue;
        connection.handler.follow_subscriptions(&connection.shared);
        self.reply(connection, turn)
    }

    /// Appends the records of a read, and waits for them if the device expects an answer.
    fn append(&mut self, connection: &mut MqttConnection, turn: &mut Turn<'_>) -> NextTurn {
        let handler = &mut connection.handler;
        handler.follow_subscriptions(&connection.shared);
        if self.batch.is_empty() {
            return self.committed(connection, turn);
        }
        let (records, points) = (self.batch.count(), self.batch.points());
        connection.records = records;
        let (producer, subject) = (&connection.shared.services.producer, handler.device().subject);
        let queue = handler.settings.queue.as_deref();
        let routed = queue.map(|queue| producer.queue_for(subject.tenant, Some(queue)));
        let producer = routed.as_deref().unwrap_or(producer);
        let outcome = match producer.try_append(subject, &self.batch) {
            Ok(append) => {
                handler.device().count_sent(records, points);
                if handler.has_answers() {
                    self.commits.add(append, turn.key)
                } else {
                    Poll::Ready(Ok(()))
                }
            }
            Err(AppendError::Busy | AppendError::TooLarge { .. }) => {
                handler.device().count_sent(records, points);
                let (producer, batch) = (producer.clone(), std::mem::take(&mut self.batch));
                let append = Box::pin(async move { producer.append(subject, &batch).await });
                return leave(connection, AwayStep::Append(append));
            }
            Err(error) => Poll::Ready(Err(error)),
        };
        match outcome {
            Poll::Ready(outcome) => self.settle(connection, outcome, turn),
            Poll::Pending => {
                connection.suspend_keep_alive();
                connection.phase = ConnectionPhase::Committing;
                NextTurn::Outcome
            }
        }
    }

    /// Goes on with the outcome of an append.
    fn settle(
        &mut self,
        connection: &mut MqttConnection,
        outcome: Result<(), AppendError>,
        turn: &mut Turn<'_>,
    ) -> NextTurn {
        match connection.count(outcome) {
            Ok(()) => self.committed(connection, turn),
            Err(ended) => end(connection, ended),
        }
    }

    /// Goes on when the records of a read are durable.
    fn committed(&mut self, connection: &mut MqttConnection, turn: &mut Turn<'_>) -> NextTurn {
        connection.mark_heard();
        match std::mem::replace(&mut connection.step, ReadOutcome::Continue) {
            ReadOutcome::Answer(question) => {
                connection.pending = true;
                leave(connection, AwayStep::Answer(question))
            }
            step => {
                connection.step = step;
                self.reply(connection, turn)
            }
        }
    }

    /// Adds queued messages for the device to the output, and writes it.
    fn reply(&mut self, connection: &mut MqttConnection, turn: &mut Turn<'_>) -> NextTurn {
        let handler = &mut connection.handler;
        if handler.can_deliver() {
            handler.deliver(&connection.shared);
        }
        if let Some(patience) = handler.cold.time_to_write() {
            let deadline = Instant::now() + patience;
            connection.write_deadline = Some(Box::new(deadline));
            // Nothing is read from the device meanwhile.
            connection.suspend_keep_alive();
        }
        self.write(connection, turn)
    }

    /// Writes the output. A peer that does not read keeps only itself waiting.
    fn write(&mut self, connection: &mut MqttConnection, turn: &mut Turn<'_>) -> NextTurn {
        if connection.handler.has_answers() {
            let written = connection
                .stream
                .write_all(&connection.handler.out, &mut connection.written);
            match written {
                Ok(()) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    if let Some(deadline) = &connection.write_deadline
                        && connection.phase != ConnectionPhase::Writing
                    {
                        self.deadlines.push(Reverse((**deadline, turn.key)));
                    }
                    connection.phase = ConnectionPhase::Writing;
                    return NextTurn::Write;
                }
                Err(_) => return end(connection, ConnectionEnd::Peer),
            }
            connection.handler.clear_out();
            connection.written = 0;
        }
        if connection.write_deadline.take().is_some() {
            connection.mark_heard();
        }
        self.finish_cycle(connection, turn)
    }

    /// Ends the connection if the last read said so, or begins the next cycle.
    fn finish_cycle(&mut self, connection: &mut MqttConnection, turn: &mut Turn<'_>) -> NextTurn {
        match connection.step {
            ReadOutcome::End(None) => return end(connection, ConnectionEnd::Peer),
            ReadOutcome::End(Some(code)) => return end(connection, ConnectionEnd::Server(code)),
            ReadOutcome::Continue | ReadOutcome::Answer(_) => {}
        }
        connection.phase = ConnectionPhase::Reading;
        if connection.handler.device().is_stale() {
            return leave(connection, AwayStep::Refresh);
        }
        if connection.pending || turn.readiness.readable || connection.handler.can_deliver() {
            NextTurn::Others
        } else {
            NextTurn::Read
        }
    }

    /// Asks to be woken again, and ends a connection that the platform has closed.
    fn look_up(connection: &mut MqttConnection, turn: &mut Turn<'_>) -> Option<NextTurn> {
        turn.readiness.woken = false;
        // Registered before the look, so that nothing falls between them.
        let control = connection.handler.guard.control();
        let _ = control.poll_close(&turn.waker());
        if let Some(ended) = connection.end.or_else(|| connection.closed()) {
            let ended = match connection.phase {
                ConnectionPhase::Writing => connection.cut_off(ended),
                _ => ended,
            };
            return Some(end(connection, ended));
        }
        None
    }
}

impl ConnectionDriver for MqttDriver {
    type Connection = MqttConnection;
    type Outcome = DriverOutcome;

    fn socket(connection: &mut MqttConnection) -> &mut TcpStream {
        connection.stream.stream()
    }

    fn turn(&mut self, connection: &mut MqttConnection, turn: &mut Turn<'_>) -> NextTurn {
        if turn.readiness.woken
            && let Some(ended) = Self::look_up(connection, turn)
        {
            return ended;
        }
        match connection.phase {
            ConnectionPhase::Reading => self.read(connection, turn),
            ConnectionPhase::Committing => NextTurn::Outcome,
            ConnectionPhase::Committed => self.committed(connection, turn),
            ConnectionPhase::Answered => self.reply(connection, turn),
            ConnectionPhase::Writing => self.write(connection, turn),
        }
    }

    fn resume(
        &mut self,
        connection: &mut MqttConnection,
        outcome: DriverOutcome,
        turn: &mut Turn<'_>,
    ) -> NextTurn {
        match (outcome, connection.phase) {
            (DriverOutcome::Append(outcome), ConnectionPhase::Committing) => {
                self.settle(connection, outcome, turn)
            }
            (DriverOutcome::Deadline, ConnectionPhase::Writing)
                if connection
                    .write_deadline
                    .as_ref()
                    .is_some_and(|deadline| **deadline <= Instant::now()) =>
            {
                debug!(device = %connection.handler.device().id, "a large message is read too slowly");
                let ended = connection.cut_off(ConnectionEnd::Server(ReasonCode::QuotaExceeded));
                end(connection, ended)
            }
            // It is about something that is over.
            _ => self.turn(connection, turn),
        }
    }

    fn collect(&mut self, now: Instant, outcomes: &mut Vec<(ConnectionKey, DriverOutcome)>) {
        self.commits
            .collect(|key, outcome| outcomes.push((key, DriverOutcome::Append(outcome))));
        while let Some(&Reverse((due, key))) = self.deadlines.peek()
            && due <= now
        {
            self.deadlines.pop();
            outcomes.push((key, DriverOutcome::Deadline));
        }
    }

    fn next_due(&self) -> Option<Instant> {
        self.deadlines.peek().map(|Reverse((due, _))| *due)
    }

    fn detach(&mut self, mut connection: Box<MqttConnection>, absence: ConnectionAbsence<MqttConnection>) {
        self.runtime.spawn(async move {
            connection.take_away_step().await;
            absence.end(connection);
        });
    }

    fn close(&mut self, connection: Box<MqttConnection>) {
        connection.close();
    }
}

fn end(connection: &mut MqttConnection, ended: ConnectionEnd) -> NextTurn {
    connection.end = Some(ended);
    NextTurn::Close
}

/// Lets another thread take a step. While the server keeps the device waiting, the device's silence does not count.
fn leave(connection: &mut MqttConnection, step: AwayStep) -> NextTurn {
    connection.suspend_keep_alive();
    connection.away = Some(Box::new(step));
    NextTurn::Leave
}
