//! The session of a device that observes: sends what waits for it, one message at a time.

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

/// How long to wait where too many notifications wait for being acknowledged.
const CROWDED_RETRY_DELAY: Duration = Duration::from_secs(1);

/// What has become of something that was to be sent.
enum NotificationAttempt {
    /// It has arrived, or never will.
    Over,
    /// The device sleeps: it is to be sent again when it is heard.
    Asleep,
    /// Another observation has taken the place of that which it was sent for.
    Elsewhere,
    /// It was not sent, as too much waits for being acknowledged.
    TooMany,
}

/// See the module.
pub(super) struct ObserverSession {
    pub(super) guard: SessionGuard,
    pub(super) observations: Mutex<ObservationSlots>,
    /// Tells the task that something about the observations has changed, or that the device was heard.
    pub(super) changed: watch::Sender<()>,
    power: PowerSavingTracker,
}

impl ObserverSession {
    /// Of a device that is heard now.
    pub(super) fn new(guard: SessionGuard) -> Self {
        Self {
            guard,
            observations: Mutex::default(),
            changed: watch::Sender::new(()),
            power: PowerSavingTracker::new(Instant::now()),
        }
    }

    /// Ends observations; the session ends with the last of them.
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
            // Nobody is told: this is how the task learns of it.
            control.close(CloseReason::Inactive);
        } else {
            let calls = &shared.services.rpc;
            calls.set_subscriptions(self.guard.device().subject, control, wants);
        }
        self.changed.send_replace(());
    }

    /// Waits for what is to be sent next; `Err` when the session is to end.
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

    /// Waits for something, but not beyond the end of the session.
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

    /// The observation of a subject with the number of its next notification, once its first response was sent; `None` where
    /// there is none.
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

    /// The device was heard: what waits for it can be sent.
    pub(super) fn mark_heard(&self) {
        self.power.mark_heard(Instant::now());
        self.changed.send_replace(());
    }

    /// For how long the device listens after it was heard, where it saves power.
    async fn listening(&self, shared: &CoapShared) -> Option<ListenWindow> {
        match self.power.known(Instant::now()) {
            Ok(listening) => listening,
            Err(before) => {
                let found = shared.services.directory.listening(self.guard.device()).await;
                // What cannot be looked up now is as it was.
                let listening = found.unwrap_or(before);
                self.power.set_listening(listening, Instant::now());
                listening
            }
        }
    }

    /// Waits until the device listens. Returns whether it is one that does not always do so.
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
            // The session has it as long as it is there.
            let _ = self.unless_closed(changed.changed()).await?;
        }
    }

    /// Sends one thing, and waits until it has arrived. What the session has not brought to its end is another one's.
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
                // This waits with the rest until it is heard.
                NotificationAttempt::Asleep => self.power.mark_asleep(sent),
                NotificationAttempt::Elsewhere => {}
                NotificationAttempt::TooMany => {
                    self.unless_closed(tokio::time::sleep(CROWDED_RETRY_DELAY))
                        .await?;
                }
            }
        }
    }

    /// Waits until an observation is another one, or none.
    async fn wait_replaced(&self, subject: ObservedResource, observation: &CoapObservation) {
        let mut changed = self.changed.subscribe();
        loop {
            changed.mark_unchanged();
            let is_same = |now: &CoapObservation| now.is_of(observation);
            if !self.observations.lock().of(subject).as_ref().is_some_and(is_same) {
                return;
            }
            // The session has it as long as it is there.
            let _ = changed.changed().await;
        }
    }

    /// Sends one thing, and waits until it has arrived.
    async fn deliver_once(
        &self,
        shared: &CoapShared,
        downlink: &Downlink,
        sleeps: bool,
    ) -> Result<NotificationAttempt, CloseReason> {
        let device = self.guard.device();
        if device.is_stale() {
            // What cannot be read now is as it was.
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
            // Calls by the device are answered as requests.
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
                // Whoever observes anew, as from another address after a restart, is not kept waiting for the former one.
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

    /// Asks the peers that observe whether they are there. One that saves power does not hear that.
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
                // It is asked another time.
                Err(CoapSendError::TooMany) => continue,
            };
            // A ping is answered with a reset.
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

    /// Sends what the device observes until its session ends; returns why that is.
    pub(super) async fn serve(&self, shared: &CoapShared) -> CloseReason {
        let silence = shared.options.observer_silence.0;
        let mut asked = self.power.last_heard();
        loop {
            // Whatever is sent to it: who acknowledges nothing may be gone.
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
