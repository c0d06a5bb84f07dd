//! Observations (RFC 7641): changes of shared attributes, and calls to the device.
//!
//! A device that observes has one session, as one that is connected over MQTT has, with at most one observation of each kind:
//! a newer one takes the place of the older, which is told so. One task sends what waits in the session's buffer, one message
//! at a time: the next one when the peer has acknowledged it (NSTART of RFC 7252 §4.7). A peer that does not acknowledge, or
//! resets, observes no longer. For a device that saves power they wait until it is heard again.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use fieldline_codec::coap::{Block, Code, Encoder, Kind, Token};
use fieldline_core::devices::{DeviceHandle, Listening};
use fieldline_core::downlink::{Downlink, Wants};
use fieldline_core::sessions::{CloseReason, Content, Origin, Protocol, SessionControl, SessionGuard};
use fieldline_model::DeviceId;
use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::Instant;

use super::bodies::Key;
use super::exchanges::{Delivery, Peer};
use super::reply::{After, Reply};
use super::request::Request;
use super::server::Shared;
use crate::payload::Format;

/// Devices that observe at a time.
const MAX_OBSERVERS: u32 = 100_000;
/// An observer of which nothing was heard for so long is asked whether it is still there.
const SILENCE: Duration = Duration::from_secs(86_400);
/// How long is taken for true what is known of how a device saves power.
const KNOWN_FOR: Duration = Duration::from_secs(30);
/// Numbers of notifications have 24 bits.
const NUMBERS: u32 = 1 << 24;

/// What can be observed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Subject {
    Attributes,
    Calls,
}

impl Subject {
    const ALL: [Self; 2] = [Self::Attributes, Self::Calls];

    const fn wants(self) -> Wants {
        match self {
            Self::Attributes => Wants::ATTRIBUTES,
            Self::Calls => Wants::CALLS,
        }
    }
}

/// One observation.
#[derive(Clone)]
struct Observation {
    key: Key,
    token: Token,
    /// Whether notifications are confirmable, as the request was.
    is_confirmable: bool,
    /// The blocks that the peer would like, where it has said so.
    block: Option<Block>,
    number: u32,
    /// Whether the response to the request was sent: nothing may overtake it.
    is_open: bool,
}

#[derive(Default)]
struct Observations([Option<Observation>; 2]);

impl Observations {
    fn of(&mut self, subject: Subject) -> &mut Option<Observation> {
        let [attributes, calls] = &mut self.0;
        match subject {
            Subject::Attributes => attributes,
            Subject::Calls => calls,
        }
    }

    fn wants(&self) -> Wants {
        let pairs = Subject::ALL.iter().zip(&self.0);
        pairs
            .filter(|(_, observation)| observation.is_some())
            .fold(Wants::NOTHING, |wants, (subject, _)| wants.and(subject.wants()))
    }
}

/// The session of a device that observes.
struct Session {
    guard: SessionGuard,
    observations: Mutex<Observations>,
    /// Tells the task that something about the observations has changed, or that the device was heard.
    changed: watch::Sender<()>,
    power: Mutex<Power>,
}

/// How a device saves power, and when it was last heard.
struct Power {
    /// With the time at which it was looked up.
    listening: Option<(Instant, Option<Listening>)>,
    heard: Instant,
    /// Whether it was sent something since beyond the time in which it listens.
    was_paged: bool,
}

/// See the module.
pub(super) struct Observers {
    sessions: Mutex<FxHashMap<DeviceId, Arc<Session>>>,
    /// The number of the last notification to a peer that is not acknowledged, by which a reset names it.
    unacknowledged: Mutex<FxHashMap<Peer, (u16, DeviceId, Token)>>,
    places: Arc<Semaphore>,
}

impl Observers {
    pub(super) fn new() -> Self {
        Self {
            sessions: Mutex::default(),
            unacknowledged: Mutex::default(),
            places: Arc::new(Semaphore::new(MAX_OBSERVERS as usize)),
        }
    }

    /// Waits until all sessions have ended.
    pub(super) async fn ended(&self) {
        let _ = self.places.acquire_many(MAX_OBSERVERS).await;
    }

