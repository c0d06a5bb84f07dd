//! A queue that two tenants share, one of which is slow.

use std::sync::Arc;
use std::time::Duration;

use fieldline_core::options::HumanDuration;
use fieldline_core::ports::IngestStore as _;
use fieldline_model::{EntityId, TenantId};
use tokio::sync::Semaphore;

use super::rig::{Rig, Seen, eventually, node};
use crate::lanes::{LaneCounts, LaneOptions};
use crate::message::RuleMessage;
use crate::node::{Node, NodeResult};
use crate::strategy::QueueStrategy;

/// A queue that waits for an hour for what is late, but for patience.
pub(super) fn patient() -> QueueStrategy {
    QueueStrategy {
        timeout: Duration::from_secs(3600),
        ..QueueStrategy::default()
    }
}

pub(super) fn options() -> LaneOptions {
    LaneOptions {
        patience: HumanDuration::millis(50),
        ..LaneOptions::default()
    }
}

/// A shared queue. The tenant of the rig is slow, its neighbour is not.
pub(super) struct Street {
    pub(super) rig: Rig,
    pub(super) slow: EntityId,
    pub(super) neighbour: (TenantId, EntityId),
    /// Messages of the slow tenant, each time they come to the first node.
    pub(super) came: Seen,
    /// Messages of both that have come to the last node.
    pub(super) gone: Seen,
    pub(super) gate: Arc<Semaphore>,
}

impl Street {
    pub(super) async fn new(strategy: QueueStrategy, options: &LaneOptions) -> Self {
        let mut rig = Rig::shared(strategy, options).await;
        let slow = rig.device_in(0).await;
        let neighbour = rig.neighbour().await;
        Self {
            rig,
            slow,
            neighbour,
            came: Seen::default(),
            gone: Seen::default(),
            gate: Arc::new(Semaphore::new(0)),
        }
    }

    /// What a node does with messages of the slow tenant; those of the neighbour go through it.
    pub(super) fn only_slow(
        &self,
        does: impl Fn(&mut crate::node::NodeContext<'_>, RuleMessage) -> NodeResult + Send + Sync + 'static,
    ) -> Arc<dyn Node> {
        let (own, came) = (self.rig.world.tenant, self.came.clone());
        node(move |ctx, msg| {
            if msg.tenant != own {
                return NodeResult::success(msg);
            }
            came.note(&msg);
            does(ctx, msg)
        })
    }

    /// Puts a chain in force for both that ends with the node that notes what has gone.
    pub(super) fn runs(&self, mut nodes: Vec<Arc<dyn Node>>) {
        nodes.push(self.gone.node());
        let edges: Vec<_> = (1..nodes.len()).map(|at| (at - 1, at, "Success")).collect();
        let chain = self.rig.chain(nodes, &edges);
        self.rig.put_for(self.neighbour.0, &chain);
    }

    /// Waits for the gate where a message is meant.
    pub(super) fn waits(
        &self,
        is_meant: impl Fn(&RuleMessage) -> bool + Send + Sync + 'static,
    ) -> Arc<dyn Node> {
        let gate = self.gate.clone();
        self.only_slow(move |_, msg| {
            if !is_meant(&msg) {
                return NodeResult::success(msg);
            }
            let gate = gate.clone();
            NodeResult::wait(async move {
                let _permit = gate.acquire().await;
                NodeResult::success(msg)
            })
        })
    }

    /// The slow tenant sends 200 messages, each of which takes its worker 10 ms.
    pub(super) async fn works_long(&self) {
        let works = self.only_slow(|_, msg| {
            std::thread::sleep(Duration::from_millis(10));
            NodeResult::success(msg)
        });
        self.runs(vec![works]);
        self.slow_sends(1..=200).await;
    }

    pub(super) async fn slow_sends(&self, times: impl IntoIterator<Item = i64>) {
        self.rig.send(self.slow, times).await;
    }

    pub(super) async fn neighbour_sends(&self, times: impl IntoIterator<Item = i64>) {
        let (tenant, device) = self.neighbour;
        self.rig.send_of(tenant, device, times).await;
    }

    /// Waits until the queue's position is behind so many records.
    pub(super) async fn stands_at(&self, position: u64) {
        let partition = self.rig.partition(0);
        eventually("the queue stands still", async || {
            let stands = self.rig.store.resume_position(partition).await.unwrap();
            stands.unwrap_or_default().0 >= position
        })
        .await;
    }

    pub(super) async fn have_gone(&self, expected: &[i64]) {
        eventually("messages have not gone", async || {
            let mut gone = self.gone.all();
            gone.sort_unstable();
            gone == expected
        })
        .await;
    }

    pub(super) fn counts(&self) -> LaneCounts {
        let counts = self.rig.lanes.as_ref().unwrap().counts();
        let of_slow = counts
            .into_iter()
            .find(|(tenant, _)| *tenant == self.rig.world.tenant);
        of_slow.map(|(_, counts)| counts).unwrap_or_default()
    }

    /// Waits until the lane holds nothing.
    pub(super) async fn lane_is_empty(&self) {
        let lanes = self.rig.lanes.clone().unwrap();
        eventually("the lane is not empty", async || {
            lanes.messages(self.rig.world.tenant) == 0
        })
        .await;
    }
}
