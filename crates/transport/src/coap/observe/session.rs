//! The session of an observing device: sends its queued messages, one at a time.

use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use fieldline_codec::coap::{CoapCode, CoapEncoder, CoapMessageType};
use fieldline_devices::directory::ListenWindow;
use fieldline_devices::downlink::{Downlink, Subscriptions};
use fieldline_devices::sessions::{CloseReason, OutboundPayload, SessionGuard};
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::Instant;

use super::power_saving::PowerSavingTracker;
use super::{CoapObservation, NUMBERS, NotificationArrival, ObservationSlots, ObservedResource};
use crate::coap::exchanges::{CoapDelivery, CoapSendError};
use crate::coap::reply::CoapReply;
use crate::coap::server::CoapShared;
use crate::payload::PayloadFormat;

/// Delay before a retry when too many notifications wait for an acknowledgement.
const CROWDED_RETRY_DELAY: Duration = Duration::from_secs(1);

/// The outcome of sending a message.
enum NotificationAttempt {
    /// It has arrived, or never will.
    Over,
    /// The device sleeps: the message must be sent again when the device is heard.
    Asleep,
    /// The observation was replaced before the message arrived.
    Elsewhere,
    /// It was not sent, because too many messages wait for an acknowledgement.
    TooMany,
}

/// The session of one observing device; see the module.
pub(super) struct ObserverSession {
    pub(super) guard: SessionGuard,
    pub(super) observations: Mutex<ObservationSlots>,
    /// Signals a change of the observations, or that the device was heard, to the task.
    pub(super) changed: watch::Sender<()>,
    power: PowerSavingTracker,
}

impl ObserverSession {
    /// Creates the session of a device that is heard now.
    pub(super) fn new(guard: SessionGuard) -> Self {
        Self {
            guard,
            observations: Mutex::default(),
            changed: watch::Sender::new(()),
            power: PowerSavingTracker::new(Instant::now()),
        }
    }

    /// Ends the matching observations; the session ends with the last one.
    pub(super) fn end_observations(&self, shared: &CoapShared, is_meant: impl Fn(&CoapObservation) -> bool) {
        let wants = {
            let mut observations = self.observations.lock();
            let ended = observations.take(is_meant);
            if ended.is_empty() {
                return;
            }
            for observation in &ended {
                shared
                    .observers
                    .remove_observation(self.guard.device().id, observation);
            }
            observations.wants()
        };
        let control = self.guard.control();
        if wants == Subscriptions::NOTHING {
            control.unsubscribe(Subscriptions::ATTRIBUTES.and(Subscriptions::RPC));
            // Nobody is notified: closing the session is how its task learns of it.
            control.close(CloseReason::Inactive);
        } else {
            let calls = &shared.services.rpc;
            calls.set_subscriptions(self.guard.device().subject, control, wants);
        }
        self.changed.send_replace(());
    }

    /// Waits for the next message to send; `Err` when the session is closed.
    async fn next(&self) -> Result<Downlink, CloseReason> {
        let control = self.guard.control();
        poll_fn(|context| {
            if let Some(reason) = control.poll_close(context.waker()) {
                return Poll::Ready(Err(reason));
            }
            while let Some(letter) = control.take_outbound() {
                if let OutboundPayload::Downlink(downlink) = letter.payload {
                    return Poll::Ready(Ok(downlink));
                }
            }
            Poll::Pending
        })
        .await
    }

    /// Waits for a future, but not beyond the end of the session.
    async fn unless_closed<T>(&self, waiting: impl Future<Output = T>) -> Result<T, CloseReason> {
        let control = self.guard.control();
        let mut waiting = pin!(waiting);
        poll_fn(|context| {
            if let Poll::Ready(done) = waiting.as_mut().poll(context) {
                return Poll::Ready(Ok(done));
            }
            match control.poll_close(context.waker()) {
                Some(reason) => Poll::Ready(Err(reason)),
                None => Poll::Pending,
            }
        })
        .await
    }

    /// Waits until the first response of an observation was sent, and returns the observation with its next sequence
    /// number; `None` if there is no observation.
    async fn open(&self, subject: ObservedResource) -> Option<CoapObservation> {
        let mut changed = self.changed.subscribe();
        loop {
            changed.mark_unchanged();
            {
                let mut observations = self.observations.lock();
                let observation = observations.of(subject).as_mut()?;
                if observation.is_open {
                    observation.number = (observation.number + 1) % NUMBERS;
                    return Some(observation.clone());
                }
            }
            changed.changed().await.ok()?;
        }
    }

