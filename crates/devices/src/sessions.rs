//! Open sessions of devices: who is connected, what is sent to them, and how a session is told to end.

mod control;
mod listing;
mod long_poll;
#[cfg(test)]
mod tests;

use std::collections::hash_map::Entry;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use fieldline_core::events::{ChangeKind, EntityChange, EntityListener};
use fieldline_model::{DeviceId, EntityKey, EntityType, TenantId, new_uuid};
use parking_lot::Mutex;
use rustc_hash::FxHashMap;

pub use self::control::{OutboundMessage, OutboundPayload, SessionControl};
pub use self::listing::{SessionInfo, SessionOrigin, SessionProtocol};
pub use self::long_poll::LongPoll;
use crate::directory::DeviceHandle;
use crate::downlink::{DeviceLink, Downlink, Subscriptions};

/// Why the platform ends a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum CloseReason {
    /// A newer session of the same device took its place.
    Replaced = 1,
    /// The device was deleted or its credentials were changed.
    CredentialsChanged = 2,
    /// The device was silent for longer than its keep-alive allows.
    KeepAlive = 3,
    /// Nothing was heard of the device for the inactivity time-out.
    Inactive = 4,
    /// The server is shutting down.
    Shutdown = 5,
    /// It took what was sent to it more slowly than it came.
    TooSlow = 6,
    /// It did not acknowledge a call, however often that was sent.
    CallTimeout = 7,
    /// An administrator ended it.
    Administrator = 8,
}

impl CloseReason {
    const ALL: [Self; 8] = [
        Self::Replaced,
        Self::CredentialsChanged,
        Self::KeepAlive,
        Self::Inactive,
        Self::Shutdown,
        Self::TooSlow,
        Self::CallTimeout,
        Self::Administrator,
    ];
}

struct OpenSession {
    control: Arc<SessionControl>,
    device: Arc<DeviceHandle>,
    number: u64,
    origin: SessionOrigin,
}

/// Of a million sessions each part has four thousand: that many are looked at while others wait.
const SHARDS: usize = 256;
/// Requests of one device that wait for something at a time; a further one ends the oldest.
const MAX_POLLS: usize = 16;
/// Memory that everything that waits for sessions may take together, bytes.
const MAX_WAITING_TOGETHER: usize = 64 << 20;

impl OpenSession {
    /// Whether it is a connection of the device, not one request that waits for something.
    fn lasts(&self) -> bool {
        !self.control.is_one_shot()
    }
}

/// The sessions of this node.
pub struct SessionRegistry {
    shards: [Mutex<FxHashMap<DeviceId, Vec<OpenSession>>>; SHARDS],
    per_device: usize,
    open: AtomicUsize,
    /// The same by tenant.
    open_of: Mutex<FxHashMap<TenantId, usize>>,
    closing: AtomicBool,
    budget: Arc<control::OutboundBudget>,
    /// Counts sessions, and tells those of this run from those of others.
    opened: AtomicU64,
    run: u64,
}

impl SessionRegistry {
    /// A registry that allows `per_device` sessions of one device at a time; a further one replaces the oldest.
    pub fn new(per_device: usize) -> Arc<Self> {
        Arc::new(Self {
            shards: std::array::from_fn(|_| Mutex::default()),
            per_device: per_device.max(1),
            open: AtomicUsize::new(0),
            open_of: Mutex::default(),
            closing: AtomicBool::new(false),
            budget: control::OutboundBudget::new(MAX_WAITING_TOGETHER),
            opened: AtomicU64::new(0),
            run: new_uuid().as_u64_pair().1,
        })
    }

    /// Registers a session; it is registered until the returned guard is dropped.
    pub fn open(self: &Arc<Self>, device: Arc<DeviceHandle>, control: Arc<SessionControl>) -> SessionGuard {
        self.open_from(device, control, SessionOrigin::default())
    }

    /// The same, of a session of which is known where it comes from.
    pub fn open_from(
        self: &Arc<Self>,
        device: Arc<DeviceHandle>,
        control: Arc<SessionControl>,
        origin: SessionOrigin,
    ) -> SessionGuard {
        let id = device.id;
        let lasts = !control.is_one_shot();
        let most = if lasts { self.per_device } else { MAX_POLLS };
        let mut replaced = Vec::new();
        {
            let mut shard = self.shard(id).lock();
            let sessions = shard.entry(id).or_default();
            let alike = sessions.iter().filter(|session| session.lasts() == lasts).count();
            let mut surplus = (alike + 1).saturating_sub(most);
            if surplus > 0 {
                sessions.retain(|session| {
                    let stays = surplus == 0 || session.lasts() != lasts;
                    if !stays {
                        surplus -= 1;
                        replaced.push(session.control.clone());
                        if lasts {
                            self.count_closed(session.device.subject.tenant);
                        }
                    }
                    stays
                });
            }
            // Nearly always the only one.
            sessions.reserve_exact(1);
            sessions.push(OpenSession {
                control: control.clone(),
                device: device.clone(),
                number: self.opened.fetch_add(1, Ordering::Relaxed),
                origin,
            });
            if lasts {
                self.open.fetch_add(1, Ordering::Relaxed);
                *self.open_of.lock().entry(device.subject.tenant).or_default() += 1;
            }
        }
        for old in replaced {
            old.close(CloseReason::Replaced);
        }
        // Sessions are closed after the flag is set: this one was either among them or sees the flag.
        if self.closing.load(Ordering::SeqCst) {
            control.close(CloseReason::Shutdown);
        }
        // The device may have been deleted between its log-in and now.
        if device.is_revoked() {
            control.close(CloseReason::CredentialsChanged);
        }
        SessionGuard {
            sessions: self.clone(),
            device,
            control,
        }
    }

