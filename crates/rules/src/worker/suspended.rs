//! What a worker's messages wait for, and which of them wait too long.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

use fieldline_model::TenantId;
use rustc_hash::FxHashMap;
use tokio::sync::mpsc;
use tokio::task::AbortHandle;

use super::waits::WaitCompletion;
use super::walk::{DETACHED, MessageHandle};
use crate::script_pool::{ScriptCancelScope, ScriptPool};

/// What kind of thing a message waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WaitKind {
    /// It may be begun anew.
    Repeatable,
    /// It must not be done twice lightly.
    Outside,
    /// The scripts of a calculated field, which has taken in what the message brings: they go on without the message.
    Field,
}

/// How something that is waited for is ended.
pub(super) enum WaitCanceller {
    /// It is a task.
    Task(AbortHandle),
    /// It is a call of a script.
    Script(Arc<ScriptPool>, ScriptCancelScope, TenantId),
    /// It ends by itself.
    Stays,
}

impl WaitCanceller {
    fn end(&self) {
        match self {
            Self::Task(task) => task.abort(),
            Self::Script(pool, scope, tenant) => pool.cancel_scope(*scope, Some(*tenant)),
            Self::Stays => {}
        }
    }
}

/// Something that a message waits for.
struct PendingWait {
    handle: MessageHandle,
    tenant: TenantId,
    kind: WaitKind,
    ending: WaitCanceller,
}

/// How a message of a batch waits.
struct WaitingMessage {
    tenant: TenantId,
    /// When it began to wait for the first time.
    since: Instant,
    /// How much it waits for, and how many calls of others are among that.
    pending: u32,
    calls: u32,
    /// It has waited for calculated fields.
    fields: bool,
}

/// A message that waits for long.
pub(super) struct OverdueMessage {
    pub(super) handle: MessageHandle,
    pub(super) tenant: TenantId,
    /// It waits for something that must not be done twice lightly.
    pub(super) calls: bool,
    /// It waits for calculated fields, or has.
    pub(super) fields: bool,
}

/// All that a worker's messages wait for. What is dropped with it ends, but for what is acknowledged already and calls that
/// are under way.
pub(super) struct SuspendedWaits {
    waits: FxHashMap<u64, PendingWait>,
    tenants: FxHashMap<TenantId, usize>,
    waiters: FxHashMap<(u64, u32), (MessageHandle, WaitingMessage)>,
    last: u64,
    /// What comes back.
    pub(super) inbox: mpsc::UnboundedReceiver<WaitCompletion>,
    pub(super) outbox: mpsc::UnboundedSender<WaitCompletion>,
    /// What has come back while nobody was processing.
    pub(super) ready: VecDeque<WaitCompletion>,
    /// More may wait than usually do, until one of those that have come back goes on.
    pub(super) is_crowded: bool,
}

impl SuspendedWaits {
    pub(super) fn new() -> Self {
        let (outbox, inbox) = mpsc::unbounded_channel();
        Self {
            waits: FxHashMap::default(),
            tenants: FxHashMap::default(),
            waiters: FxHashMap::default(),
            last: 0,
            inbox,
            outbox,
            ready: VecDeque::new(),
            is_crowded: false,
        }
    }

    /// How many wait.
    pub(super) fn len(&self) -> usize {
        self.waits.len()
    }

    /// How many of a tenant wait.
    pub(super) fn of(&self, tenant: TenantId) -> usize {
        self.tenants.get(&tenant).copied().unwrap_or(0)
    }

    /// The tenant of which most wait.
    pub(super) fn most(&self) -> Option<TenantId> {
        let most = self.tenants.iter().max_by_key(|(_, count)| **count)?;
        Some(*most.0)
    }

    /// Starts something to wait for, and gives it its number.
    pub(super) fn add(
        &mut self,
        handle: MessageHandle,
        tenant: TenantId,
        kind: WaitKind,
        start: impl FnOnce(u64) -> WaitCanceller,
    ) {
        self.last += 1;
        let wait = PendingWait {
            handle,
            tenant,
            kind,
            ending: start(self.last),
        };
        self.waits.insert(self.last, wait);
        *self.tenants.entry(tenant).or_default() += 1;
        self.note_waiter(handle, tenant, kind);
    }

