//! The calls that wait for a device to take or answer them, in memory.

use std::collections::BTreeMap;
use std::sync::Arc;

use fieldline_model::{DeviceId, Subject};
use rustc_hash::{FxHashMap, FxHashSet};
use tokio::sync::oneshot;
use uuid::Uuid;

use crate::downlink::DeviceCall;
use crate::ports::DeviceRpcError;

/// Calls of all devices together.
const MAX_CALLS: usize = 100_000;
/// Calls of one device.
const MAX_OF_DEVICE: usize = 1_000;
/// Devices with stored calls that are remembered; beyond it the store is asked about every device that comes.
const MAX_STORED: usize = 1_000_000;
/// How often a call is sent again that a device has not acknowledged, at most.
const MAX_RETRIES: u32 = 5;
/// How long a device may take to acknowledge a call, milliseconds.
const ACKNOWLEDGE_MS: i64 = 10_000;

/// What a caller gets: the text of the answer, if there is one.
pub(super) type Outcome = Result<Option<String>, DeviceRpcError>;

/// A call that waits.
pub(super) struct Pending {
    pub(super) call: Arc<DeviceCall>,
    /// Who waits for the answer.
    caller: Option<oneshot::Sender<Outcome>>,
    /// A session has taken it.
    pub(super) sent: bool,
    /// The device has acknowledged it.
    pub(super) delivered: bool,
    /// Until when it has to, milliseconds.
    ack_by: Option<i64>,
    retries: u32,
    tried: u32,
}

impl Pending {
    /// Tells the caller, if one still waits.
    pub(super) fn resolve(&mut self, outcome: Outcome) {
        if let Some(caller) = self.caller.take() {
            // Nobody waits any more.
            let _ = caller.send(outcome);
        }
    }

    /// What the caller is told when the time is over.
    pub(super) fn late(&self) -> DeviceRpcError {
        if self.sent {
            DeviceRpcError::Timeout
        } else {
            DeviceRpcError::NoActiveConnection
        }
    }
}

/// What a device that has not acknowledged a call in time means for it.
pub(super) enum Unacknowledged {
    /// It is sent again when the device comes back.
    Again(Arc<DeviceCall>),
    /// It was sent so many times.
    GivenUp(Arc<DeviceCall>, u32),
}

/// Calls by device and number, which is the order in which they came.
#[derive(Default)]
pub(super) struct Book {
    devices: FxHashMap<DeviceId, BTreeMap<i32, Pending>>,
    count: usize,
    last: i32,
    /// Devices whose further calls are in the store.
    stored: FxHashSet<Subject>,
    all_may_be_stored: bool,
}

impl Book {
    /// Numbers go on from where those of an earlier run are not met again.
    pub(super) fn starting_at(number: i32) -> Self {
        Self {
            last: number.max(0),
            ..Self::default()
        }
    }

    /// The next number, never negative.
    pub(super) fn number(&mut self) -> i32 {
        self.last = self.last.checked_add(1).unwrap_or(1);
        self.last
    }

    pub(super) fn has_room(&self, device: DeviceId) -> bool {
        self.count < MAX_CALLS
            && self
                .devices
                .get(&device)
                .is_none_or(|calls| calls.len() < MAX_OF_DEVICE)
    }

    /// Adds a call; one that is known already stays as it is. Returns whether it is new.
    pub(super) fn add(
        &mut self,
        call: Arc<DeviceCall>,
        caller: Option<oneshot::Sender<Outcome>>,
        retries: Option<u32>,
    ) -> bool {
        let calls = self.devices.entry(call.device).or_default();
        if calls.contains_key(&call.number) {
            return false;
        }
        let pending = Pending {
            caller,
            sent: false,
            delivered: false,
            ack_by: None,
            retries: retries.unwrap_or(MAX_RETRIES).min(MAX_RETRIES),
            tried: 0,
            call: call.clone(),
        };
        calls.insert(call.number, pending);
        self.count += 1;
        true
    }

