//! Carries messages between two connections, as long as both are up.

use std::io;
use std::time::Duration;

use fieldline_codec::{QoS, ReasonCode, SubscriptionOptions};
use fieldline_core::logging::LogGate;
use tokio::sync::watch;
use tokio::time::Instant;
use tracing::warn;

use crate::leg::{BridgeLeg, CarriedMessage, LegEvent, MessageOrigin, OutgoingMessage, ReceivedId, TICK};
use crate::retries::{RefusalCause, RetryPolicy};

static REFUSED_GATE: LogGate = LogGate::new(2);

/// From so many messages, or bytes of them, that are sent again later, no further ones are read from the other side.
const MAX_DELAYED: usize = 1_000;
const MAX_DELAYED_BYTES: usize = 64 << 20;

/// A side of a bridge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    /// The broker of this program.
    Local,
    /// The other one.
    Remote,
}

impl Side {
    pub(crate) const fn other(self) -> Self {
        match self {
            Self::Local => Self::Remote,
            Self::Remote => Self::Local,
        }
    }

    /// Says in an error where it is from.
    fn named<T>(self, outcome: io::Result<T>) -> io::Result<T> {
        let name = match self {
            Self::Local => "this broker",
            Self::Remote => "the other side",
        };
        outcome.map_err(|error| io::Error::new(error.kind(), format!("{name}: {error}")))
    }
}

/// One of each side.
#[derive(Default)]
pub(crate) struct BothSides<T> {
    pub(crate) local: T,
    pub(crate) remote: T,
}

impl<T> BothSides<T> {
    const fn of(&mut self, side: Side) -> &mut T {
        match side {
            Side::Local => &mut self.local,
            Side::Remote => &mut self.remote,
        }
    }
}

/// What becomes of messages.
pub(crate) trait Translation: Send {
    /// What a side is asked for.
    fn filters(&self, side: Side) -> Vec<(String, SubscriptionOptions)>;

    /// The messages to send for one that a side has sent, in order. It is acknowledged with the last of them if that one is for
    /// the other side. If it is not, or if there are none, there is nothing to carry.
    fn translate(&mut self, from: Side, message: &OutgoingMessage) -> Vec<(Side, OutgoingMessage)>;

    /// A new pair of connections begins.
    fn begin(&mut self) {}

    /// The remote side has no room for a message, which is sent again later. Says whether the message is the reason.
    fn no_room_for(&mut self, _message: &OutgoingMessage) -> RefusalCause {
        RefusalCause::Side
    }
}

/// What a bridge has done.
#[derive(Default)]
pub(crate) struct CarrierCounts {
    /// Messages that the other side has taken.
    pub(crate) outgoing: u64,
    /// Messages of the other side that this broker has taken.
    pub(crate) incoming: u64,
    /// Messages that a side has refused, that could not be translated, or that were dropped.
    pub(crate) refused: u64,
}

/// Gets what a bridge has done since the last time, and whether it is up.
pub(crate) type CarrierReport<'a> = dyn FnMut(&mut CarrierCounts, bool) + Send + 'a;

/// Two connections with what is between them.
pub(crate) struct Carrier<'a> {
    name: &'a str,
    legs: BothSides<BridgeLeg>,
    translation: &'a mut dyn Translation,
    report: &'a mut CarrierReport<'a>,
    counts: CarrierCounts,
    /// What each side has not taken lately.
    policies: BothSides<RetryPolicy>,
    delayed: DelayedMessages,
}

/// Messages that a side had no room for.
#[derive(Default)]
struct DelayedMessages {
    messages: Vec<DelayedMessage>,
    /// Messages of the other side, and their memory in bytes.
    incoming: usize,
    incoming_bytes: usize,
}

struct DelayedMessage {
    due: Instant,
    from: Side,
    carried: Box<CarriedMessage>,
}

impl DelayedMessages {
    fn push(&mut self, pause: Duration, from: Side, carried: Box<CarriedMessage>) {
        if from == Side::Remote {
            self.incoming += 1;
            self.incoming_bytes += carried.message.memory();
        }
        let due = Instant::now() + pause;
        self.messages.push(DelayedMessage { due, from, carried });
    }

    /// Whether no more can be kept of what the other side sends. What this broker sends is bounded by the receive maximum.
    const fn is_full(&self) -> bool {
        self.incoming >= MAX_DELAYED || self.incoming_bytes >= MAX_DELAYED_BYTES
    }

    /// Takes those whose pause is over.
    fn due(&mut self) -> Vec<DelayedMessage> {
        let now = Instant::now();
        let due: Vec<_> = self.messages.extract_if(.., |one| one.due <= now).collect();
        for one in due.iter().filter(|one| one.from == Side::Remote) {
            self.incoming -= 1;
            self.incoming_bytes -= one.carried.message.memory();
        }
        due
    }
}