    /// Notes that a message waits, as of now unless it has waited before.
    pub(super) fn note_waiter(&mut self, handle: MessageHandle, tenant: TenantId, kind: WaitKind) {
        if handle.generation == DETACHED {
            return;
        }
        let (_, waiter) = self
            .waiters
            .entry((handle.generation, handle.entry))
            .or_insert_with(|| {
                let waiter = WaitingMessage {
                    tenant,
                    since: Instant::now(),
                    pending: 0,
                    calls: 0,
                    fields: false,
                };
                (handle, waiter)
            });
        waiter.pending += 1;
        waiter.calls += u32::from(kind == WaitKind::Outside);
        waiter.fields |= kind == WaitKind::Field;
    }

    /// It has come back; returns whether anybody still waits for it.
    pub(super) fn take(&mut self, number: u64) -> bool {
        let Some(wait) = self.waits.remove(&number) else {
            return false;
        };
        self.forget(&wait);
        true
    }

    fn forget(&mut self, wait: &PendingWait) {
        if let Some(count) = self.tenants.get_mut(&wait.tenant) {
            *count -= 1;
            if *count == 0 {
                self.tenants.remove(&wait.tenant);
            }
        }
        if let Some((_, waiter)) = self.waiters.get_mut(&(wait.handle.generation, wait.handle.entry)) {
            waiter.pending = waiter.pending.saturating_sub(1);
            waiter.calls = waiter
                .calls
                .saturating_sub(u32::from(wait.kind == WaitKind::Outside));
        }
    }

    /// Ends what the messages wait for that are meant: nothing of it comes back, but what fields have taken in.
    pub(super) fn cancel(&mut self, is_meant: impl Fn(&MessageHandle, TenantId) -> bool) {
        let gone: Vec<_> = self
            .waits
            .extract_if(|_, wait| wait.kind != WaitKind::Field && is_meant(&wait.handle, wait.tenant))
            .collect();
        for (_, wait) in gone {
            wait.ending.end();
            self.forget(&wait);
        }
        self.waiters
            .retain(|_, (handle, waiter)| !is_meant(handle, waiter.tenant));
    }

    /// The same of one message, which costs nothing where it waits for nothing.
    pub(super) fn cancel_message(&mut self, generation: u64, entry: u32) {
        let waiter = self.waiters.remove(&(generation, entry));
        if waiter.is_some_and(|(_, waiter)| waiter.pending > 0) {
            self.cancel(|handle, _| (handle.generation, handle.entry) == (generation, entry));
        }
    }

    /// The handles of a tenant's messages that wait, each once.
    pub(super) fn handles_of(&self, tenant: TenantId) -> Vec<MessageHandle> {
        let waiters = self.waiters.values();
        let of_tenant = waiters.filter(|(_, waiter)| waiter.tenant == tenant);
        of_tenant.map(|(handle, _)| *handle).collect()
    }

    /// The messages that have begun to wait before a time, but for those that nobody asks about any more.
    pub(super) fn overdue(
        &mut self,
        before: Instant,
        is_wanted: impl Fn(&MessageHandle) -> bool,
    ) -> Vec<OverdueMessage> {
        self.waiters.retain(|_, (handle, _)| is_wanted(handle));
        let waiters = self.waiters.values();
        let late = waiters.filter(|(_, waiter)| waiter.since <= before);
        late.map(|(handle, waiter)| OverdueMessage {
            handle: *handle,
            tenant: waiter.tenant,
            calls: waiter.calls > 0,
            fields: waiter.fields,
        })
        .collect()
    }

    /// Forgets since when messages have waited, as a new batch begins.
    pub(super) fn forget_waiters(&mut self) {
        self.waiters.clear();
    }
}

impl Drop for SuspendedWaits {
    fn drop(&mut self) {
        for wait in self.waits.values() {
            if wait.kind != WaitKind::Outside && wait.handle.generation != DETACHED {
                wait.ending.end();
            }
        }
    }
}
