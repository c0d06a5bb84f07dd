//! Where messages go: along connections, into other chains, and back.

use std::sync::Arc;

use fieldline_model::RuleChainId;
use fieldline_model::entity::EVENT_OUT;

use super::node_run::RunNode;
use super::walk::{NodeRef, WalkContext, WalkTask};
use crate::chain_registry::TenantChains;
use crate::message::{ChainCaller, RuleMessage};
use crate::node::{ConnectionLabel, NodeResult, Suspension};

impl WalkContext<'_> {
    /// A message leaves a node through its connections of a name.
    pub(super) fn route(
        &mut self,
        mut msg: RuleMessage,
        place: NodeRef,
        label: &ConnectionLabel,
        error: Option<&str>,
    ) {
        let Some(node) = place.node() else {
            self.end();
            return;
        };
        node.counters.count_output(self.worker.counters, label, error);
        if let Some(watch) = &self.worker.node_activity {
            watch.lock().count_output(&place, label, error);
        }
        if node.debug.is_on() {
            let is_failure = label.is_failure();
            if self.now_ms < node.debug.all_until || (is_failure && node.debug.failures) {
                let (chain, id) = (place.chain.id.into(), node.id.into());
                self.worker
                    .shared
                    .events
                    .node(EVENT_OUT, chain, id, &msg, Some(&label.0), error);
            }
        }
        if self
            .worker
            .messages
            .goes_on_in_lane(self.handle, Some(node.id), msg.tenant)
            && node.targets(label).next().is_some()
        {
            let work = self.worker.queue.send_to_lane(&msg, &place, label);
            let waiting = NodeResult::Suspend(Suspension::Wait(work));
            self.push(WalkTask::Result(waiting, None, msg.tenant));
            return;
        }
        let mut targets = node.targets(label);
        let Some(first) = targets.next() else {
            drop(targets);
            if label.is_failure() {
                self.fail(Some(&place), error.unwrap_or("Failure without a connection"));
            } else {
                self.end();
            }
            return;
        };
        let Some(second) = targets.next() else {
            drop(targets);
            self.push(WalkTask::Enter(RunNode {
                msg,
                place: NodeRef { at: first, ..place },
            }));
            return;
        };
        msg.budget.share();
        let begin = self.tasks.len();
        for at in [first, second].into_iter().chain(targets) {
            // What each branch creates has ids of its own.
            let branch = msg.derive(at as u64 + 1);
            let chain = place.chain.clone();
            self.push(WalkTask::Enter(RunNode {
                msg: branch,
                place: NodeRef { chain, at },
            }));
        }
        for _ in begin + 1..self.tasks.len() {
            self.begin();
        }
        // The first one is handled first.
        self.tasks.get_mut(begin..).unwrap_or_default().reverse();
    }

    /// A message enters a chain, the root chain where none is named.
    pub(super) fn enter_chain(
        &mut self,
        mut msg: RuleMessage,
        chain: Option<RuleChainId>,
        from: Option<NodeRef>,
        chains: &TenantChains,
    ) {
        let Some(chain) = chain.or(chains.root).and_then(|id| chains.chain(id)) else {
            let error = "there is no such rule chain, or no root rule chain";
            match from {
                Some(from) => self.route(msg, from, &ConnectionLabel::FAILURE, Some(error)),
                None => self.fail(None, error),
            }
            return;
        };
        if let Some((from, node)) = from.as_ref().and_then(|from| Some((from, from.node()?))) {
            msg.callers = Some(Arc::new(ChainCaller {
                chain: from.chain.id,
                node: node.id,
                callers: msg.callers.take(),
            }));
        }
        match chain.first {
            Some(at) => self.push(WalkTask::Enter(RunNode {
                msg,
                place: NodeRef::new(chain, at),
            })),
            None => self.end(),
        }
    }

    /// A message goes back to the node that has called the chain it is in.
    pub(super) fn return_to_caller(
        &mut self,
        mut msg: RuleMessage,
        label: ConnectionLabel,
        place: Option<&NodeRef>,
        chains: &TenantChains,
    ) {
        if let Some((place, node)) = place.and_then(|place| Some((place, place.node()?)))
            && node.debug.is_on()
            && self.now_ms < node.debug.all_until
        {
            let (chain, id) = (place.chain.id.into(), node.id.into());
            self.worker
                .shared
                .events
                .node(EVENT_OUT, chain, id, &msg, Some(&label.0), None);
        }
        if let (Some(watch), Some(place)) = (&self.worker.node_activity, place) {
            watch.lock().count_output(place, &label, None);
        }
        let Some(caller) = msg.callers.take() else {
            self.end();
            return;
        };
        msg.callers.clone_from(&caller.callers);
        match chains.node(caller.node) {
            Some((chain, at)) => self.push(WalkTask::Leave(msg, NodeRef::new(chain, at), label)),
            None => self.fail(place, "the rule node that has called this chain is gone"),
        }
    }
}