    /// A device was heard: what waits for it can be sent.
    pub(super) fn heard(&self, device: DeviceId) {
        let session = self.sessions.lock().get(&device).cloned();
        if let Some(session) = session {
            session.heard();
        }
    }

    /// A peer has reset a notification that it was not to acknowledge.
    pub(super) fn reset(&self, shared: &Shared, peer: Peer, id: u16) {
        let known = self.unacknowledged.lock().get(&peer).copied();
        let Some((_, device, token)) = known.filter(|(last, ..)| *last == id) else {
            return;
        };
        let session = self.sessions.lock().get(&device).cloned();
        if let Some(session) = session {
            session.forget(shared, |observation| {
                observation.key.peer == peer && observation.token == token
            });
        }
    }

    /// Peers that nothing reaches any more observe no longer.
    pub(super) fn gone(&self, shared: &Shared, peers: &[Peer]) {
        let sessions: Vec<_> = self.sessions.lock().values().cloned().collect();
        for session in sessions {
            session.forget(shared, |observation| peers.contains(&observation.key.peer));
        }
    }

    fn session(&self, shared: &Arc<Shared>, device: &Arc<DeviceHandle>, peer: Peer) -> Option<Arc<Session>> {
        let mut sessions = self.sessions.lock();
        if let Some(session) = sessions.get(&device.id)
            && session.guard.control().close_reason().is_none()
        {
            return Some(session.clone());
        }
        let place = self.places.clone().try_acquire_owned().ok()?;
        let services = &shared.services;
        let control = Arc::new(SessionControl::default());
        let protocol = match peer.session {
            0 => Protocol::Coap,
            _ => Protocol::Coaps,
        };
        let origin = Origin {
            protocol,
            address: Some(peer.address.ip()),
            gateway: None,
            since_ms: services.clock.now_ms(),
        };
        let session = Arc::new(Session {
            guard: services.sessions.open_from(device.clone(), control, origin),
            observations: Mutex::default(),
            changed: watch::Sender::new(()),
            power: Mutex::new(Power {
                listening: None,
                heard: Instant::now(),
                was_paged: false,
            }),
        });
        services.activity.connected(device.subject);
        shared.connections.accepted.increment(1);
        shared.connections.open.increment(1);
        sessions.insert(device.id, session.clone());
        tokio::spawn(run(shared.clone(), session.clone(), place));
        Some(session)
    }
}

/// Begins an observation, or renews one. Returns the number of the response, and what is to be called once that was sent;
/// `None` where too many observe already.
pub(super) fn register(
    shared: &Arc<Shared>,
    device: &Arc<DeviceHandle>,
    request: &Request,
    subject: Subject,
) -> Option<(u32, After)> {
    let session = shared.observers.session(shared, device, request.peer)?;
    let observation = Observation {
        key: request.key(),
        token: request.token,
        is_confirmable: request.is_confirmable,
        block: request.block2,
        number: 1,
        is_open: false,
    };
    // Numbers go on rising over sessions of the device, and over restarts.
    let tenths = shared.services.clock.now_ms() / 100;
    let first = u32::try_from(tenths.rem_euclid(NUMBERS.into())).unwrap_or(1);
    let (number, replaced, wants) = {
        let mut observations = session.observations.lock();
        let slot = observations.of(subject);
        let before = slot.take();
        let number = before.as_ref().map_or(first, |before| before.number + 1) % NUMBERS;
        *slot = Some(Observation {
            number,
            ..observation.clone()
        });
        (number, before, observations.wants())
    };
    if let Some(before) = replaced.filter(|before| !before.is_of(&observation)) {
        shared.notify_end(&before, Code::DELETED);
    }
    let control = session.guard.control();
    shared.services.calls.follow(device.subject, control, wants);
    let after = move || {
        if let Some(slot) = session.observations.lock().of(subject)
            && slot.is_of(&observation)
        {
            slot.is_open = true;
        }
        session.changed.send_replace(());
    };
    Some((number, Box::new(after)))
}