impl<'a> Carrier<'a> {
    /// Joins two connections. The local one has subscribed already.
    pub(crate) fn new(
        name: &'a str,
        legs: BothSides<BridgeLeg>,
        translation: &'a mut dyn Translation,
        report: &'a mut CarrierReport<'a>,
    ) -> Self {
        Self {
            name,
            legs,
            translation,
            report,
            counts: CarrierCounts::default(),
            policies: BothSides::default(),
            delayed: DelayedMessages::default(),
        }
    }

    /// Carries until a side ends, or the bridge is stopped.
    ///
    /// # Errors
    /// What has happened to a side.
    pub(crate) async fn run(mut self, stop: &mut watch::Receiver<bool>) -> io::Result<()> {
        let carried = self.carry_until(stop).await;
        (self.report)(&mut self.counts, false);
        if carried.is_ok() {
            tokio::join!(self.legs.local.leave(), self.legs.remote.leave());
        }
        carried
    }

    async fn carry_until(&mut self, stop: &mut watch::Receiver<bool>) -> io::Result<()> {
        self.translation.begin();
        let wanted = self.translation.filters(Side::Remote);
        self.legs.remote.subscribe(&wanted, &[])?;
        // The other side has a moment to refuse what it is asked for.
        let mut ticks = tokio::time::interval_at(Instant::now() + TICK, TICK);
        loop {
            // What one side has said may be for the other one.
            while self.take_events()? {}
            self.fill()?;
            // This broker is always read: what it acknowledges makes room, and it waits for acknowledgements itself.
            let has_room = !self.legs.local.is_full() && !self.delayed.is_full();
            tokio::select! {
                moved = self.legs.local.transfer(true) => Side::Local.named(moved)?,
                moved = self.legs.remote.transfer(has_room) => Side::Remote.named(moved)?,
                _ = ticks.tick() => {
                    Side::Local.named(self.legs.local.keep_alive())?;
                    Side::Remote.named(self.legs.remote.keep_alive())?;
                    self.send_delayed()?;
                    (self.report)(&mut self.counts, true);
                }
                () = stopped(stop) => return Ok(()),
            }
        }
    }

    /// Takes what has come from both sides; returns whether something has.
    fn take_events(&mut self) -> io::Result<bool> {
        let mut any = false;
        for side in [Side::Local, Side::Remote] {
            while let Some(event) = side.named(self.legs.of(side).next_event())? {
                any = true;
                match event {
                    LegEvent::Received(message, received) => self.carry(side, message, received)?,
                    LegEvent::Settled(origin, code) => self.settle(side, origin, code)?,
                    LegEvent::Handled => {}
                }
            }
        }
        Ok(any)
    }

    /// Puts what waits into the outputs.
    fn fill(&mut self) -> io::Result<()> {
        let mut settled = Vec::new();
        for side in [Side::Local, Side::Remote] {
            side.named(self.legs.of(side).fill(&mut settled))?;
            for (origin, code) in settled.drain(..) {
                self.settle(side, origin, code)?;
            }
        }
        Ok(())
    }

    fn carry(
        &mut self,
        from: Side,
        message: OutgoingMessage,
        received: Option<ReceivedId>,
    ) -> io::Result<()> {
        if received.is_none() && self.legs.of(from.other()).is_full() {
            self.counts.refused += 1;
            return Ok(());
        }
        let messages = self.translation.translate(from, &message);
        let origin = match received {
            Some(received) => MessageOrigin::Carried(Box::new(CarriedMessage {
                retries: self.policies.of(from.other()).first(&message.topic),
                message,
                received,
            })),
            None => MessageOrigin::Unacknowledged,
        };
        self.send(from, messages, origin)
    }

    fn send_delayed(&mut self) -> io::Result<()> {
        for DelayedMessage { from, carried, .. } in self.delayed.due() {
            let mut messages = self.translation.translate(from, &carried.message);
            // Where it comes from has been answered.
            messages.retain(|(to, _)| *to != from);
            self.send(from, messages, MessageOrigin::Carried(carried))?;
        }
        Ok(())
    }

    fn send(
        &mut self,
        from: Side,
        mut messages: Vec<(Side, OutgoingMessage)>,
        origin: MessageOrigin,
    ) -> io::Result<()> {
        let last = messages.pop_if(|(to, _)| *to != from);
        for (to, message) in messages {
            self.legs.of(to).send(message, MessageOrigin::Preamble);
        }
        let Some((to, mut last)) = last else {
            return self.give_up(from, origin);
        };
        if matches!(origin, MessageOrigin::Carried(_)) {
            last.qos = QoS::AtLeastOnce;
        }
        self.legs.of(to).send(last, origin);
        Ok(())
    }

