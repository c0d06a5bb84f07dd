//! The connection of a client that has been let in.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use fieldline_codec::ReasonCode;
use fieldline_codec::session::{ServerSession, SessionState};
use fieldline_core::logging::LogGate;
use fieldline_core::partial_budget::BufferReservation;
use fieldline_core::ports::{AppendError, TopicRules};
use fieldline_core::rate_limits::RateLimiter;
use fieldline_event_loop::{NextTurn, Socket};
use tracing::{debug, warn};

use crate::authentication::ClientAuthentication;
use crate::broker::{Broker, PendingPublications};
use crate::hold::PublisherHold;
use crate::lifecycle::{ClientEnd, DueWills};
use crate::listener::ClientPermit;
use crate::message::BrokerMessage;
use crate::queue::DeliveryOptions;
use crate::session::BrokerSession;

static APPEND_GATE: LogGate = LogGate::new(2);
static PAGE_GATE: LogGate = LogGate::new(2);

/// How far a connection is in its cycle: it reads once, waits until what it has caused is durable, adds what waits for
/// its client, and writes everything, acknowledgements included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ClientPhase {
    /// It reads.
    Reading,
    /// It waits for its records.
    Committing,
    /// It waits until those have room who get what it publishes.
    Held,
    /// Its records are durable, or a page of its queue has been read.
    Delivering,
    /// It waits until the client reads.
    Writing,
    /// It has ended, and waits a moment until the client reads what it is told.
    Ending,
    /// Everything is written. What still arrives is thrown away: a socket closed before would take back what the client
    /// has not read yet, such as the reason.
    Draining,
}

impl ClientPhase {
    /// What a connection waits for that has nothing to do.
    pub(crate) const fn awaited(self) -> NextTurn {
        match self {
            Self::Reading | Self::Draining => NextTurn::Read,
            Self::Committing | Self::Held | Self::Delivering => NextTurn::Outcome,
            Self::Writing | Self::Ending => NextTurn::Write,
        }
    }
}

/// A step that waits for something else than the socket, and leaves the event loop.
pub(crate) enum ClientAwayStep {
    /// The journal is behind; the records wait until it accepts them.
    Append(Pin<Box<dyn Future<Output = Result<(), AppendError>> + Send>>),
    /// Messages of the queue are read from the store.
    LoadPage,
    /// The client proves again who it is: what it is known by is read.
    Authenticate,
}

/// A session that a connection has opened; dropping it closes the session.
pub(crate) struct OpenSession {
    pub(crate) broker: Arc<Broker>,
    pub(crate) session: Arc<BrokerSession>,
    pub(crate) epoch: u64,
    is_closed: bool,
}

impl OpenSession {
    pub(crate) const fn new(broker: Arc<Broker>, session: Arc<BrokerSession>, epoch: u64) -> Self {
        Self {
            broker,
            session,
            epoch,
            is_closed: false,
        }
    }

    /// What the connection begins with, unless another one has taken the session over.
    pub(crate) fn begin_connection(&self) -> Option<SessionState<()>> {
        let mut inner = self.session.lock();
        if !inner.belongs_to(self.epoch) {
            return None;
        }
        let in_flight = inner.queue.begin_connection();
        let unreleased = inner.unreleased.iter().map(|message| message.id).collect();
        Some(SessionState::new(in_flight, unreleased))
    }

    /// Closes the session, and lets its will be published.
    pub(crate) fn close(&mut self, end: ClientEnd) {
        if !std::mem::replace(&mut self.is_closed, true) {
            let mut due = DueWills::new(self.broker.clone());
            self.broker.close(&self.session, self.epoch, end, &mut due.wills);
        }
    }
}

impl Drop for OpenSession {
    fn drop(&mut self) {
        self.close(ClientEnd {
            publishes_will: true,
            expiry_s: None,
        });
    }
}

/// Retained messages that wait for a client with new subscriptions. All clients together have a limited number.
pub(crate) struct RetainedBacklog {
    broker: Arc<Broker>,
    messages: VecDeque<(Arc<BrokerMessage>, DeliveryOptions)>,
}

