//! What a message has stored is not stored again when the message is done again: a person may have changed it meanwhile.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use fieldline_core::options::HumanDuration;
use fieldline_core::ports::{
    AttributeRow, AttributeStore, IngestStore as _, Partition, SeriesDeletion, TimeSeriesStore,
};
use fieldline_model::EntityId;
use fieldline_model::entity::ProcessingStrategyType;
use fieldline_model::kv::{KvValue, KvValueRef, pack};
use fieldline_model::timeseries::AttributeScope;
use serde_json::json;
use tokio::sync::Semaphore;

use super::rig::{Rig, eventually, node};
use crate::lanes::LaneOptions;
use crate::node::{Node, NodeResult};
use crate::strategy::QueueStrategy;

/// A chain that saves what devices send, then waits for a gate; the first `fails` messages that pass it fail.
struct Saving {
    rig: Rig,
    device: EntityId,
    gate: Arc<Semaphore>,
    tried: Arc<AtomicUsize>,
}

impl Saving {
    async fn over(rig: Rig, fails: usize) -> Self {
        let (gate, tried) = (Arc::new(Semaphore::new(0)), Arc::new(AtomicUsize::new(0)));
        let device = rig.device_in(0).await;
        let waits = {
            let (gate, tried) = (gate.clone(), tried.clone());
            node(move |_, msg| {
                let (gate, tried) = (gate.clone(), tried.clone());
                NodeResult::wait(async move {
                    let _permit = gate.acquire().await;
                    if tried.fetch_add(1, Ordering::AcqRel) < fails {
                        return NodeResult::fail(msg, "as the test wants it");
                    }
                    NodeResult::success(msg)
                })
            })
        };
        let nodes: Vec<Arc<dyn Node>> = vec![
            rig.world.node("filter.TbMsgTypeSwitchNode", json!({})),
            rig.world.node("telemetry.TbMsgTimeseriesNode", json!({})),
            rig.world
                .node("telemetry.TbMsgAttributesNode", json!({"scope": "CLIENT_SCOPE"})),
            waits,
        ];
        let edges = [
            (0, 1, "Post telemetry"),
            (0, 2, "Post attributes"),
            (1, 3, "Success"),
            (2, 3, "Success"),
        ];
        rig.chain(nodes, &edges);
        Self {
            rig,
            device,
            gate,
            tried,
        }
    }

    async fn n(&self) -> Option<KvValue> {
        let (keys, subject) = (["n".to_owned()], self.rig.world.subject(self.device));
        let found = self.rig.world.store.latest(subject, Some(&keys)).await.unwrap();
        found.first().map(|latest| latest.point.value.clone())
    }

    async fn k(&self) -> Option<KvValue> {
        let (keys, subject) = (["k".to_owned()], self.rig.world.subject(self.device));
        let store = &self.rig.world.store;
        let found = store
            .get(subject, AttributeScope::Client, Some(&keys))
            .await
            .unwrap();
        found.first().map(|attribute| attribute.value.clone())
    }

    /// A series is saved by a message that waits, then a person deletes it.
    async fn person_deletes_the_series(&self) {
        eventually("no series is saved", async || {
            self.n().await == Some(KvValue::Long(1))
        })
        .await;
        let (subject, store) = (self.rig.world.subject(self.device), &self.rig.world.store);
        let whole = SeriesDeletion {
            range: None,
            delete_latest: true,
            rewrite_latest: false,
        };
        TimeSeriesStore::delete(&**store, subject, &["n".to_owned()], whole)
            .await
            .unwrap();
    }

    /// An attribute is saved by a message that waits, then a person sets it.
    async fn person_sets_the_attribute(&self) {
        eventually("no attribute is saved", async || {
            self.k().await == Some(KvValue::Long(2))
        })
        .await;
        let (subject, store) = (self.rig.world.subject(self.device), &self.rig.world.store);
        let mut values = Vec::new();
        pack("k", KvValueRef::Long(9), &mut values);
        let row = AttributeRow {
            subject,
            scope: AttributeScope::Client,
            ts: 3,
            values: &values,
        };
        AttributeStore::save(&**store, &[row]).await.unwrap();
    }