    /// A side has a message, or does not take it.
    fn settle(&mut self, side: Side, origin: MessageOrigin, code: ReasonCode) -> io::Result<()> {
        if matches!(origin, MessageOrigin::Preamble) {
            return Ok(());
        }
        let from = side.other();
        if !code.is_error() {
            match from {
                Side::Local => self.counts.outgoing += 1,
                Side::Remote => self.counts.incoming += 1,
            }
            if let MessageOrigin::Carried(carried) = origin {
                self.policies.of(side).note_taken(&carried.message.topic);
                self.legs.of(from).acknowledge(carried.received)?;
            }
            return Ok(());
        }
        if let Some(suppressed) = REFUSED_GATE.open() {
            let (bridge, code) = (self.name, code.name());
            warn!(
                bridge,
                ?side,
                code,
                suppressed,
                "a side of a bridge does not take a message"
            );
        }
        match origin {
            // It may have room later; until then the message stays where it is as well.
            MessageOrigin::Carried(carried) if code == ReasonCode::QuotaExceeded => self.delay(side, carried),
            origin => self.give_up(from, origin),
        }
    }

    fn delay(&mut self, side: Side, mut carried: Box<CarriedMessage>) -> io::Result<()> {
        let cause = match side {
            // It has no room for one more retained message.
            Side::Local => RefusalCause::Message,
            Side::Remote => self.translation.no_room_for(&carried.message),
        };
        let CarriedMessage { message, retries, .. } = &mut *carried;
        match self.policies.of(side).pause(&message.topic, retries, cause) {
            Some(pause) => {
                self.delayed.push(pause, side.other(), carried);
                Ok(())
            }
            None => self.give_up(side.other(), MessageOrigin::Carried(carried)),
        }
    }

    fn give_up(&mut self, from: Side, origin: MessageOrigin) -> io::Result<()> {
        self.counts.refused += 1;
        match origin {
            MessageOrigin::Carried(carried) => self.legs.of(from).acknowledge(carried.received),
            MessageOrigin::Unacknowledged | MessageOrigin::Preamble => Ok(()),
        }
    }
}

/// Waits until the program stops.
pub(crate) async fn stopped(stop: &mut watch::Receiver<bool>) {
    // Whoever could say so has gone otherwise.
    let _ = stop.wait_for(|stop| *stop).await;
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncWriteExt as _;

    use super::*;
    use crate::leg::tests::{WELCOME, connected, packet};
    use crate::options::BridgeTopic;
    use crate::topics::TopicTranslation;

    /// Time passes as soon as nothing else happens.
    #[tokio::test(start_paused = true)]
    async fn a_message_that_a_side_has_no_room_for_is_sent_again_and_acknowledged_then() {
        let ((local, mut here), (remote, mut there)) = (connected(WELCOME).await, connected(WELCOME).await);
        let mut translation = TopicTranslation::new(&[BridgeTopic::default()]);
        let (mut sum, mut is_up) = (CarrierCounts::default(), false);
        let mut report = |counts: &mut CarrierCounts, up: bool| {
            sum.outgoing += std::mem::take(&mut counts.outgoing);
            sum.refused += std::mem::take(&mut counts.refused);
            is_up |= up;
        };
        let (stop, mut stopped) = watch::channel(false);
        let carrier = Carrier::new("peer", BothSides { local, remote }, &mut translation, &mut report);
        let script = async {
            for (id, topic) in [(1, b'a'), (2, b'b')] {
                let publish = [0x32, 7, 0, 1, topic, 0, id, 0, b'x'];
                here.write_all(&publish).await.expect("room");
            }
            // The first one is refused, and the second one does not wait for it.
            let first = packet(&mut there).await;
            let second = packet(&mut there).await;
            assert_eq!((first[4], second[4]), (b'a', b'b'));
            for (sent, code) in [(first, 0x97), (second, 0)] {
                let puback = [0x40, 3, sent[5], sent[6], code];
                there.write_all(&puback).await.expect("room");
            }
            assert_eq!(packet(&mut here).await, [0x40, 2, 0, 2]);
            let again = packet(&mut there).await;
            assert_eq!(again[4], b'a');
            let puback = [0x40, 3, again[5], again[6], 0];
            there.write_all(&puback).await.expect("room");
            assert_eq!(packet(&mut here).await, [0x40, 2, 0, 1]);
            stop.send_replace(true);
        };
        let (carried, ()) = tokio::join!(carrier.run(&mut stopped), script);
        carried.expect("stopped");
        assert_eq!((sum.outgoing, sum.refused, is_up), (2, 0, true));
    }
}