    pub(super) fn get(&mut self, device: DeviceId, number: i32) -> Option<&mut Pending> {
        self.devices.get_mut(&device)?.get_mut(&number)
    }

    pub(super) fn remove(&mut self, device: DeviceId, number: i32) -> Option<Pending> {
        let calls = self.devices.get_mut(&device)?;
        let removed = calls.remove(&number);
        if calls.is_empty() {
            self.devices.remove(&device);
        }
        self.count -= usize::from(removed.is_some());
        removed
    }

    /// Removes a call by its identity.
    pub(super) fn remove_id(&mut self, device: DeviceId, id: Uuid) -> Option<Pending> {
        let calls = self.devices.get(&device)?;
        let (number, _) = calls.iter().find(|(_, pending)| pending.call.id == id)?;
        let number = *number;
        self.remove(device, number)
    }

    /// A call was written to a connection that acknowledges.
    pub(super) fn await_acknowledgement(&mut self, call: &DeviceCall, now_ms: i64) {
        if let Some(pending) = self.get(call.device, call.number) {
            pending.sent = true;
            pending.ack_by = Some(now_ms.saturating_add(ACKNOWLEDGE_MS).min(call.expires_ms));
        }
    }

    /// The calls of a device in their order.
    pub(super) fn of(&mut self, device: DeviceId) -> impl Iterator<Item = &mut Pending> {
        self.devices
            .get_mut(&device)
            .into_iter()
            .flat_map(BTreeMap::values_mut)
    }

    /// Whether the device has none.
    pub(super) fn is_idle(&self, device: DeviceId) -> bool {
        !self.devices.contains_key(&device)
    }

    /// Takes out those whose time is over.
    pub(super) fn take_expired(&mut self, now_ms: i64) -> Vec<Pending> {
        let is_over = |pending: &Pending| pending.call.expires_ms <= now_ms;
        let over: Vec<_> = self
            .all()
            .filter(|pending| is_over(pending))
            .map(|pending| (pending.call.device, pending.call.number))
            .collect();
        over.into_iter()
            .filter_map(|(device, number)| self.remove(device, number))
            .collect()
    }

    /// Takes note of devices that have not acknowledged a persistent call in time. Those of others just wait for their end.
    pub(super) fn take_unacknowledged(&mut self, now_ms: i64) -> Vec<Unacknowledged> {
        let mut late = Vec::new();
        for pending in self.devices.values_mut().flat_map(BTreeMap::values_mut) {
            if pending.ack_by.is_none_or(|until| until > now_ms) {
                continue;
            }
            pending.ack_by = None;
            if !pending.call.persistent {
                continue;
            }
            late.push(if pending.tried < pending.retries {
                pending.tried += 1;
                Unacknowledged::Again(pending.call.clone())
            } else {
                Unacknowledged::GivenUp(pending.call.clone(), pending.tried)
            });
        }
        for gone in &late {
            if let Unacknowledged::GivenUp(call, _) = gone {
                self.remove(call.device, call.number);
            }
        }
        late
    }

    fn all(&self) -> impl Iterator<Item = &Pending> {
        self.devices.values().flat_map(BTreeMap::values)
    }

    /// Remembers that the store has calls of a device that are not here.
    pub(super) fn remember_stored(&mut self, subject: Subject) {
        if self.stored.len() < MAX_STORED {
            self.stored.insert(subject);
        } else {
            self.all_may_be_stored = true;
        }
    }

    /// Whether the store may have calls of the device that are not here; forgets it.
    pub(super) fn take_stored(&mut self, subject: Subject) -> bool {
        self.stored.remove(&subject) || self.all_may_be_stored
    }

    pub(super) fn is_empty(&self) -> bool {
        self.count == 0
    }
}

impl Pending {
    /// It was acknowledged: nothing has to come any more but the answer.
    pub(super) fn acknowledged(&mut self) {
        self.sent = true;
        self.delivered = true;
        self.ack_by = None;
    }
}
