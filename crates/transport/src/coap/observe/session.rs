//! The session of a device that observes: sends what waits for it, one message at a time.

use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use fieldline_codec::coap::{Code, Encoder, Kind};
use fieldline_core::devices::Listening;
use fieldline_core::downlink::{Downlink, Wants};
use fieldline_core::sessions::{CloseReason, Content, SessionGuard};
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::Instant;

use super::power::Power;
use super::{Arrival, NUMBERS, Observation, Observations, Subject};
use crate::coap::exchanges::{Delivery, NotSent};
use crate::coap::reply::Reply;
use crate::coap::server::Shared;
use crate::payload::Format;

/// How long to wait where too many notifications wait for being acknowledged.
const CROWDED: Duration = Duration::from_secs(1);

/// What has become of something that was to be sent.
enum Attempt {
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
pub(super) struct Session {
    pub(super) guard: SessionGuard,
    pub(super) observations: Mutex<Observations>,
    /// Tells the task that something about the observations has changed, or that the device was heard.
    pub(super) changed: watch::Sender<()>,
    power: Power,
}

impl Session {
    /// Of a device that is heard now.
    pub(super) fn new(guard: SessionGuard) -> Self {
        Self {
            guard,
            observations: Mutex::default(),
            changed: watch::Sender::new(()),
            power: Power::new(Instant::now()),
        }
    }

