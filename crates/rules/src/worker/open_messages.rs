//! The messages that a worker has in hand: how they begin and end, and what becomes of those that cannot go on.

use std::sync::Arc;

use fieldline_model::message::QueueMessage;
use fieldline_model::{EntityKey, RuleNodeId, TenantId};
use tracing::warn;

use super::batch::MessageBatch;
use super::keyed_states::KeyedStates;
use super::late_messages::LateMessageTable;
use super::suspended::SuspendedWaits;
use super::waits::TOO_MANY_WAITING_ERROR;
use super::walk::{DETACHED, MessageHandle, NodeRef};
use crate::engine::QueueHandle;
use crate::events::EventRecorder;
use crate::fields::FIELD_MESSAGE;
use crate::stats::LastFailure;

/// The messages that a worker has in hand.
pub(super) struct OpenMessages {
    queue: Arc<QueueHandle>,
    events: Arc<EventRecorder>,
    /// Those that the worker waits for.
    pub(super) batch: MessageBatch,
    /// Those that go on although their batch does not wait for them any more.
    pub(super) late: LateMessageTable,
    /// What they wait for.
    pub(super) suspended: SuspendedWaits,
}

impl OpenMessages {
    pub(super) fn new(queue: Arc<QueueHandle>, events: Arc<EventRecorder>) -> Self {
        Self {
            batch: MessageBatch::default(),
            late: LateMessageTable::new(queue.clone()),
            suspended: SuspendedWaits::new(),
            queue,
            events,
        }
    }

    /// Something of a message has begun.
    pub(super) fn begin(&mut self, handle: MessageHandle) {
        if self.batch.is_current(handle) {
            self.batch.begin_of(handle.entry);
        } else {
            self.late.begin(handle);
        }
    }

    /// Something of a message has ended.
    pub(super) fn end(
        &mut self,
        handle: MessageHandle,
        failure: Option<LastFailure>,
        states: &mut KeyedStates,
    ) {
        if self.batch.is_current(handle) {
            self.batch.end_of(handle.entry, failure);
        } else {
            self.late.end(handle, states);
        }
    }

    /// Something of a message has failed.
    pub(super) fn fail(
        &mut self,
        handle: MessageHandle,
        place: Option<&NodeRef>,
        error: &str,
        states: &mut KeyedStates,
    ) {
        let node = place.and_then(NodeRef::node);
        let failure = LastFailure {
            chain: place.map_or_else(String::new, |place| place.chain.name.to_string()),
            node: node.map_or_else(String::new, |node| node.name.to_string()),
            error: error.to_owned(),
        };
        self.end(handle, Some(failure), states);
    }

    /// Gives a message up, with all that it has become so far.
    pub(super) fn abort(&mut self, handle: MessageHandle, error: &str, states: &mut KeyedStates) {
        tracing::warn!(error, "gave a message of a rule chain up");
        if self.batch.is_current(handle) {
            let failure = LastFailure {
                chain: String::new(),
                node: String::new(),
                error: error.to_owned(),
            };
            self.batch.abort(handle.entry, failure);
        } else {
            self.late.end_all(handle, states);
        }
    }

    /// The handle of a message, or that of nobody's where the message does not wait for it any more: what a field has taken in
    /// leads to what it leads to all the same.
    pub(super) fn or_detached(&self, handle: MessageHandle) -> MessageHandle {
        if handle.generation == DETACHED || self.batch.is_current(handle) || self.late.has(handle) {
            return handle;
        }
        MessageHandle {
            generation: DETACHED,
            ..handle
        }
    }

    /// Whether a message of the batch may leave it, as far as is known without its record.
    pub(super) fn may_divert(&self, handle: MessageHandle) -> bool {
        self.queue.role.open_lanes().is_some()
            && !self.batch.is_diverting_stopped
            && handle.generation != DETACHED
            && self.batch.is_current(handle)
            && self.batch.may_divert(handle.entry)
    }

    /// Notes a message that belongs to this partition, and where it has come home to.
    pub(super) fn pin_local_message(&mut self, index: u32, message: &QueueMessage) {
        match &message.from {
            Some((node, label)) if label.is_empty() => self.batch.pin(index, Some(*node)),
            None if message.msg_type.name() == FIELD_MESSAGE => self.batch.pin(index, None),
            _ => {}
        }
    }

    /// A message leaves the batch, with all that it waits for; what it has done so far, it does again.
    pub(super) fn divert(&mut self, index: u32) {
        self.suspended
            .cancel_message(self.batch.generation_of(index), index);
        self.batch.divert(index);
    }

    /// Ends a message that cannot go on where it is: it leaves the batch where it may, else it has failed.
    pub(super) fn drop_message(
        &mut self,
        handle: MessageHandle,
        tenant: TenantId,
        error: &str,
        states: &mut KeyedStates,
    ) {
        self.queue.role.mark_slow(tenant);
        if self.may_divert(handle) {
            self.divert(handle.entry);
        } else if self.batch.is_current(handle) {
            self.abort(handle, error, states);
        } else {
            let entity = tenant.into();
            self.queue
                .give_up(EntityKey { tenant, entity }, error, &self.events);
            self.late.end_all(handle, states);
        }
    }

    /// Makes room where more wait than may: whoever has most of them waiting gives way.
    pub(super) fn shed_waits(&mut self, states: &mut KeyedStates) {
        let Some(tenant) = self.suspended.most() else {
            return;
        };
        warn!(%tenant, queue = %self.queue.name, "too many messages wait, those of one tenant give way");
        self.queue.role.mark_slow(tenant);
        for handle in self.suspended.handles_of(tenant) {
            if !self.batch.is_under_way(handle) {
                continue;
            }
            if self.may_divert(handle) {
                self.divert(handle.entry);
            } else if self.batch.is_current(handle) {
                self.abort(handle, TOO_MANY_WAITING_ERROR, states);
            }
        }
        // What is left has been acknowledged already, or goes on in the background.
        let before = self.suspended.of(tenant);
        self.suspended.cancel(|_, of| of == tenant);
        let entity = tenant.into();
        for _ in self.suspended.of(tenant)..before {
            self.queue
                .give_up(EntityKey { tenant, entity }, TOO_MANY_WAITING_ERROR, &self.events);
        }
        self.late.end_tenant(tenant, states);
    }

    /// Whether a message has come home to this node, and goes on in its tenant's lane from there.
    pub(super) fn goes_on_in_lane(
        &self,
        handle: MessageHandle,
        node: Option<RuleNodeId>,
        tenant: TenantId,
    ) -> bool {
        handle.generation != DETACHED
            && node.is_some()
            && self
                .queue
                .role
                .open_lanes()
                .is_some_and(|lanes| lanes.is_slow(tenant))
            && self.batch.is_current(handle)
            && self.batch.home_of(handle.entry) == node
    }
}
