//! Observations (RFC 7641): updates of shared attributes, and RPC requests to the device.
//!
//! An observing device has one session, like a device connected over MQTT, with at most one observation of each kind; a
//! newer observation replaces the older one, whose peer is notified. One task sends the messages of the session's queue
//! one at a time: the next follows when the peer has acknowledged the last (NSTART of RFC 7252 §4.7). An observation
//! ends when its peer does not acknowledge, or resets. Messages to a power-saving device wait until it is heard again.

mod power_saving;
mod session;

use std::sync::Arc;

use fieldline_codec::coap::{CoapBlock, CoapCode, CoapMessageType, CoapToken};
use fieldline_devices::directory::DeviceHandle;
use fieldline_devices::downlink::Subscriptions;
use fieldline_devices::sessions::{CloseReason, SessionControl, SessionOrigin, SessionProtocol};
use fieldline_model::DeviceId;
use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use self::session::ObserverSession;
use super::blockwise::BlockwiseKey;
use super::counts::BoundedCounts;
use super::exchanges::{CoapDelivery, CoapPeer, CoapSendError};
use super::reply::{CoapReply, ReplyCallback};
use super::request::CoapRequest;
use super::server::CoapShared;

/// Most observing devices at a time.
const MAX_OBSERVERS: u32 = 100_000;
/// The sequence numbers of notifications have 24 bits.
const NUMBERS: u32 = 1 << 24;

/// A resource that can be observed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ObservedResource {
    Attributes,
    Calls,
}

impl ObservedResource {
    const ALL: [Self; 2] = [Self::Attributes, Self::Calls];

    const fn wants(self) -> Subscriptions {
        match self {
            Self::Attributes => Subscriptions::ATTRIBUTES,
            Self::Calls => Subscriptions::RPC,
        }
    }
}

/// One observation.
#[derive(Clone)]
struct CoapObservation {
    key: BlockwiseKey,
    token: CoapToken,
    /// Whether notifications are confirmable, as the request was.
    is_confirmable: bool,
    /// The block size that the peer prefers, if it named one.
    block: Option<CoapBlock>,
    number: u32,
    /// Whether the response to the request was sent; no notification may overtake it.
    is_open: bool,
}

#[derive(Default)]
struct ObservationSlots([Option<CoapObservation>; 2]);

impl ObservationSlots {
    fn of(&mut self, subject: ObservedResource) -> &mut Option<CoapObservation> {
        let [attributes, calls] = &mut self.0;
        match subject {
            ObservedResource::Attributes => attributes,
            ObservedResource::Calls => calls,
        }
    }

    /// Removes the observations that match, and returns them.
    fn take(&mut self, is_meant: impl Fn(&CoapObservation) -> bool) -> Vec<CoapObservation> {
        let slots = self.0.iter_mut();
        slots
            .filter_map(|slot| slot.take_if(|observation| is_meant(observation)))
            .collect()
    }

    fn wants(&self) -> Subscriptions {
        let pairs = ObservedResource::ALL.iter().zip(&self.0);
        pairs
            .filter(|(_, observation)| observation.is_some())
            .fold(Subscriptions::NOTHING, |wants, (subject, _)| {
                wants.and(subject.wants())
            })
    }
}

/// The sessions of all observing devices; see the module.
pub(super) struct ObserverRegistry {
    sessions: Mutex<FxHashMap<DeviceId, Arc<ObserverSession>>>,
    /// The message ID of the last non-confirmable notification to each peer; a reset names it.
    unacknowledged: Mutex<FxHashMap<CoapPeer, (u16, DeviceId, CoapToken)>>,
    /// The devices whose observations go over a DTLS session; they all end with the session.
    of_peer: Mutex<FxHashMap<CoapPeer, BoundedCounts<DeviceId>>>,
    permits: Arc<Semaphore>,
}

impl ObserverRegistry {
    pub(super) fn new() -> Self {
        Self {
            sessions: Mutex::default(),
            unacknowledged: Mutex::default(),
            of_peer: Mutex::default(),
            permits: Arc::new(Semaphore::new(MAX_OBSERVERS as usize)),
        }
    }

    /// Waits until all sessions have ended.
    pub(super) async fn wait_ended(&self) {
        let _ = self.permits.acquire_many(MAX_OBSERVERS).await;
    }

