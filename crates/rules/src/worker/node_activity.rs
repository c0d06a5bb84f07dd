//! What nodes are seen to do while somebody watches.

use std::collections::BTreeMap;
use std::time::Duration;

use fieldline_model::{RuleChainId, RuleNodeId};
use rustc_hash::FxHashMap;

use super::walk::NodeRef;
use crate::node::ConnectionLabel;

/// Different labels that are told apart; scripts may make up as many as they like.
const MAX_LABELS: usize = 100;
const OTHER_LABELS: &str = "...";
const MAX_ERROR: usize = 500;

/// Counts what nodes do.
#[derive(Default)]
pub struct NodeActivityLog {
    nodes: FxHashMap<RuleNodeId, NodeActivity>,
    /// Evaluations of calculated fields that had no result, and why the last one of them had none.
    pub fields: (u64, Option<String>),
}

/// What one node did.
#[derive(Debug, Clone, Default)]
pub struct NodeActivity {
    /// Its chain.
    pub chain: RuleChainId,
    /// Messages that came to it.
    pub input: u64,
    /// Messages that left it, by the connection.
    pub output: BTreeMap<Box<str>, u64>,
    /// Messages that failed there.
    pub failures: u64,
    /// Why the last one of them failed.
    pub last_error: Option<String>,
    /// Time that it took.
    pub time: Duration,
}

impl NodeActivityLog {
    /// What a node did.
    pub fn node(&self, id: RuleNodeId) -> Option<&NodeActivity> {
        self.nodes.get(&id)
    }

    fn of(&mut self, place: &NodeRef) -> Option<&mut NodeActivity> {
        let node = place.node()?;
        let watched = self.nodes.entry(node.id).or_default();
        watched.chain = place.chain.id;
        Some(watched)
    }

    pub(super) fn count_input(&mut self, place: &NodeRef) {
        if let Some(watched) = self.of(place) {
            watched.input += 1;
        }
    }

    pub(super) fn count_output(&mut self, place: &NodeRef, label: &ConnectionLabel, error: Option<&str>) {
        let Some(watched) = self.of(place) else { return };
        let has_room = watched.output.len() < MAX_LABELS;
        match watched.output.get_mut(&*label.0) {
            Some(count) => *count += 1,
            None => {
                let label = if has_room { &*label.0 } else { OTHER_LABELS };
                *watched.output.entry(label.into()).or_default() += 1;
            }
        }
        if label.is_failure() {
            self.count_failure(place, error.unwrap_or_default());
        }
    }

    pub(super) fn count_failure(&mut self, place: &NodeRef, error: &str) {
        if let Some(watched) = self.of(place) {
            watched.failures += 1;
            if !error.is_empty() {
                watched.last_error = Some(error.chars().take(MAX_ERROR).collect());
            }
        }
    }

    pub(super) fn field_had_no_result(&mut self, problem: &str) {
        self.fields.0 += 1;
        self.fields.1 = Some(problem.chars().take(MAX_ERROR).collect());
    }

    pub(super) fn add_time(&mut self, place: &NodeRef, time: Duration) {
        if let Some(watched) = self.of(place) {
            watched.time += time;
        }
    }
}