/// Ends an observation. Returns whether there was one.
pub(super) fn deregister(
    shared: &Shared,
    device: &DeviceHandle,
    request: &Request,
    subject: Subject,
) -> bool {
    let session = shared.observers.sessions.lock().get(&device.id).cloned();
    let Some(session) = session else { return false };
    let is_meant = |observation: &Observation| {
        observation.key.peer == request.peer && observation.token == request.token
    };
    let has_one = session
        .observations
        .lock()
        .of(subject)
        .as_ref()
        .is_some_and(is_meant);
    if has_one {
        session.forget(shared, is_meant);
    }
    has_one
}

impl Observation {
    /// Whether it is the same peer's with the same token.
    fn is_of(&self, other: &Self) -> bool {
        self.key.peer == other.key.peer && self.token == other.token
    }
}

impl Session {
    /// Ends observations; the session ends with the last of them.
    fn forget(&self, shared: &Shared, is_meant: impl Fn(&Observation) -> bool) {
        let wants = {
            let mut observations = self.observations.lock();
            let mut has_changed = false;
            for slot in &mut observations.0 {
                if let Some(ended) = slot.take_if(|observation| is_meant(observation)) {
                    shared.observers.unacknowledged.lock().remove(&ended.key.peer);
                    has_changed = true;
                }
            }
            if !has_changed {
                return;
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

    fn heard(&self) {
        {
            let mut power = self.power.lock();
            power.heard = Instant::now();
            power.was_paged = false;
        }
        self.changed.send_replace(());
    }

    /// For how long the device listens after it was heard, where it saves power.
    async fn listening(&self, shared: &Shared) -> Option<Listening> {
        let known = self.power.lock().listening;
        if let Some((at, listening)) = known
            && at.elapsed() < KNOWN_FOR
        {
            return listening;
        }
        let found = shared.services.directory.listening(self.guard.device()).await;
        // What cannot be looked up now is as it was.
        let listening = found.unwrap_or(known.and_then(|(_, listening)| listening));
        self.power.lock().listening = Some((Instant::now(), listening));
        listening
    }

    /// Waits until the device listens. Returns whether it is one that does not always do so.
    async fn awake(&self, shared: &Shared) -> Result<bool, CloseReason> {
        let mut changed = self.changed.subscribe();
        loop {
            changed.mark_unchanged();
            let Some(listening) = self.listening(shared).await else {
                return Ok(false);
            };
            {
                let mut power = self.power.lock();
                if power.heard.elapsed() <= listening.window {
                    return Ok(true);
                }
                if listening.is_paged && !power.was_paged {
                    power.was_paged = true;
                    return Ok(true);
                }
            }
            // The session has it as long as it is there.
            let _ = self.unless_closed(changed.changed()).await?;
        }
    }

    /// Sends one thing, and waits until it has arrived.
    async fn deliver(&self, shared: &Shared, downlink: Downlink) -> Result<(), CloseReason> {
        loop {
            let sleeps = self.awake(shared).await?;
            if let Downlink::Call(call) = &downlink
                && call.expires_ms <= shared.services.clock.now_ms()
            {
                return Ok(());
            }
            let sent = Instant::now();
            if self.deliver_once(shared, &downlink, sleeps).await? {
                return Ok(());
            }
            // It has fallen asleep: this waits with the rest until it is heard.
            let mut power = self.power.lock();
            if power.heard <= sent {
                let listening = power.listening.and_then(|(_, listening)| listening);
                let window = listening.map_or(Duration::ZERO, |listening| listening.window);
                power.heard = sent.checked_sub(2 * window).unwrap_or(sent);
                power.was_paged = true;
            }
        }
    }

    /// Sends one thing, and waits until it has arrived. Returns false where it is to be sent again to a device that sleeps.
    async fn deliver_once(
        &self,
        shared: &Shared,
        downlink: &Downlink,
        sleeps: bool,
    ) -> Result<bool, CloseReason> {
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
                    return Ok(true);
                }
            },
            // Calls by the device are answered as requests.
            Downlink::Answer(..) => return Ok(true),
        };
        let Some(observation) = self.unless_closed(self.open(subject)).await? else {
            return Ok(true);
        };
        let reply = Reply {
            observe: Some(observation.number),
            ..Reply::content(Code::CONTENT, body, format)
        };
        let arrival = shared.notify(self.guard.device().id, &observation, &reply);
        if let Downlink::Call(call) = downlink {
            calls.sent(call, observation.is_confirmable);
        }
        let delivery = match arrival {
            Arrival::Unknown => return Ok(true),
            Arrival::Never => Delivery::TimedOut,
            Arrival::Awaited(arrival) => {
                let arrival = self.unless_closed(arrival).await?;
                arrival.unwrap_or(Delivery::TimedOut)
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
            Delivery::TimedOut if sleeps => return Ok(false),
            Delivery::Reset | Delivery::TimedOut => self.forget(shared, |other| other.is_of(&observation)),
        }
        Ok(true)
    }

    /// Asks observers of which nothing was heard for long whether they are there.
    async fn ask(&self, shared: &Shared) -> Result<(), CloseReason> {
        let observations: Vec<_> = self.observations.lock().0.iter().flatten().cloned().collect();
        for observation in observations {
            let peer = observation.key.peer;
            let arrival =
                match shared.send_confirmable(peer, |id| Encoder::empty(Kind::Confirmable, id).into()) {
                    Some(arrival) => self.unless_closed(arrival).await?.unwrap_or(Delivery::TimedOut),
                    None => Delivery::TimedOut,
                };
            // A ping is answered with a reset.
            if arrival == Delivery::TimedOut {
                self.forget(shared, |other| other.is_of(&observation));
            }
        }
        Ok(())
    }
}

/// Whether it is known when a notification has arrived.
enum Arrival {
    Unknown,
    Never,
    Awaited(tokio::sync::oneshot::Receiver<Delivery>),
}

impl Shared {
    fn notify(&self, device: DeviceId, observation: &Observation, reply: &Reply) -> Arrival {
        let (key, token, block) = (&observation.key, observation.token, observation.block);
        if observation.is_confirmable {
            let sent = self.send_confirmable(key.peer, |id| {
                self.render(reply, key, block, (Kind::Confirmable, id, token))
            });
            return sent.map_or(Arrival::Never, Arrival::Awaited);
        }
        let id = self.next_id(key.peer);
        let datagram = self.render(reply, key, block, (Kind::NonConfirmable, id, token));
        let last = (id, device, token);
        self.observers.unacknowledged.lock().insert(key.peer, last);
        if self.send(key.peer, &datagram) {
            Arrival::Unknown
        } else {
            Arrival::Never
        }
    }