    /// Wakes the session of a device that was heard, so that queued messages can be sent.
    pub(super) fn mark_heard(&self, device: DeviceId) {
        let session = self.sessions.lock().get(&device).cloned();
        if let Some(session) = session {
            session.mark_heard();
        }
    }

    /// Handles the reset of a non-confirmable notification.
    pub(super) fn reset(&self, shared: &CoapShared, peer: CoapPeer, id: u16) {
        let known = self.unacknowledged.lock().get(&peer).copied();
        let Some((_, device, token)) = known.filter(|(last, ..)| *last == id) else {
            return;
        };
        let session = self.sessions.lock().get(&device).cloned();
        if let Some(session) = session {
            session.end_observations(shared, |observation| {
                observation.key.peer == peer && observation.token == token
            });
        }
    }

    /// Ends all observations of a peer that can no longer be reached.
    pub(super) fn remove_peer(&self, shared: &CoapShared, peer: CoapPeer) {
        let devices = self.of_peer.lock().remove(&peer);
        for device in devices.into_iter().flat_map(BoundedCounts::into_owners) {
            let session = self.sessions.lock().get(&device).cloned();
            if let Some(session) = session {
                session.end_observations(shared, |observation| observation.key.peer == peer);
            }
        }
    }

    /// Registers an observation of a device by a DTLS peer.
    fn add_observation(&self, device: DeviceId, peer: CoapPeer) {
        if peer.session > 0 {
            self.of_peer
                .lock()
                .entry(peer)
                .or_default()
                .try_increment(device, usize::MAX);
        }
    }

    /// Removes an observation of a device that has ended.
    fn remove_observation(&self, device: DeviceId, ended: &CoapObservation) {
        let peer = ended.key.peer;
        {
            let mut unacknowledged = self.unacknowledged.lock();
            let last = unacknowledged.get(&peer);
            if last.is_some_and(|(_, of, token)| *of == device && *token == ended.token) {
                unacknowledged.remove(&peer);
            }
        }
        let mut of_peer = self.of_peer.lock();
        if let Some(devices) = of_peer.get_mut(&peer) {
            devices.decrement(&device);
            if devices.is_empty() {
                of_peer.remove(&peer);
            }
        }
    }

    fn get_or_open_session(
        &self,
        shared: &Arc<CoapShared>,
        device: &Arc<DeviceHandle>,
        peer: CoapPeer,
    ) -> Option<Arc<ObserverSession>> {
        let mut sessions = self.sessions.lock();
        if let Some(session) = sessions.get(&device.id)
            && session.guard.control().close_reason().is_none()
        {
            return Some(session.clone());
        }
        let place = self.permits.clone().try_acquire_owned().ok()?;
        let services = &shared.services;
        let control = Arc::new(SessionControl::default());
        let protocol = match peer.session {
            0 => SessionProtocol::Coap,
            _ => SessionProtocol::Coaps,
        };
        let origin = SessionOrigin {
            protocol,
            address: Some(peer.address.ip()),
            gateway: None,
            since_ms: services.clock.now_ms(),
        };
        let guard = services.sessions.open_from(device.clone(), control, origin);
        let session = Arc::new(ObserverSession::new(guard));
        services.activity.record_connect(device.subject);
        shared.connections.accepted.increment(1);
        shared.connections.open.increment(1);
        sessions.insert(device.id, session.clone());
        tokio::spawn(run(shared.clone(), session.clone(), place));
        Some(session)
    }
}

