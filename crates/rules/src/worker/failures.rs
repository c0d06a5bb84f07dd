//! Messages that begin, end and fail, as their pack sees it.

use fieldline_model::{EntityId, TenantId};

use super::Worker;
use super::walk::{Place, Ticket};
use crate::stats::LastFailure;

impl Worker {
    pub(super) fn ticket(&self, entry: u32) -> Ticket {
        Ticket {
            pack: self.pack.number,
            entry,
            partition: self.parts.partition,
        }
    }

    pub(super) fn begin(&mut self, ticket: Ticket) {
        if ticket.pack == self.pack.number {
            self.pack.begin_of(ticket.entry);
        }
    }

    pub(super) fn end(&mut self, ticket: Ticket, failure: Option<LastFailure>) {
        if ticket.pack == self.pack.number {
            self.pack.end_of(ticket.entry, failure);
        }
    }

    pub(super) fn fail(&mut self, ticket: Ticket, place: Option<&Place>, error: &str) {
        let node = place.and_then(Place::node);
        let failure = LastFailure {
            chain: place.map_or_else(String::new, |place| place.chain.name.to_string()),
            node: node.map_or_else(String::new, |node| node.name.to_string()),
            error: error.to_owned(),
        };
        self.end(ticket, Some(failure));
    }

    pub(super) fn note_failure(&self, place: &Place, error: &str) {
        if let Some(watch) = &self.watch {
            watch.lock().failed(place, error);
        }
    }

    pub(super) fn panicked(&mut self, ticket: Ticket, place: Option<&Place>, tenant: TenantId) {
        let error = "the rule node has panicked";
        if let Some((place, node)) = place.and_then(|place| Some((place, place.node()?))) {
            tracing::error!(chain = %place.chain.name, node = %node.name, error);
            self.common.events.error(tenant, node.id.into(), "onMsg", error);
            self.note_failure(place, error);
        }
        metrics::counter!("fieldline_rules_panics_total").increment(1);
        self.fail(ticket, place, error);
    }

    /// An event where a call has got its script switched off: what follows fails without being tried.
    pub(super) fn tell_blocked(&mut self, tenant: TenantId, entity: EntityId) {
        let Some(time) = self.parts.scripts.take_blocked() else {
            return;
        };
        self.common.events.switched_off(tenant, entity, time);
    }

    /// Gives a message up, with all that it has become so far.
    pub(super) fn abort(&mut self, ticket: Ticket, error: &str) {
        tracing::warn!(error, "gave a message of a rule chain up");
        if ticket.pack == self.pack.number {
            let failure = LastFailure {
                chain: String::new(),
                node: String::new(),
                error: error.to_owned(),
            };
            self.pack.abort(ticket.entry, failure);
        }
    }

    /// The same where alarm rules or calculated fields have panicked.
    pub(super) fn abort_panicked(&mut self, ticket: Ticket) {
        metrics::counter!("fieldline_rules_panics_total").increment(1);
        self.parts.branches.clear();
        self.abort(ticket, "alarm rules or calculated fields have panicked");
    }
}