    /// Tells a peer that an observation has ended.
    fn notify_end(&self, observation: &Observation, code: Code) {
        let peer = observation.key.peer;
        self.observers.unacknowledged.lock().remove(&peer);
        let id = self.next_id(peer);
        let datagram = Reply::empty(code).encode((Kind::NonConfirmable, id, observation.token), &[], None);
        self.send(peer, &datagram);
    }
}

/// Sends what a device observes until its session ends.
async fn run(shared: Arc<Shared>, session: Arc<Session>, place: OwnedSemaphorePermit) {
    let reason = loop {
        let turn = match tokio::time::timeout(SILENCE, session.next()).await {
            Ok(Ok(downlink)) => session.deliver(&shared, downlink).await,
            Ok(Err(reason)) => Err(reason),
            Err(_) => session.ask(&shared).await,
        };
        if let Err(reason) = turn {
            break reason;
        }
    };
    let code = match reason {
        CloseReason::CredentialsChanged => Code::UNAUTHORIZED,
        CloseReason::Replaced => Code::DELETED,
        CloseReason::KeepAlive
        | CloseReason::Inactive
        | CloseReason::Shutdown
        | CloseReason::TooSlow
        | CloseReason::CallTimeout
        | CloseReason::Administrator => Code::SERVICE_UNAVAILABLE,
    };
    let (device, subject) = (session.guard.device().id, session.guard.device().subject);
    {
        let mut sessions = shared.observers.sessions.lock();
        if sessions
            .get(&device)
            .is_some_and(|other| Arc::ptr_eq(other, &session))
        {
            sessions.remove(&device);
        }
    }
    let left = std::mem::take(&mut *session.observations.lock());
    for observation in left.0.iter().flatten() {
        shared.notify_end(observation, code);
    }
    if session.guard.end() {
        shared.services.activity.disconnected(subject);
    }
    shared.connections.open.decrement(1);
    drop(place);
}