/// Begins or renews an observation. Returns the sequence number of the response, and a callback for after the response
/// was sent; `None` if too many devices observe already.
pub(super) fn register(
    shared: &Arc<CoapShared>,
    device: &Arc<DeviceHandle>,
    request: &CoapRequest,
    subject: ObservedResource,
) -> Option<(u32, ReplyCallback)> {
    let session = shared
        .observers
        .get_or_open_session(shared, device, request.peer)?;
    let observation = CoapObservation {
        key: request.key(),
        token: request.token,
        is_confirmable: request.is_confirmable,
        block: request.block2,
        number: 1,
        is_open: false,
    };
    // Derived from the clock, so that numbers keep rising over sessions of the device and over restarts.
    let tenths = shared.services.clock.now_ms() / 100;
    let first = u32::try_from(tenths.rem_euclid(NUMBERS.into())).unwrap_or(1);
    let (number, replaced, wants) = {
        let mut observations = session.observations.lock();
        let slot = observations.of(subject);
        let before = slot.take();
        let number = before.as_ref().map_or(first, |before| before.number + 1) % NUMBERS;
        *slot = Some(CoapObservation {
            number,
            ..observation.clone()
        });
        (number, before, observations.wants())
    };
    let is_renewed = replaced.as_ref().is_some_and(|before| before.is_of(&observation));
    if !is_renewed {
        shared.observers.add_observation(device.id, request.peer);
    }
    if let Some(before) = replaced.filter(|_| !is_renewed) {
        shared.observers.remove_observation(device.id, &before);
        shared.notify_end(&before, CoapCode::DELETED);
    }
    let control = session.guard.control();
    shared
        .services
        .rpc
        .set_subscriptions(device.subject, control, wants);
    if request.peer.session > 0 && shared.identity(request.peer).is_none() {
        // The DTLS session may have ended before the observation was registered.
        shared.observers.remove_peer(shared, request.peer);
    }
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
    shared: &CoapShared,
    device: &DeviceHandle,
    request: &CoapRequest,
    subject: ObservedResource,
) -> bool {
    let session = shared.observers.sessions.lock().get(&device.id).cloned();
    let Some(session) = session else { return false };
    let is_meant = |observation: &CoapObservation| {
        observation.key.peer == request.peer && observation.token == request.token
    };
    let has_one = session
        .observations
        .lock()
        .of(subject)
        .as_ref()
        .is_some_and(is_meant);
    if has_one {
        session.end_observations(shared, is_meant);
    }
    has_one
}

impl CoapObservation {
    /// Whether both have the same peer and token.
    fn is_of(&self, other: &Self) -> bool {
        self.key.peer == other.key.peer && self.token == other.token
    }
}

/// Whether the arrival of a notification can be known.
enum NotificationArrival {
    Unknown,
    Never,
    /// It was not sent, because too many wait for an acknowledgement.
    Later,
    Awaited(tokio::sync::oneshot::Receiver<CoapDelivery>),
}

impl CoapShared {
    fn notify(
        &self,
        device: DeviceId,
        observation: &CoapObservation,
        reply: &CoapReply,
    ) -> NotificationArrival {
        let (key, token, block) = (&observation.key, observation.token, observation.block);
        if observation.is_confirmable {
            let sent = self.send_confirmable(key.peer, |id| {
                self.render(reply, key, block, (CoapMessageType::Confirmable, id, token))
            });
            return match sent {
                Ok(settled) => NotificationArrival::Awaited(settled),
                Err(CoapSendError::TooMany) => NotificationArrival::Later,
                Err(CoapSendError::NoWay) => NotificationArrival::Never,
            };
        }
        let id = self.next_id(key.peer);
        let datagram = self.render(reply, key, block, (CoapMessageType::NonConfirmable, id, token));
        let last = (id, device, token);
        self.observers.unacknowledged.lock().insert(key.peer, last);
        if self.send(key.peer, &datagram) {
            NotificationArrival::Unknown
        } else {
            NotificationArrival::Never
        }
    }

    /// Notifies a peer that an observation has ended.
    fn notify_end(&self, observation: &CoapObservation, code: CoapCode) {
        let peer = observation.key.peer;
        let id = self.next_id(peer);
        let datagram = CoapReply::empty(code).encode(
            (CoapMessageType::NonConfirmable, id, observation.token),
            &[],
            None,
        );
        self.send(peer, &datagram);
    }
}

/// Sends the notifications of a device until its session ends.
async fn run(shared: Arc<CoapShared>, session: Arc<ObserverSession>, place: OwnedSemaphorePermit) {
    let code = match session.serve(&shared).await {
        CloseReason::CredentialsChanged => CoapCode::UNAUTHORIZED,
        CloseReason::Replaced => CoapCode::DELETED,
        CloseReason::KeepAlive
        | CloseReason::Inactive
        | CloseReason::Shutdown
        | CloseReason::TooSlow
        | CloseReason::CallTimeout
        | CloseReason::Administrator => CoapCode::SERVICE_UNAVAILABLE,
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
    let left = session.observations.lock().take(|_| true);
    for observation in &left {
        shared.observers.remove_observation(device, observation);
        shared.notify_end(observation, code);
    }
    if session.guard.end() {
        shared.services.activity.record_disconnect(subject);
    }
    shared.connections.open.decrement(1);
    drop(place);
}