    /// Marks the device as heard, and wakes the task to send queued messages.
    pub(super) fn mark_heard(&self) {
        self.power.mark_heard(Instant::now());
        self.changed.send_replace(());
    }

    /// Returns the listening window of the device, if it saves power.
    async fn listening(&self, shared: &CoapShared) -> Option<ListenWindow> {
        match self.power.known(Instant::now()) {
            Ok(listening) => listening,
            Err(before) => {
                let found = shared.services.directory.listening(self.guard.device()).await;
                // If the look-up fails, the last known mode counts.
                let listening = found.unwrap_or(before);
                self.power.set_listening(listening, Instant::now());
                listening
            }
        }
    }

    /// Waits until the device listens. Returns whether it is a power-saving device.
    async fn wait_awake(&self, shared: &CoapShared) -> Result<bool, CloseReason> {
        let mut changed = self.changed.subscribe();
        loop {
            changed.mark_unchanged();
            let Some(listening) = self.listening(shared).await else {
                return Ok(false);
            };
            if self.power.try_acquire_send(listening, Instant::now()) {
                return Ok(true);
            }
            // The session holds the sender, so this cannot fail.
            let _ = self.unless_closed(changed.changed()).await?;
        }
    }

    /// Delivers one message, and waits until it has arrived. If the session closes first, an RPC request is given back
    /// for another session.
    async fn deliver(&self, shared: &CoapShared, downlink: Downlink) -> Result<(), CloseReason> {
        let delivered = self.deliver_whole(shared, &downlink).await;
        if delivered.is_err()
            && let Downlink::Call(call) = &downlink
        {
            shared.services.rpc.handle_return(call);
        }
        delivered
    }

    async fn deliver_whole(&self, shared: &CoapShared, downlink: &Downlink) -> Result<(), CloseReason> {
        loop {
            let sleeps = self.wait_awake(shared).await?;
            if let Downlink::Call(call) = downlink
                && call.expires_ms <= shared.services.clock.now_ms()
            {
                return Ok(());
            }
            let sent = Instant::now();
            match self.deliver_once(shared, downlink, sleeps).await? {
                NotificationAttempt::Over => return Ok(()),
                // The message waits, with those behind it, until the device is heard.
                NotificationAttempt::Asleep => self.power.mark_asleep(sent),
                NotificationAttempt::Elsewhere => {}
                NotificationAttempt::TooMany => {
                    self.unless_closed(tokio::time::sleep(CROWDED_RETRY_DELAY))
                        .await?;
                }
            }
        }
    }

    /// Waits until an observation was replaced or has ended.
    async fn wait_replaced(&self, subject: ObservedResource, observation: &CoapObservation) {
        let mut changed = self.changed.subscribe();
        loop {
            changed.mark_unchanged();
            let is_same = |now: &CoapObservation| now.is_of(observation);
            if !self.observations.lock().of(subject).as_ref().is_some_and(is_same) {
                return;
            }
            // The session holds the sender, so this cannot fail.
            let _ = changed.changed().await;
        }
    }