    /// Ends observations; the session ends with the last of them.
    pub(super) fn forget(&self, shared: &Shared, is_meant: impl Fn(&Observation) -> bool) {
        let wants = {
            let mut observations = self.observations.lock();
            let ended = observations.take(is_meant);
            if ended.is_empty() {
                return;
            }
            for observation in &ended {
                shared.observers.has_ended(self.guard.device().id, observation);
            }
            observations.wants()
        };
        let control = self.guard.control();
        if wants == Wants::NOTHING {
            control.want_no_more(Wants::ATTRIBUTES.and(Wants::CALLS));
            // Nobody is told: this is how the task learns of it.
            control.close(CloseReason::Inactive);
        } else {
            let calls = &shared.services.calls;
            calls.follow(self.guard.device().subject, control, wants);
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
            while let Some(letter) = control.take_letter() {
                if let Content::Downlink(downlink) = letter.content {
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
    async fn open(&self, subject: Subject) -> Option<Observation> {
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
    pub(super) fn heard(&self) {
        self.power.heard(Instant::now());
        self.changed.send_replace(());
    }

    /// For how long the device listens after it was heard, where it saves power.
    async fn listening(&self, shared: &Shared) -> Option<Listening> {
        match self.power.known(Instant::now()) {
            Ok(listening) => listening,
            Err(before) => {
                let found = shared.services.directory.listening(self.guard.device()).await;
                // What cannot be looked up now is as it was.
                let listening = found.unwrap_or(before);
                self.power.learned(listening, Instant::now());
                listening
            }
        }
    }

    /// Waits until the device listens. Returns whether it is one that does not always do so.
    async fn awake(&self, shared: &Shared) -> Result<bool, CloseReason> {
        let mut changed = self.changed.subscribe();
        loop {
            changed.mark_unchanged();
            let Some(listening) = self.listening(shared).await else {
                return Ok(false);
            };
            if self.power.may_send(listening, Instant::now()) {
                return Ok(true);
            }
            // The session has it as long as it is there.
            let _ = self.unless_closed(changed.changed()).await?;
        }
    }

    /// Sends one thing, and waits until it has arrived. What the session has not brought to its end is another one's.
    async fn deliver(&self, shared: &Shared, downlink: Downlink) -> Result<(), CloseReason> {
        let delivered = self.deliver_whole(shared, &downlink).await;
        if delivered.is_err()
            && let Downlink::Call(call) = &downlink
        {
            shared.services.calls.taken_back(call);
        }
        delivered
    }

    async fn deliver_whole(&self, shared: &Shared, downlink: &Downlink) -> Result<(), CloseReason> {
        loop {
            let sleeps = self.awake(shared).await?;
            if let Downlink::Call(call) = downlink
                && call.expires_ms <= shared.services.clock.now_ms()
            {
                return Ok(());
            }
            let sent = Instant::now();
            match self.deliver_once(shared, downlink, sleeps).await? {
                Attempt::Over => return Ok(()),
                // This waits with the rest until it is heard.
                Attempt::Asleep => self.power.was_silent(sent),
                Attempt::Elsewhere => {}
                Attempt::TooMany => self.unless_closed(tokio::time::sleep(CROWDED)).await?,
            }
        }
    }

    /// Waits until an observation is another one, or none.
    async fn replaced(&self, subject: Subject, observation: &Observation) {
        let mut changed = self.changed.subscribe();
        loop {
            changed.mark_unchanged();
            let is_same = |now: &Observation| now.is_of(observation);
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
        shared: &Shared,
        downlink: &Downlink,
        sleeps: bool,
    ) -> Result<Attempt, CloseReason> {
        let device = self.guard.device();
        if device.is_stale() {
            // What cannot be read now is as it was.
            let _ = shared.services.directory.refresh(device).await;
        }
        let settings = device.settings();
        let format = Format::over_coap(&settings);
        let calls = &shared.services.calls;
        let (subject, body) = match downlink {
            Downlink::Attributes(update) => {
                let now_ms = shared.services.clock.now_ms();
                (Subject::Attributes, format.update(update, now_ms))
            }
            Downlink::Call(call) => match format.numbered_call(call) {
                Ok(body) => (Subject::Calls, body),
                Err(error) => {
                    calls.failed(call, &error.to_string());
                    return Ok(Attempt::Over);
                }
            },
            // Calls by the device are answered as requests.
            Downlink::Answer(..) => return Ok(Attempt::Over),
        };
        let Some(observation) = self.unless_closed(self.open(subject)).await? else {
            if let Downlink::Call(call) = downlink {
                calls.taken_back(call);
            }
            return Ok(Attempt::Over);
        };
        let reply = Reply {
            observe: Some(observation.number),
            ..Reply::content(Code::CONTENT, body, format)
        };
        let arrival = shared.notify(self.guard.device().id, &observation, &reply);
        if let Downlink::Call(call) = downlink {
            match arrival {
                Arrival::Unknown => calls.sent(call, false),
                Arrival::Awaited(_) | Arrival::Never => calls.handed_over(call),
                Arrival::Later => {}
            }
        }
        let delivery = match arrival {
            Arrival::Unknown => return Ok(Attempt::Over),
            Arrival::Never => Delivery::TimedOut,
            Arrival::Later => return Ok(Attempt::TooMany),
            Arrival::Awaited(arrival) => {
                // Whoever observes anew, as from another address after a restart, is not kept waiting for the former one.
                let arrived = async {
                    tokio::select! {
                        biased;
                        arrival = arrival => Some(arrival.unwrap_or(Delivery::TimedOut)),
                        () = self.replaced(subject, &observation) => None,
                    }
                };
                match self.unless_closed(arrived).await? {
                    Some(delivery) => delivery,
                    None => return Ok(Attempt::Elsewhere),
                }
            }
        };
        match delivery {
            Delivery::Acknowledged => {
                self.heard();
                shared.services.activity.heard(self.guard.device().subject);
                if let Downlink::Call(call) = downlink {
                    calls.delivered(call);
                }
            }
            Delivery::TimedOut if sleeps => return Ok(Attempt::Asleep),
            Delivery::Reset | Delivery::TimedOut => {
                self.forget(shared, |other| other.is_of(&observation));
                if let Downlink::Call(call) = downlink {
                    calls.unacknowledged(call);
                }
            }
        }
        Ok(Attempt::Over)
    }

    /// Asks the peers that observe whether they are there. One that saves power does not hear that.
    async fn ask(&self, shared: &Shared) -> Result<(), CloseReason> {
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
            let ping = |id| Encoder::empty(Kind::Confirmable, id).into();
            let arrival = match shared.send_confirmable(peer, ping) {
                Ok(arrival) => self.unless_closed(arrival).await?.unwrap_or(Delivery::TimedOut),
                Err(NotSent::NoWay) => Delivery::TimedOut,
                // It is asked another time.
                Err(NotSent::TooMany) => continue,
            };
            // A ping is answered with a reset.
            if arrival == Delivery::TimedOut {
                self.forget(shared, |observation| observation.key.peer == peer);
            } else {
                self.heard();
                shared.services.activity.heard(self.guard.device().subject);
            }
        }
        Ok(())
    }

    /// Sends what the device observes until its session ends; returns why that is.
    pub(super) async fn serve(&self, shared: &Shared) -> CloseReason {
        let silence = shared.options.observer_silence.0;
        let mut asked = self.power.last_heard();
        loop {
            // Whatever is sent to it: who acknowledges nothing may be gone.
            let ask_at = self.power.last_heard().max(asked) + silence;
            let turn = if Instant::now() >= ask_at {
                asked = Instant::now();
                self.ask(shared).await
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
