//! The calls that wait for a device to take or answer them, in memory.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use fieldline_core::options::HumanDuration;
use fieldline_core::ports::DeviceRpcError;
use fieldline_model::entity::RpcStatus;
use fieldline_model::{DeviceId, EntityKey, TenantId};
use rustc_hash::{FxHashMap, FxHashSet};
use tokio::sync::oneshot;
use uuid::Uuid;

use super::options::{Options, RpcSubmitStrategy};
use crate::downlink::ToDeviceRpc;

/// What all calls may take together.
const MAX_LOAD: RpcLoad = RpcLoad {
    count: 100_000,
    bytes: 128 << 20,
};
/// A tenant may take a quarter of it, so that the others can call their devices.
const TENANT_PART: usize = 4;
/// What the calls of one device may take.
const MAX_DEVICE_LOAD: RpcLoad = RpcLoad {
    count: 1_000,
    bytes: 8 << 20,
};
/// Devices with stored calls that are remembered; beyond it the store is asked about every device that comes.
const MAX_STORED: usize = 1_000_000;

/// What a caller gets: the text of the answer, if there is one.
pub(super) type RpcResult = Result<Option<String>, DeviceRpcError>;

/// How many calls there are, and what they take.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct RpcLoad {
    count: usize,
    bytes: usize,
}

impl RpcLoad {
    const fn one(bytes: usize) -> Self {
        Self { count: 1, bytes }
    }

    const fn plus(self, other: Self) -> Self {
        Self {
            count: self.count + other.count,
            bytes: self.bytes + other.bytes,
        }
    }

    const fn minus(self, other: Self) -> Self {
        Self {
            count: self.count.saturating_sub(other.count),
            bytes: self.bytes.saturating_sub(other.bytes),
        }
    }

    const fn fits(self, most: Self, part: usize) -> bool {
        self.count <= most.count / part && self.bytes <= most.bytes / part
    }
}

/// A call that waits.
pub(super) struct PendingRpc {
    pub(super) rpc: Arc<ToDeviceRpc>,
    /// Who waits for the answer.
    reply_sender: Option<oneshot::Sender<RpcResult>>,
    /// It may be sent: a persistent one only once it is stored.
    pub(super) is_ready: bool,
    /// A session has it, and it is not to be sent to this session again.
    pub(super) is_in_flight: bool,
    /// A session has taken it at some time.
    sent: bool,
    /// The device has acknowledged it.
    pub(super) delivered: bool,
    /// What was last told of a persistent one.
    reported: RpcStatus,
    /// Until when the device has to acknowledge it, milliseconds.
    ack_by: Option<i64>,
    /// Until when the device has to answer it, so that the next one is sent.
    answer_by: Option<i64>,
    retries: u32,
    tried: u32,
    /// When it is looked at next, as [`PendingRpcs`] has noted it; milliseconds.
    due: i64,
}

impl PendingRpc {
    /// Tells the caller, if one still waits.
    pub(super) fn resolve(&mut self, outcome: RpcResult) {
        if let Some(caller) = self.reply_sender.take() {
            // Nobody waits any more.
            let _ = caller.send(outcome);
        }
    }

    /// What the caller is told when the time is over.
    pub(super) fn timeout_error(&self) -> DeviceRpcError {
        if self.sent {
            DeviceRpcError::Timeout
        } else {
            DeviceRpcError::NoActiveConnection
        }
    }

    /// A session has taken it.
    pub(super) fn mark_taken(&mut self) {
        self.sent = true;
        self.is_in_flight = true;
    }

    /// Whether it is news that it stands so with the call. What was delivered stays that, however often it is sent again.
    pub(super) fn update_status(&mut self, status: RpcStatus) -> bool {
        let is_news = self.reported != status && self.reported != RpcStatus::Delivered;
        if is_news {
            self.reported = status;
        }
        is_news
    }

    /// Notes that one of its times is over. `None` where that makes no difference.
    fn check_deadlines(&mut self, now_ms: i64, sends_all: bool) -> Option<DeadlineAction> {
        let is_over = |until: Option<i64>| until.is_some_and(|until| until <= now_ms);
        if self.rpc.expires_ms <= now_ms {
            return Some(DeadlineAction::Over(RpcEndReason::Expired));
        }
        if is_over(self.answer_by) {
            return Some(DeadlineAction::Over(RpcEndReason::Unanswered));
        }
        if !is_over(self.ack_by) {
            return None;
        }
        self.ack_by = None;
        if sends_all && !self.rpc.persistent {
            return None;
        }
        self.is_in_flight = sends_all;
        if self.tried >= self.retries {
            return Some(DeadlineAction::Over(RpcEndReason::GivenUp));
        }
        self.tried += 1;
        Some(DeadlineAction::Again)
    }

