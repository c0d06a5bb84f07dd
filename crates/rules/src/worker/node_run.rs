//! Running a node: for a message that enters it, or because what it keeps has come due.

use std::panic::AssertUnwindSafe;
use std::time::Instant;

use fieldline_core::usage::UsageKey;
use fieldline_model::entity::{EVENT_IN, EVENT_OUT};
use fieldline_model::{RuleChainId, RuleNodeId, TenantId};

use super::batch::DueTimer;
use super::fields::DeliverFieldEvents;
use super::walk::{NodeRef, WalkContext, WalkTask};
use crate::message::RuleMessage;
use crate::node::{NodeContext, NodeResult};
use crate::node_counters::TIMED_RUNS;

/// A message enters a node.
pub(super) struct RunNode {
    pub(super) msg: RuleMessage,
    pub(super) place: NodeRef,
}

impl RunNode {
    pub(super) fn run(self, cx: &mut WalkContext<'_>) {
        let Self { mut msg, place } = self;
        let Some(node) = place.node() else {
            cx.end();
            return;
        };
        let worker = &mut *cx.worker;
        if let Some(watch) = &worker.node_activity {
            watch.lock().count_input(&place);
        }
        node.counters.count_input(worker.counters);
        msg.hops += 1;
        msg.budget.renew();
        if msg.hops > worker.chains.max_hops(msg.tenant) {
            let error = "the message has gone through more rule nodes than its tenant may use";
            worker.note_failure(&place, error);
            cx.fail(Some(&place), error);
            return;
        }
        if let Err(overrun) = msg.check_size() {
            let error = overrun.to_string();
            worker.note_failure(&place, &error);
            cx.fail(Some(&place), &error);
            return;
        }
        worker
            .local
            .meter
            .add(msg.tenant, UsageKey::RuleEngineExecutions, 1);
        let (chain, id) = (place.chain.id.into(), node.id.into());
        if node.debug.is_on() && cx.now_ms < node.debug.all_until {
            worker.shared.events.node(EVENT_IN, chain, id, &msg, None, None);
        }
        let tenant = msg.tenant;
        let runs = match &node.node {
            Ok(runs) => runs,
            Err(error) => {
                let error = format!("Rule node is not active! {error}");
                if node.debug.is_on() {
                    worker
                        .shared
                        .events
                        .node(EVENT_OUT, chain, id, &msg, Some("Failure"), Some(&error));
                }
                worker.note_failure(&place, &error);
                cx.fail(Some(&place), &error);
                return;
            }
        };
        worker.untimed_runs += 1;
        let timed_since = (worker.untimed_runs >= TIMED_RUNS).then(Instant::now);
        let mut ctx = cx.node_context(tenant, place.chain.id, node.id);
        let result = std::panic::catch_unwind(AssertUnwindSafe(|| runs.handle(&mut ctx, msg)));
        if let Some(since) = timed_since {
            let worker = &mut *cx.worker;
            worker.untimed_runs = 0;
            node.counters.add_timed_run(worker.counters, since.elapsed());
        }
        cx.finish_node(result.ok(), place, tenant);
    }
}

/// Something that a node keeps has come due.
pub(super) struct FireNodeTimer {
    pub(super) due: DueTimer,
    pub(super) place: NodeRef,
}

impl FireNodeTimer {
    pub(super) fn run(self, cx: &mut WalkContext<'_>) {
        let Self { due, place } = self;
        let tenant = due.key.subject.tenant;
        let Some(node) = place.node() else {
            cx.end();
            return;
        };
        let Ok(runs) = &node.node else {
            cx.fail(Some(&place), "Rule node is not active!");
            return;
        };
        let mut ctx = cx.node_context(tenant, place.chain.id, node.id);
        let result =
            std::panic::catch_unwind(AssertUnwindSafe(|| runs.handle_due(&mut ctx, due.key, due.value)));
        cx.finish_node(result.ok(), place, tenant);
    }
}

impl WalkContext<'_> {
    pub(super) fn node_context(
        &mut self,
        tenant: TenantId,
        chain: RuleChainId,
        node: RuleNodeId,
    ) -> NodeContext<'_> {
        NodeContext {
            services: &self.worker.shared.services,
            tenant,
            chain,
            node,
            now_ms: self.now_ms,
            runtime: &mut self.worker.local,
        }
    }

    /// Goes on after a node was called; it has panicked where it has no result.
    pub(super) fn finish_node(&mut self, result: Option<NodeResult>, place: NodeRef, tenant: TenantId) {
        let events = std::mem::take(&mut self.worker.local.field_events.pending);
        if !events.is_empty() {
            self.begin();
        }
        match result {
            Some(result) => self.handle_result(result, Some(place), tenant),
            None => self.handle_panic(Some(&place), tenant),
        }
        if !events.is_empty() {
            // Before the message goes on.
            self.push(WalkTask::NotifyFields(DeliverFieldEvents(events)));
        }
    }
}
