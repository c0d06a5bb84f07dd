//! Messages that begin, end and fail, as their batch sees it.

use fieldline_model::TenantId;

use super::RuleWorker;
use super::walk::{MessageHandle, NodeRef};
use crate::stats::LastFailure;

impl RuleWorker {
    pub(super) fn handle(&self, entry: u32) -> MessageHandle {
        MessageHandle {
            generation: self.batch.generation_of(entry),
            entry,
            partition: self.local.partition,
            home: self.lane.home_of(entry),
        }
    }

    pub(super) fn begin(&mut self, handle: MessageHandle) {
        if self.batch.is_current(handle) {
            self.batch.begin_of(handle.entry);
        } else {
            self.late.begin(handle);
        }
    }

    pub(super) fn end(&mut self, handle: MessageHandle, failure: Option<LastFailure>) {
        if self.batch.is_current(handle) {
            self.batch.end_of(handle.entry, failure);
        } else {
            self.end_of_late(handle);
        }
    }

    pub(super) fn fail(&mut self, handle: MessageHandle, place: Option<&NodeRef>, error: &str) {
        let node = place.and_then(NodeRef::node);
        let failure = LastFailure {
            chain: place.map_or_else(String::new, |place| place.chain.name.to_string()),
            node: node.map_or_else(String::new, |node| node.name.to_string()),
            error: error.to_owned(),
        };
        self.end(handle, Some(failure));
    }

    pub(super) fn note_failure(&self, place: &NodeRef, error: &str) {
        if let Some(watch) = &self.node_activity {
            watch.lock().count_failure(place, error);
        }
    }

    pub(super) fn handle_panic(&mut self, handle: MessageHandle, place: Option<&NodeRef>, tenant: TenantId) {
        let error = "the rule node has panicked";
        if let Some((place, node)) = place.and_then(|place| Some((place, place.node()?))) {
            tracing::error!(chain = %place.chain.name, node = %node.name, error);
            self.shared.events.error(tenant, node.id.into(), "onMsg", error);
            self.note_failure(place, error);
        }
        metrics::counter!("fieldline_rules_panics_total").increment(1);
        self.fail(handle, place, error);
    }

    /// Gives a message up, with all that it has become so far.
    pub(super) fn abort(&mut self, handle: MessageHandle, error: &str) {
        tracing::warn!(error, "gave a message of a rule chain up");
        if self.batch.is_current(handle) {
            let failure = LastFailure {
                chain: String::new(),
                node: String::new(),
                error: error.to_owned(),
            };
            self.batch.abort(handle.entry, failure);
        } else {
            self.end_late(handle);
        }
    }

    /// The same where alarm rules or calculated fields have panicked.
    pub(super) fn abort_panicked(&mut self, handle: MessageHandle) {
        metrics::counter!("fieldline_rules_panics_total").increment(1);
        self.abort(handle, "alarm rules or calculated fields have panicked");
    }
}