    /// Sends one message, and waits until it has arrived.
    async fn deliver_once(
        &self,
        shared: &CoapShared,
        downlink: &Downlink,
        sleeps: bool,
    ) -> Result<NotificationAttempt, CloseReason> {
        let device = self.guard.device();
        if device.is_stale() {
            // If the refresh fails, the old settings count.
            let _ = shared.services.directory.refresh(device).await;
        }
        let settings = device.settings();
        let format = PayloadFormat::over_coap(&settings);
        let calls = &shared.services.rpc;
        let (subject, body) = match downlink {
            Downlink::Attributes(update) => {
                let now_ms = shared.services.clock.now_ms();
                (ObservedResource::Attributes, format.update(update, now_ms))
            }
            Downlink::Call(call) => match format.numbered_call(call) {
                Ok(body) => (ObservedResource::Calls, body),
                Err(error) => {
                    calls.handle_failure(call, &error.to_string());
                    return Ok(NotificationAttempt::Over);
                }
            },
            // The device's own RPC requests are answered in their responses.
            Downlink::Answer(..) => return Ok(NotificationAttempt::Over),
        };
        let Some(observation) = self.unless_closed(self.open(subject)).await? else {
            if let Downlink::Call(call) = downlink {
                calls.handle_return(call);
            }
            return Ok(NotificationAttempt::Over);
        };
        let reply = CoapReply {
            observe: Some(observation.number),
            ..CoapReply::content(CoapCode::CONTENT, body, format)
        };
        let arrival = shared.notify(self.guard.device().id, &observation, &reply);
        if let Downlink::Call(call) = downlink {
            match arrival {
                NotificationArrival::Unknown => calls.handle_sent(call, false),
                NotificationArrival::Awaited(_) | NotificationArrival::Never => calls.handle_handover(call),
                NotificationArrival::Later => {}
            }
        }
        let delivery = match arrival {
            NotificationArrival::Unknown => return Ok(NotificationAttempt::Over),
            NotificationArrival::Never => CoapDelivery::TimedOut,
            NotificationArrival::Later => return Ok(NotificationAttempt::TooMany),
            NotificationArrival::Awaited(arrival) => {
                // A new observation, for example from another address after a restart, does not wait for the former
                // peer.
                let arrived = async {
                    tokio::select! {
                        biased;
                        arrival = arrival => Some(arrival.unwrap_or(CoapDelivery::TimedOut)),
                        () = self.wait_replaced(subject, &observation) => None,
                    }
                };
                match self.unless_closed(arrived).await? {
                    Some(delivery) => delivery,
                    None => return Ok(NotificationAttempt::Elsewhere),
                }
            }
        };
        match delivery {
            CoapDelivery::Acknowledged => {
                self.mark_heard();
                shared
                    .services
                    .activity
                    .record_activity(self.guard.device().subject);
                if let Downlink::Call(call) = downlink {
                    calls.handle_delivery(call);
                }
            }
            CoapDelivery::TimedOut if sleeps => return Ok(NotificationAttempt::Asleep),
            CoapDelivery::Reset | CoapDelivery::TimedOut => {
                self.end_observations(shared, |other| other.is_of(&observation));
                if let Downlink::Call(call) = downlink {
                    calls.handle_ack_timeout(call);
                }
            }
        }
        Ok(NotificationAttempt::Over)
    }

    /// Pings the observing peers. A power-saving device is not pinged, as it may not listen.
    async fn ping_observers(&self, shared: &CoapShared) -> Result<(), CloseReason> {
        if self.listening(shared).await.is_some() {
            return Ok(());
        }
        let mut peers: Vec<_> = {
            let observations = self.observations.lock();
            let observed = observations.0.iter().flatten();
            observed.map(|observation| observation.key.peer).collect()
        };
        peers.dedup();
        for peer in peers {
            let ping = |id| CoapEncoder::empty(CoapMessageType::Confirmable, id).into();
            let arrival = match shared.send_confirmable(peer, ping) {
                Ok(arrival) => self
                    .unless_closed(arrival)
                    .await?
                    .unwrap_or(CoapDelivery::TimedOut),
                Err(CoapSendError::NoWay) => CoapDelivery::TimedOut,
                // The ping is tried again later.
                Err(CoapSendError::TooMany) => continue,
            };
            // A peer answers a ping with a reset.
            if arrival == CoapDelivery::TimedOut {
                self.end_observations(shared, |observation| observation.key.peer == peer);
            } else {
                self.mark_heard();
                shared
                    .services
                    .activity
                    .record_activity(self.guard.device().subject);
            }
        }
        Ok(())
    }

    /// Sends notifications until the session ends; returns the reason.
    pub(super) async fn serve(&self, shared: &CoapShared) -> CloseReason {
        let silence = shared.options.observer_silence.0;
        let mut asked = self.power.last_heard();
        loop {
            // Messages sent to the device do not postpone the ping: a peer that acknowledges nothing may be gone.
            let ask_at = self.power.last_heard().max(asked) + silence;
            let turn = if Instant::now() >= ask_at {
                asked = Instant::now();
                self.ping_observers(shared).await
            } else {
                match tokio::time::timeout_at(ask_at, self.next()).await {
                    Ok(Ok(downlink)) => self.deliver(shared, downlink).await,
                    Ok(Err(reason)) => Err(reason),
                    Err(_) => Ok(()),
                }
            };
            if let Err(reason) = turn {
                return reason;
            }
        }
    }
}
