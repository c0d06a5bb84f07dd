//! Open sessions of devices: who is connected, and how a session is told to end.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicUsize, Ordering};
use std::task::Waker;

use fieldline_model::{DeviceId, TenantId};
use parking_lot::Mutex;
use rustc_hash::FxHashMap;

use crate::devices::DeviceHandle;
use crate::events::{EntityChange, EntityListener};

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
}

impl CloseReason {
    const ALL: [Self; 5] = [
        Self::Replaced,
        Self::CredentialsChanged,
        Self::KeepAlive,
        Self::Inactive,
        Self::Shutdown,
    ];
}

/// What the rest of the platform shares with a connection: the wish that it end, and when it was last heard.
#[derive(Debug, Default)]
pub struct SessionControl {
    close: AtomicU8,
    heard_s: AtomicU32,
    waker: Mutex<Option<Waker>>,
}

impl SessionControl {
    /// Asks the connection to end; the first reason counts.
    pub fn close(&self, reason: CloseReason) {
        let _ = self
            .close
            .compare_exchange(0, reason as u8, Ordering::AcqRel, Ordering::Acquire);
        let waker = self.waker.lock().take();
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Why the connection should end, if it should.
    pub fn close_reason(&self) -> Option<CloseReason> {
        let code = self.close.load(Ordering::Acquire);
        CloseReason::ALL.into_iter().find(|reason| *reason as u8 == code)
    }

    /// Registers who is woken by [`close`](Self::close); returns the reason if it was called already.
    pub fn poll_close(&self, waker: &Waker) -> Option<CloseReason> {
        {
            let mut registered = self.waker.lock();
            match &mut *registered {
                Some(known) => known.clone_from(waker),
                None => *registered = Some(waker.clone()),
            }
        }
        self.close_reason()
    }

    /// Notes that the peer was heard, in seconds of whatever clock the transport uses.
    pub fn heard(&self, now_s: u32) {
        self.heard_s.store(now_s, Ordering::Relaxed);
    }

    /// When the peer was last heard.
    pub fn heard_at(&self) -> u32 {
        self.heard_s.load(Ordering::Relaxed)
    }
}

struct OpenSession {
    control: Arc<SessionControl>,
    device: Arc<DeviceHandle>,
}

const SHARDS: usize = 16;

/// The sessions of this node.
pub struct Sessions {
    shards: [Mutex<FxHashMap<DeviceId, Vec<OpenSession>>>; SHARDS],
    per_device: usize,
    open: AtomicUsize,
    closing: AtomicBool,
}

impl Sessions {
    /// A registry that allows `per_device` sessions of one device at a time; a further one replaces the oldest.
    pub fn new(per_device: usize) -> Arc<Self> {
        Arc::new(Self {
            shards: Default::default(),
            per_device: per_device.max(1),
            open: AtomicUsize::new(0),
            closing: AtomicBool::new(false),
        })
    }

    /// Registers a session; it is registered until the returned guard is dropped.
    pub fn open(self: &Arc<Self>, device: Arc<DeviceHandle>, control: Arc<SessionControl>) -> SessionGuard {
        let id = device.id;
        let replaced = {
            let mut shard = self.shard(id).lock();
            let sessions = shard.entry(id).or_default();
            let surplus = (sessions.len() + 1).saturating_sub(self.per_device);
            let replaced: Vec<_> = sessions.drain(..surplus).map(|session| session.control).collect();
            // Nearly always the only one.
            sessions.reserve_exact(1);
            sessions.push(OpenSession {
                control: control.clone(),
                device: device.clone(),
            });
            self.open.fetch_add(1, Ordering::Relaxed);
            self.open.fetch_sub(replaced.len(), Ordering::Relaxed);
            replaced
        };
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

    /// How many sessions are open.
    pub fn count(&self) -> usize {
        self.open.load(Ordering::Relaxed)
    }

    /// Whether a device has an open session.
    pub fn is_connected(&self, device: DeviceId) -> bool {
        self.shard(device)
            .lock()
            .get(&device)
            .is_some_and(|sessions| !sessions.is_empty())
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

    fn shard(&self, device: DeviceId) -> &Mutex<FxHashMap<DeviceId, Vec<OpenSession>>> {
        // The last byte of a time-ordered id is random.
        let [.., last] = *device.0.as_bytes();
        let [first, ..] = &self.shards;
        self.shards.get(usize::from(last) % SHARDS).unwrap_or(first)
    }
}

impl EntityListener for Sessions {
    fn on_change(&self, change: EntityChange) {
        match change {
            EntityChange::DeviceDeleted(_, device) | EntityChange::DeviceCredentialsChanged(_, device) => {
                self.close_device(device, CloseReason::CredentialsChanged);
            }
            EntityChange::TenantDeleted(tenant) => {
                self.close_all(Some(tenant), CloseReason::CredentialsChanged);
            }
            _ => {}
        }
    }
}

/// Keeps a session registered.
pub struct SessionGuard {
    sessions: Arc<Sessions>,
    device: Arc<DeviceHandle>,
    control: Arc<SessionControl>,
}

impl SessionGuard {
    /// What the session shares with the rest of the platform.
    pub fn control(&self) -> &SessionControl {
        &self.control
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
        self.sessions
            .open
            .fetch_sub(before - sessions.len(), Ordering::Relaxed);
        let is_last = sessions.is_empty();
        if is_last {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::devices::{DeviceDirectory, Options};
    use crate::fakes::{FakeStores, StandingClock};

    #[tokio::test]
    async fn a_session_ends_once_and_tells_whether_it_was_the_last() {
        let stores = FakeStores::new();
        stores.add_device("token");
        let clock = Arc::new(StandingClock(0.into()));
        let options = Options { cached_devices: 16 };
        let directory = DeviceDirectory::new(stores.entities(), stores.clone(), clock, &options);
        let found = directory.by_token("token").await.expect("the store serves");
        let device = found.expect("the token admits");

        let sessions = Sessions::new(2);
        let [first, second, third] =
            std::array::from_fn(|_| sessions.open(device.clone(), Arc::new(SessionControl::default())));
        assert_eq!(first.control().close_reason(), Some(CloseReason::Replaced));
        // A session that was replaced is not registered any more.
        assert_eq!((sessions.count(), first.end()), (2, false));
        assert!(!second.end() && third.end());
        assert_eq!((sessions.count(), sessions.is_connected(device.id)), (0, false));
        drop((first, second, third));
        assert_eq!(sessions.count(), 0);
    }
}