    /// Waits, as a device that has no session may, for one thing that it wants; it has to be told yet what that is.
    pub fn poll(self: &Arc<Self>, device: Arc<DeviceHandle>) -> LongPoll {
        LongPoll(self.open(device, Arc::new(SessionControl::one_shot())))
    }

    /// Sends something to one session. Returns whether it has taken it.
    pub fn send_to(&self, session: &SessionControl, downlink: &Downlink) -> bool {
        session.enqueue(downlink, &self.budget)
    }

    /// Whether a device has a session that wants this.
    pub fn has_subscriber(&self, device: DeviceId, wants: Subscriptions) -> bool {
        self.shard(device).lock().get(&device).is_some_and(|sessions| {
            sessions
                .iter()
                .any(|session| session.control.is_subscribed(wants))
        })
    }

    /// How many sessions are open.
    pub fn count(&self) -> usize {
        self.open.load(Ordering::Relaxed)
    }

    /// Whether a device has an open session.
    pub fn is_connected(&self, device: DeviceId) -> bool {
        self.shard(device)
            .lock()
            .get(&device)
            .is_some_and(|sessions| sessions.iter().any(OpenSession::lasts))
    }

    /// Ends all sessions of a device.
    pub fn close_device(&self, device: DeviceId, reason: CloseReason) {
        let controls: Vec<_> = match self.shard(device).lock().get(&device) {
            Some(sessions) => sessions.iter().map(|session| session.control.clone()).collect(),
            None => return,
        };
        controls.iter().for_each(|control| control.close(reason));
    }

    /// Ends all sessions, of one tenant or of all. On shutdown, sessions that are opened later end at once.
    pub fn close_all(&self, tenant: Option<TenantId>, reason: CloseReason) {
        if reason == CloseReason::Shutdown {
            self.closing.store(true, Ordering::SeqCst);
        }
        for shard in &self.shards {
            let controls: Vec<_> = shard
                .lock()
                .values()
                .flatten()
                .filter(|session| tenant.is_none_or(|tenant| session.device.subject.tenant == tenant))
                .map(|session| session.control.clone())
                .collect();
            controls.iter().for_each(|control| control.close(reason));
        }
    }

    fn count_closed(&self, tenant: TenantId) {
        self.open.fetch_sub(1, Ordering::Relaxed);
        let mut open_of = self.open_of.lock();
        if let Entry::Occupied(mut open) = open_of.entry(tenant) {
            *open.get_mut() -= 1;
            if *open.get() == 0 {
                open.remove();
            }
        }
    }

    fn shard(&self, device: DeviceId) -> &Mutex<FxHashMap<DeviceId, Vec<OpenSession>>> {
        // The last byte of a time-ordered id is random.
        let [.., last] = *device.0.as_bytes();
        let [first, ..] = &self.shards;
        self.shards.get(usize::from(last) % SHARDS).unwrap_or(first)
    }
}

impl DeviceLink for SessionRegistry {
    fn send(&self, subject: EntityKey, downlink: &Downlink) -> usize {
        let device = DeviceId(subject.entity.id);
        let shard = self.shard(device).lock();
        let sessions = shard.get(&device).map_or(&[][..], Vec::as_slice);
        sessions
            .iter()
            .filter(|session| {
                session.device.subject == subject && session.control.enqueue(downlink, &self.budget)
            })
            .count()
    }
}

impl EntityListener for SessionRegistry {
    fn on_change(&self, change: EntityChange) {
        let EntityKey { tenant, entity } = change.subject;
        match (entity.entity_type, change.what) {
            (EntityType::Device, ChangeKind::Deleted | ChangeKind::Credentials) => {
                self.close_device(DeviceId(entity.id), CloseReason::CredentialsChanged);
            }
            (EntityType::Tenant, ChangeKind::Deleted) => {
                self.close_all(Some(tenant), CloseReason::CredentialsChanged);
            }
            _ => {}
        }
    }
}

/// Keeps a session registered.
pub struct SessionGuard {
    sessions: Arc<SessionRegistry>,
    device: Arc<DeviceHandle>,
    control: Arc<SessionControl>,
}

impl SessionGuard {
    /// What the session shares with the rest of the platform.
    pub fn control(&self) -> &Arc<SessionControl> {
        &self.control
    }

    /// The device.
    pub fn device(&self) -> &Arc<DeviceHandle> {
        &self.device
    }

    /// Where the session comes from.
    pub fn origin(&self) -> SessionOrigin {
        let shard = self.sessions.shard(self.device.id).lock();
        let sessions = shard.get(&self.device.id).map_or(&[][..], Vec::as_slice);
        let own = sessions
            .iter()
            .find(|session| Arc::ptr_eq(&session.control, &self.control));
        own.map(|session| session.origin).unwrap_or_default()
    }

    /// Takes the session back before the guard is dropped. Returns whether the device has no open session now.
    pub fn end(&self) -> bool {
        let id = self.device.id;
        let mut shard = self.sessions.shard(id).lock();
        let Some(sessions) = shard.get_mut(&id) else {
            return true;
        };
        let before = sessions.len();
        sessions.retain(|session| !Arc::ptr_eq(&session.control, &self.control));
        if !self.control.is_one_shot() && sessions.len() < before {
            self.sessions.count_closed(self.device.subject.tenant);
        }
        let is_last = !sessions.iter().any(OpenSession::lasts);
        if sessions.is_empty() {
            shard.remove(&id);
        }
        is_last
    }
}

impl Drop for SessionGuard {
    fn drop(&mut self) {
        self.end();
    }
}