    /// The first of its times to be over.
    fn next_due(&self) -> i64 {
        let times = [self.ack_by, self.answer_by].into_iter().flatten();
        times.fold(self.rpc.expires_ms, i64::min)
    }

    /// How long it is, bytes.
    fn load(&self) -> RpcLoad {
        RpcLoad::one(self.rpc.weight())
    }
}

/// What has become of calls whose device was waited for.
#[derive(Default)]
pub(super) struct OverdueRpcs {
    /// Their time is over.
    pub(super) expired: Vec<PendingRpc>,
    /// Not acknowledged in time, to be sent again.
    pub(super) again: Vec<Arc<ToDeviceRpc>>,
    /// Not acknowledged in time, however often they were sent, which is how often.
    pub(super) given_up: Vec<(PendingRpc, u32)>,
    /// Acknowledged, but not answered before the next call is to be sent.
    pub(super) unanswered: Vec<PendingRpc>,
}

/// Calls by device and number, which is the order in which they came.
pub(super) struct PendingRpcs {
    devices: FxHashMap<DeviceId, DeviceRpcQueue>,
    tenants: FxHashMap<TenantId, RpcLoad>,
    load: RpcLoad,
    /// When which call is to be looked at, the first first.
    due: BTreeSet<(i64, DeviceId, i32)>,
    last: i32,
    /// Devices whose further calls are in the store.
    stored: FxHashSet<EntityKey>,
    all_may_be_stored: bool,
    strategy: RpcSubmitStrategy,
    acknowledge_ms: i64,
    response_ms: i64,
    max_retries: u32,
    keeps_unacknowledged: bool,
}

#[derive(Default)]
struct DeviceRpcQueue {
    by_number: BTreeMap<i32, PendingRpc>,
    load: RpcLoad,
}

impl PendingRpcs {
    /// Numbers go on from where those of an earlier run are not met again.
    pub(super) fn starting_at(number: i32, options: &Options) -> Self {
        let millis = |span: HumanDuration| i64::try_from(span.0.as_millis()).unwrap_or(i64::MAX);
        Self {
            devices: FxHashMap::default(),
            tenants: FxHashMap::default(),
            load: RpcLoad::default(),
            due: BTreeSet::new(),
            last: number.max(0),
            stored: FxHashSet::default(),
            all_may_be_stored: false,
            strategy: options.submit_strategy,
            acknowledge_ms: millis(options.acknowledge_timeout),
            response_ms: millis(options.response_timeout),
            max_retries: options.max_retries,
            keeps_unacknowledged: options.close_on_delivery_timeout,
        }
    }

    /// The next number, never negative.
    pub(super) fn next_number(&mut self) -> i32 {
        self.last = self.last.checked_add(1).unwrap_or(1);
        self.last
    }

    /// Whether all calls are sent at once.
    pub(super) fn is_burst(&self) -> bool {
        self.strategy == RpcSubmitStrategy::Burst
    }

    /// Whether there is room for the call, in all and for its tenant and device.
    pub(super) fn has_room(&self, call: &ToDeviceRpc) -> bool {
        let more = RpcLoad::one(call.weight());
        let of_tenant = self.tenants.get(&call.tenant).copied().unwrap_or_default();
        let of_device = self.devices.get(&call.device).map(|calls| calls.load);
        self.load.plus(more).fits(MAX_LOAD, 1)
            && of_tenant.plus(more).fits(MAX_LOAD, TENANT_PART)
            && of_device.unwrap_or_default().plus(more).fits(MAX_DEVICE_LOAD, 1)
    }

    /// Adds a call; one that is known already stays as it is. Returns whether it is new.
    pub(super) fn add(
        &mut self,
        call: Arc<ToDeviceRpc>,
        caller: Option<oneshot::Sender<RpcResult>>,
        retries: Option<u32>,
        is_ready: bool,
    ) -> bool {
        let calls = self.devices.entry(call.device).or_default();
        if calls.by_number.contains_key(&call.number) {
            return false;
        }
        let (tenant, number, due) = (call.tenant, call.number, call.expires_ms);
        self.due.insert((due, call.device, number));
        let pending = PendingRpc {
            reply_sender: caller,
            is_ready,
            is_in_flight: false,
            sent: false,
            delivered: false,
            reported: RpcStatus::Queued,
            ack_by: None,
            answer_by: None,
            retries: retries.unwrap_or(self.max_retries).min(self.max_retries),
            tried: 0,
            due,
            rpc: call,
        };
        let more = pending.load();
        calls.by_number.insert(number, pending);
        calls.load = calls.load.plus(more);
        let of_tenant = self.tenants.entry(tenant).or_default();
        *of_tenant = of_tenant.plus(more);
        self.load = self.load.plus(more);
        true
    }

