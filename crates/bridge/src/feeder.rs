//! Feeds messages of the broker to something that is no client of MQTT.

use std::collections::{HashMap, VecDeque};
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use fieldline_core::logging::LogGate;
use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use tokio::sync::watch;
use tracing::warn;

use crate::carrier::{CarrierCounts, CarrierReport, stopped};
use crate::leg::{BridgeLeg, LegEvent, OutgoingMessage, ReceivedId, TICK};
use crate::retries::{ATTEMPTS, MessageRetries, RefusalCause, RetryPolicy};
use crate::sinks::{MessageSink, SinkFailure};

static FAILED_GATE: LogGate = LogGate::new(2);

/// Most messages of QoS 0 that are under way; further ones are dropped.
const MAX_UNACKNOWLEDGED: usize = 1_000;
/// From so many bytes of messages that are under way, no further ones are read.
const MAX_BYTES: usize = 64 << 20;

/// A connection of the broker with what takes its messages.
pub(crate) struct Feeder<'a> {
    name: &'a str,
    local: BridgeLeg,
    sink: Arc<MessageSink>,
    report: &'a mut CarrierReport<'a>,
    counts: CarrierCounts,
    attempts: FuturesUnordered<SinkAttempt>,
    /// What waits for its turn, by topics. A topic is here while one of its messages has the turn.
    turns: HashMap<String, VecDeque<Delivery>>,
    policy: RetryPolicy,
    /// Messages of QoS 0 that are under way.
    unacknowledged: usize,
    /// Memory of all that is under way, bytes.
    bytes: usize,
    /// Whether the other side had an answer to the last attempt.
    is_up: bool,
}

/// A message on its way.
struct Delivery {
    message: OutgoingMessage,
    received: Option<ReceivedId>,
    retries: MessageRetries,
    /// Whether the next one of its topic waits for it.
    has_turn: bool,
}

type SinkAttempt = Pin<Box<dyn Future<Output = (Delivery, Result<(), SinkFailure>)> + Send>>;

impl<'a> Feeder<'a> {
    /// Feeds a sink from a connection that has subscribed to what it gets.
    pub(crate) fn new(
        name: &'a str,
        local: BridgeLeg,
        sink: Arc<MessageSink>,
        report: &'a mut CarrierReport<'a>,
    ) -> Self {
        Self {
            name,
            local,
            sink,
            report,
            counts: CarrierCounts::default(),
            attempts: FuturesUnordered::new(),
            turns: HashMap::new(),
            policy: RetryPolicy::default(),
            unacknowledged: 0,
            bytes: 0,
            is_up: true,
        }
    }

    /// Feeds until the broker ends the connection, or the bridge is stopped.
    ///
    /// # Errors
    /// What has happened to the connection.
    pub(crate) async fn run(mut self, stop: &mut watch::Receiver<bool>) -> io::Result<()> {
        let fed = self.feed_until(stop).await;
        (self.report)(&mut self.counts, false);
        if fed.is_ok() {
            self.local.leave().await;
        }
        fed
    }

    async fn feed_until(&mut self, stop: &mut watch::Receiver<bool>) -> io::Result<()> {
        let mut ticks = tokio::time::interval(TICK);
        loop {
            while let Some(event) = self.local.next_event()? {
                if let LegEvent::Received(message, received) = event {
                    self.take(message, received);
                }
            }
            let has_room = self.bytes < MAX_BYTES;
            tokio::select! {
                moved = self.local.transfer(has_room) => moved?,
                Some((delivery, outcome)) = self.attempts.next() => self.settle(delivery, outcome)?,
                _ = ticks.tick() => {
                    self.local.keep_alive()?;
                    (self.report)(&mut self.counts, self.is_up);
                }
                () = stopped(stop) => return Ok(()),
            }
        }
    }

    fn take(&mut self, message: OutgoingMessage, received: Option<ReceivedId>) {
        if received.is_none() {
            if self.unacknowledged >= MAX_UNACKNOWLEDGED {
                self.counts.refused += 1;
                return;
            }
            self.unacknowledged += 1;
        }
        self.bytes += message.memory();
        let delivery = Delivery {
            received,
            retries: self.policy.first(&message.topic),
            message,
            has_turn: true,
        };
        match self.turns.get_mut(&delivery.message.topic) {
            Some(waiting) => waiting.push_back(delivery),
            None => {
                self.turns.insert(delivery.message.topic.clone(), VecDeque::new());
                self.attempt(delivery, Duration::ZERO);
            }
        }
    }

    fn attempt(&self, delivery: Delivery, pause: Duration) {
        let sink = self.sink.clone();
        self.attempts.push(Box::pin(async move {
            if !pause.is_zero() {
                tokio::time::sleep(pause).await;
            }
            let outcome = sink.send(&delivery.message).await;
            (delivery, outcome)
        }));
    }

    fn settle(&mut self, mut delivery: Delivery, outcome: Result<(), SinkFailure>) -> io::Result<()> {
        let topic = &delivery.message.topic;
        let pause = match outcome {
            Ok(()) => {
                self.is_up = true;
                self.policy.note_taken(topic);
                self.counts.outgoing += 1;
                return self.finish(delivery);
            }
            Err(failure) => {
                if let Some(suppressed) = FAILED_GATE.open() {
                    let (bridge, error) = (self.name, failure.reason());
                    warn!(
                        bridge,
                        topic, error, suppressed, "a message of a bridge is not taken"
                    );
                }
                match failure {
                    SinkFailure::Unsendable(_) => None,
                    SinkFailure::Failed(cause, _) => {
                        self.is_up = !matches!(cause, RefusalCause::Side | RefusalCause::Busy);
                        delivery
                            .received
                            .and_then(|_| self.policy.pause(topic, &mut delivery.retries, cause))
                    }
                }
            }
        };
        let Some(pause) = pause else {
            self.counts.refused += 1;
            return self.finish(delivery);
        };
        if delivery.retries.attempts >= ATTEMPTS && std::mem::take(&mut delivery.has_turn) {
            // The next one of its topic shows whether it is the message.
            self.pass_turn(&delivery.message.topic);
        }
        self.attempt(delivery, pause);
        Ok(())
    }

    /// Nothing more is done for a message. They are acknowledged in any order, which this broker takes.
    fn finish(&mut self, delivery: Delivery) -> io::Result<()> {
        self.bytes -= delivery.message.memory();
        if delivery.has_turn {
            self.pass_turn(&delivery.message.topic);
        }
        match delivery.received {
            Some(received) => self.local.acknowledge(received)?,
            None => self.unacknowledged -= 1,
        }
        Ok(())
    }

    fn pass_turn(&mut self, topic: &str) {
        match self.turns.get_mut(topic).and_then(VecDeque::pop_front) {
            Some(next) => self.attempt(next, Duration::ZERO),
            None => {
                self.turns.remove(topic);
            }
        }
    }
}