    async fn series_stays_deleted(&self, tries: usize) {
        self.gate.add_permits(1);
        eventually("the messages do not pass", async || {
            self.tried.load(Ordering::Acquire) == tries
        })
        .await;
        // What comes afterwards is saved.
        self.rig.send(self.device, [5]).await;
        eventually("another message is not saved", async || {
            self.n().await == Some(KvValue::Long(5))
        })
        .await;
        let subject = self.rig.world.subject(self.device);
        let query = fieldline_model::timeseries::RangeQuery {
            start: 0,
            end: i64::MAX,
            limit: 10,
            order: fieldline_model::timeseries::PointOrder::Ascending,
        };
        let points = self.rig.world.store.range(subject, "n", query).await.unwrap();
        let times: Vec<i64> = points.iter().map(|point| point.ts).collect();
        assert_eq!(times, [5], "what was deleted is there again");
    }

    async fn keeps(&self, partition: Partition) -> usize {
        self.rig.world.store.states(partition).await.unwrap().len()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_person_changes_while_a_message_waits_stays_so_after_a_crash() {
    let saving = Saving::over(Rig::new(1, QueueStrategy::default()).await, 0).await;
    saving.rig.send(saving.device, [1]).await;
    saving.rig.send_attribute(saving.device, "k", 2).await;
    let service = saving.rig.start().await;
    saving.person_deletes_the_series().await;
    saving.person_sets_the_attribute().await;
    saving.rig.stop(service, Duration::ZERO).await;
    let partition = saving.rig.partition(0);
    assert_ne!(saving.keeps(partition).await, 0);
    let position = saving.rig.store.resume_position(partition).await.unwrap();
    assert_eq!(position.unwrap_or_default().0, 0, "both are done again");
    let service = saving.rig.start().await;
    saving.series_stays_deleted(2).await;
    assert_eq!(saving.k().await, Some(KvValue::Long(9)));
    saving.rig.finish(service).await;
    assert_eq!(saving.keeps(partition).await, 0, "no mark stays for ever");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_person_changes_stays_so_when_a_message_is_tried_again() {
    let strategy = QueueStrategy {
        processing: ProcessingStrategyType::RetryAll,
        retries: 0,
        pause: Duration::from_millis(10),
        max_pause: Duration::from_millis(10),
        timeout: Duration::from_secs(60),
        ..QueueStrategy::default()
    };
    let saving = Saving::over(Rig::new(1, strategy).await, 2).await;
    saving.rig.send(saving.device, [1]).await;
    saving.rig.send_attribute(saving.device, "k", 2).await;
    let service = saving.rig.start().await;
    saving.person_deletes_the_series().await;
    saving.person_sets_the_attribute().await;
    saving.series_stays_deleted(4).await;
    assert_eq!(saving.k().await, Some(KvValue::Long(9)));
    saving.rig.finish(service).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_person_changes_while_a_message_waits_in_a_lane_stays_so_after_a_crash() {
    let strategy = QueueStrategy {
        timeout: Duration::from_secs(3600),
        ..QueueStrategy::default()
    };
    let options = LaneOptions {
        patience: HumanDuration::millis(50),
        ..LaneOptions::default()
    };
    let rig = Rig::shared(strategy, &options).await;
    let mut saving = Saving::over(rig, 0).await;
    let lanes = saving.rig.lanes.clone().unwrap();
    let tenant = saving.rig.world.tenant;
    lanes.mark_slow(tenant);
    saving.rig.send(saving.device, [1]).await;
    let service = saving.rig.start().await;
    saving.person_deletes_the_series().await;
    assert_eq!(lanes.messages(tenant), 1, "it waits in the lane");
    saving.rig.stop(service, Duration::ZERO).await;
    saving.rig.forget_lanes();
    let service = saving.rig.start().await;
    saving.series_stays_deleted(1).await;
    saving.rig.finish(service).await;
}