    pub(super) fn get(&mut self, device: DeviceId, number: i32) -> Option<&mut PendingRpc> {
        self.devices.get_mut(&device)?.by_number.get_mut(&number)
    }

    /// Changes the times of a call, and notes when it is to be looked at then. `None` where it is not there.
    fn with_times<T>(&mut self, call: &ToDeviceRpc, change: impl FnOnce(&mut PendingRpc) -> T) -> Option<T> {
        let (device, number) = (call.device, call.number);
        let calls = self.devices.get_mut(&device)?;
        let pending = calls.by_number.get_mut(&number)?;
        let changed = change(pending);
        let due = pending.next_due();
        let before = std::mem::replace(&mut pending.due, due);
        if before != due {
            self.due.remove(&(before, device, number));
            self.due.insert((due, device, number));
        }
        Some(changed)
    }

    pub(super) fn remove(&mut self, device: DeviceId, number: i32) -> Option<PendingRpc> {
        let calls = self.devices.get_mut(&device)?;
        let removed = calls.by_number.remove(&number)?;
        self.due.remove(&(removed.due, device, number));
        let less = removed.load();
        calls.load = calls.load.minus(less);
        if calls.by_number.is_empty() {
            self.devices.remove(&device);
        }
        if let Some(of_tenant) = self.tenants.get_mut(&removed.rpc.tenant) {
            *of_tenant = of_tenant.minus(less);
            if of_tenant.count == 0 {
                self.tenants.remove(&removed.rpc.tenant);
            }
        }
        self.load = self.load.minus(less);
        Some(removed)
    }

    /// Removes a call by its identity.
    pub(super) fn remove_id(&mut self, device: DeviceId, id: Uuid) -> Option<PendingRpc> {
        let calls = &self.devices.get(&device)?.by_number;
        let (number, _) = calls.iter().find(|(_, pending)| pending.rpc.id == id)?;
        let number = *number;
        self.remove(device, number)
    }

    /// A call was written to a connection that acknowledges, at that time; without a time the connection itself says when that
    /// is over. Returns whether it is news.
    pub(super) fn await_acknowledgement(&mut self, call: &ToDeviceRpc, since_ms: Option<i64>) -> bool {
        let after = |since_ms: i64| since_ms.saturating_add(self.acknowledge_ms);
        let by = since_ms.map(|since_ms| after(since_ms).min(call.expires_ms));
        let is_news = self.with_times(call, |pending| {
            pending.mark_taken();
            // Another connection's time, if there is one, still counts.
            if !pending.delivered && (by.is_some() || pending.ack_by.is_none()) {
                pending.ack_by = by;
            }
            pending.update_status(RpcStatus::Sent)
        });
        is_news.unwrap_or(false)
    }

    /// Nobody waits any longer for the device to acknowledge a call.
    pub(super) fn give_up(&mut self, call: &ToDeviceRpc, now_ms: i64) {
        self.with_times(call, |pending| {
            if !pending.delivered {
                pending.ack_by = Some(now_ms);
            }
        });
    }

    /// No session has a call any more, unless the device has acknowledged it. Returns whether that is so.
    pub(super) fn take_back(&mut self, call: &ToDeviceRpc) -> bool {
        let pending = self.get(call.device, call.number);
        let pending = pending.filter(|pending| !pending.delivered && pending.ack_by.is_none());
        pending.is_some_and(|pending| std::mem::take(&mut pending.is_in_flight))
    }

    /// The device has acknowledged a call that it has to answer. Returns whether that is news.
    pub(super) fn mark_acknowledged(&mut self, call: &ToDeviceRpc, now_ms: i64) -> bool {
        let waits = self.strategy == RpcSubmitStrategy::SequentialOnResponseFromDevice;
        let by = waits.then(|| now_ms.saturating_add(self.response_ms));
        let is_news = self.with_times(call, |pending| {
            pending.mark_taken();
            pending.ack_by = None;
            if !pending.delivered {
                pending.answer_by = by;
            }
            pending.delivered = true;
            pending.update_status(RpcStatus::Delivered)
        });
        is_news.unwrap_or(false)
    }