impl RetainedBacklog {
    pub(crate) const fn new(broker: Arc<Broker>) -> Self {
        Self {
            broker,
            messages: VecDeque::new(),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    /// Adds a message; returns whether there was room.
    pub(crate) fn push(&mut self, message: Arc<BrokerMessage>, options: DeliveryOptions) -> bool {
        // Those of a client's filters, of which two may match the same topics; and of two such clients.
        let most = self.broker.options.max_retained.saturating_mul(2);
        let limit = most.saturating_mul(2);
        if self.messages.len() >= most {
            return false;
        }
        if self.broker.backlog.fetch_add(1, Ordering::Relaxed) >= limit {
            self.broker.backlog.fetch_sub(1, Ordering::Relaxed);
            return false;
        }
        self.messages.push_back((message, options));
        true
    }

    pub(crate) fn pop(&mut self) -> Option<(Arc<BrokerMessage>, DeliveryOptions)> {
        let next = self.messages.pop_front()?;
        self.broker.backlog.fetch_sub(1, Ordering::Relaxed);
        if self.messages.is_empty() {
            self.messages = VecDeque::new();
        }
        Some(next)
    }
}

impl Drop for RetainedBacklog {
    fn drop(&mut self) {
        self.broker
            .backlog
            .fetch_sub(self.messages.len(), Ordering::Relaxed);
    }
}

/// The connection of a client.
pub(crate) struct BrokerConnection {
    pub(crate) stream: Socket,
    // Declared after `stream`, so that the permit is returned after the stream was closed.
    pub(crate) _permit: ClientPermit,
    pub(crate) open: OpenSession,
    /// The topics of the client; `None` for all.
    pub(crate) rules: Option<Arc<dyn TopicRules>>,
    /// How it can prove again who it is, if it has done so by an exchange of messages.
    pub(crate) authentication: Option<Box<ClientAuthentication>>,
    /// How many messages the client may publish; `None` for any number.
    pub(crate) incoming: Option<Box<RateLimiter>>,
    pub(crate) mqtt: ServerSession<()>,
    /// The beginning of a packet of which the rest has not arrived.
    pub(crate) input: Vec<u8>,
    pub(crate) reservation: BufferReservation,
    pub(crate) out: Vec<u8>,
    /// Bytes of the output that were written already.
    pub(crate) written: usize,
    pub(crate) phase: ClientPhase,
    /// Whether `input` may hold a whole packet.
    pub(crate) has_input: bool,
    pub(crate) hold: PublisherHold,
    /// Messages of the last read that wait until they are durable.
    pub(crate) publications: PendingPublications,
    /// Retained messages for new subscriptions.
    pub(crate) backlog: RetainedBacklog,
    /// When the client was last heard, or has read something.
    pub(crate) active_ms: u64,
    /// When its silence is looked at next.
    pub(crate) watched: Option<Instant>,
    /// Whether its silence has lasted too long, unless it ends with this last look at the socket.
    pub(crate) is_last_look: bool,
    /// Whether it is new on its event loop, or was away.
    pub(crate) comes_back: bool,
    /// How it ends, once everything is written.
    pub(crate) end: Option<ClientEnd>,
    /// Whether the client is told something at the end, and is given time to read it.
    pub(crate) lingers: bool,
    pub(crate) away: Option<Box<ClientAwayStep>>,
}

impl BrokerConnection {
    /// Ends the connection with a reason that a client of MQTT 5 is told.
    pub(crate) fn refuse(&mut self, code: ReasonCode, why: &str) {
        debug!(client = %self.open.session.client_id, code = code.name(), why, "the broker ends a connection");
        self.mqtt.disconnect_with_reason(code, why, &mut self.out);
        self.lingers = true;
        self.end_as(true);
    }

    /// Ends the connection once everything is written.
    pub(crate) const fn end_as(&mut self, publishes_will: bool) {
        self.end = Some(ClientEnd {
            publishes_will,
            expiry_s: None,
        });
    }

    /// The client was heard, or has read something.
    pub(crate) const fn note_activity(&mut self, now_ms: u64) {
        self.active_ms = now_ms;
        self.is_last_look = false;
    }

    /// When the client has been silent for too long, milliseconds since its loop began; `None` without keep-alive.
    pub(crate) fn deadline_ms(&self) -> Option<u64> {
        self.mqtt.keep_alive().deadline_ms(self.active_ms)
    }

    /// Takes the step for which the connection has left its event loop.
    pub(crate) async fn take_away_step(&mut self) {
        let Some(step) = self.away.take() else { return };
        match *step {
            ClientAwayStep::Append(append) => {
                let outcome = append.await;
                self.settle(outcome);
            }
            ClientAwayStep::Authenticate => self.begin_exchange().await,
            ClientAwayStep::LoadPage => {
                let (broker, session) = (self.open.broker.clone(), self.open.session.clone());
                let loaded = tokio::task::spawn_blocking(move || broker.load_page(&session)).await;
                if !matches!(loaded, Ok(Ok(()))) {
                    if let Some(suppressed) = PAGE_GATE.open() {
                        warn!(client = %self.open.session.client_id, suppressed, "cannot read messages of a client from the broker's store");
                    }
                    self.refuse(
                        ReasonCode::ImplementationSpecificError,
                        "the store does not answer",
                    );
                }
            }
        }
        self.phase = ClientPhase::Delivering;
    }

    /// Goes on with the outcome of an append: if it has failed, nothing of the read is acknowledged.
    pub(crate) fn settle(&mut self, outcome: Result<(), AppendError>) {
        self.publications.settle(outcome.is_ok());
        if let Err(error) = outcome {
            if let Some(suppressed) = APPEND_GATE.open() {
                warn!(client = %self.open.session.client_id, %error, suppressed, "messages of a client were not taken, its connection ends");
            }
            self.out.clear();
            self.written = 0;
            self.refuse(
                ReasonCode::ImplementationSpecificError,
                "the message was not stored",
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use fieldline_codec::QoS;

    use super::*;
    use crate::options::Options;
    use crate::testing::{BrokerFixture, message};

    #[test]
    fn retained_messages_that_wait_are_bounded_for_each_client_and_for_all() {
        let fixture = BrokerFixture::new(Options {
            max_retained: 3,
            ..Options::default()
        });
        let options = DeliveryOptions {
            qos: QoS::AtMostOnce,
            retain: true,
            subscription_ids: Box::new([]),
        };
        let one = message("a", b"1", QoS::AtMostOnce);
        let fill = |backlog: &mut RetainedBacklog| {
            (0..20)
                .filter(|_| backlog.push(one.clone(), options.clone()))
                .count()
        };
        let mut clients = [(); 3].map(|()| RetainedBacklog::new(fixture.broker.clone()));
        assert_eq!(clients.each_mut().map(fill), [6, 6, 0]);
        assert!(clients[0].pop().is_some());
        assert_eq!(fill(&mut clients[2]), 1);
    }
}