    /// The calls that the device may have now, in their order.
    pub(super) fn sendable(&mut self, device: DeviceId) -> impl Iterator<Item = &mut PendingRpc> {
        use RpcSubmitStrategy as Strategy;
        let (candidates, skips_delivered, most) = match self.strategy {
            Strategy::Burst => (usize::MAX, false, usize::MAX),
            Strategy::SequentialOnAckFromDevice => (usize::MAX, true, 1),
            Strategy::SequentialOnResponseFromDevice => (1, true, 1),
        };
        self.devices
            .get_mut(&device)
            .into_iter()
            .flat_map(|calls| calls.by_number.values_mut())
            .filter(|pending| pending.is_ready)
            .take(candidates)
            .filter(move |pending| !(skips_delivered && pending.delivered))
            .take(most)
    }

    /// Whether the device has none.
    pub(super) fn is_idle(&self, device: DeviceId) -> bool {
        !self.devices.contains_key(&device)
    }

    /// Takes out what is over, and takes note of devices that have not acknowledged in time. Where all calls are sent at
    /// once, one that is not persistent just waits for its end. Looks at those alone whose time has come.
    pub(super) fn take_late(&mut self, now_ms: i64) -> OverdueRpcs {
        let mut late = OverdueRpcs::default();
        let sends_all = self.is_burst();
        while let Some((due, device, number)) = self.due.first().copied()
            && due <= now_ms
        {
            let Some(call) = self.get(device, number).map(|pending| Arc::clone(&pending.rpc)) else {
                self.due.pop_first();
                continue;
            };
            let why = self.with_times(&call, |pending| pending.check_deadlines(now_ms, sends_all));
            let why = match why.flatten() {
                None => continue,
                Some(DeadlineAction::Again) => {
                    late.again.push(call);
                    continue;
                }
                Some(DeadlineAction::Over(why)) => why,
            };
            let Some(pending) = self.remove(device, number) else {
                continue;
            };
            match why {
                RpcEndReason::Expired => late.expired.push(pending),
                RpcEndReason::Unanswered => late.unanswered.push(pending),
                RpcEndReason::GivenUp => {
                    let tried = pending.tried;
                    late.given_up.push((pending, tried));
                }
            }
        }
        late
    }

    /// Whether a call that was not acknowledged waits for the next connection rather than to fail.
    pub(super) const fn keeps_unacknowledged(&self) -> bool {
        self.keeps_unacknowledged
    }

    /// Puts back a call that was given up, to be sent on the next connection.
    pub(super) fn put_back(&mut self, pending: PendingRpc) {
        let caller = pending.reply_sender;
        self.add(pending.rpc, caller, Some(pending.retries), true);
    }

    /// Remembers that the store has calls of a device that are not here.
    pub(super) fn remember_stored(&mut self, subject: EntityKey) {
        if self.stored.len() < MAX_STORED {
            self.stored.insert(subject);
        } else {
            self.all_may_be_stored = true;
        }
    }

    /// Whether the store is known to have calls of the device that are not here.
    pub(super) fn has_stored(&self, subject: EntityKey) -> bool {
        self.stored.contains(&subject)
    }

    /// Whether the store may have calls of the device that are not here; forgets it.
    pub(super) fn take_stored(&mut self, subject: EntityKey) -> bool {
        self.stored.remove(&subject) || self.all_may_be_stored
    }

    pub(super) fn is_empty(&self) -> bool {
        self.load.count == 0
    }

    /// When each call is to be looked at, as [`PendingRpcs`] has noted it, and as the calls say.
    #[cfg(test)]
    pub(super) fn due(&self) -> [BTreeSet<(i64, DeviceId, i32)>; 2] {
        let calls = self.devices.values().flat_map(|calls| calls.by_number.values());
        let as_they_say = |pending: &PendingRpc| (pending.next_due(), pending.rpc.device, pending.rpc.number);
        [self.due.clone(), calls.map(as_they_say).collect()]
    }
}

/// What follows from a time that is over.
enum DeadlineAction {
    /// The call is sent again.
    Again,
    /// It is taken out.
    Over(RpcEndReason),
}

/// Why a call is taken out.
#[derive(Clone, Copy)]
enum RpcEndReason {
    Expired,
    Unanswered,
    GivenUp,
}
