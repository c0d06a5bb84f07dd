//! A journal of its largest size, while what it holds is put into queues again.

use std::time::Duration;

use fieldline_core::ingest::IngestService;
use fieldline_core::options::ByteSize;
use fieldline_core::ports::Journal as _;
use fieldline_journal::{Durability, Options};
use fieldline_model::EntityId;
use fieldline_model::entity::ProcessingStrategyType;
use serde_json::json;

use super::rig::{Rig, Seen, eventually};
use crate::strategy::QueueStrategy;

/// The journal holds some hundred messages of devices.
fn small(reserve: ByteSize) -> Options {
    Options {
        durability: Durability::Os,
        segment_bytes: ByteSize::kib(8),
        max_pending: ByteSize::kib(64),
        max_append: ByteSize::kib(16),
        min_free_disk: ByteSize(0),
        max_bytes: ByteSize::kib(96),
        internal_reserve: Some(reserve),
        ..Options::default()
    }
}

/// A full journal whose messages all go through a checkpoint; how many there are, and what comes behind it.
async fn full(reserve: ByteSize, processing: ProcessingStrategyType) -> (Rig, EntityId, i64, Seen) {
    let strategy = QueueStrategy {
        processing,
        retries: 0,
        pause: Duration::from_millis(10),
        max_pause: Duration::from_millis(10),
        timeout: Duration::from_secs(20),
        ..QueueStrategy::default()
    };
    let mut rig = Rig::over(&small(reserve), 1, strategy).await;
    rig.pushes();
    let checkpoint = rig
        .world
        .make_named("flow.TbCheckpointNode", "again", Some("Main"), &json!({}))
        .unwrap();
    let seen = Seen::default();
    rig.chain(vec![checkpoint, seen.node()], &[(0, 1, "Success")]);
    let device = rig.device_in(0).await;
    let sent = rig.fill(device).await;
    (rig, device, sent, seen)
}

async fn drains(rig: &Rig, service: IngestService, device: EntityId, sent: i64, seen: &Seen) {
    eventually("messages are missing", async || seen.all().len() as i64 >= sent).await;
    eventually("devices are still refused", async || {
        rig.journal.refusal().is_none()
    })
    .await;
    rig.send(device, [0]).await;
    eventually("nobody is served", async || seen.all().contains(&0)).await;
    let mut times = seen.all();
    times.sort_unstable();
    times.dedup();
    assert_eq!(times, (0..=sent).collect::<Vec<_>>());
    rig.finish(service).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_journal_drains_through_checkpoints_of_a_queue_that_tries_for_ever() {
    let (rig, device, sent, seen) =
        full(ByteSize::mib(1), ProcessingStrategyType::RetryFailedAndTimedOut).await;
    let service = rig.start().await;
    drains(&rig, service, device, sent, &seen).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_journal_drains_through_checkpoints_of_a_queue_that_gives_up() {
    let (rig, device, sent, seen) = full(ByteSize::mib(1), ProcessingStrategyType::SkipAllFailures).await;
    let service = rig.start().await;
    drains(&rig, service, device, sent, &seen).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_reserve_messages_fail_and_the_queue_goes_on() {
    // Far too little for all of them: what finds no room fails after a while, and nothing stands still.
    let (rig, device, _, seen) = full(ByteSize::kib(32), ProcessingStrategyType::SkipAllFailures).await;
    let service = rig.start().await;
    eventually("devices are still refused", async || {
        rig.journal.refusal().is_none()
    })
    .await;
    rig.send(device, [0]).await;
    eventually("nobody is served", async || seen.all().contains(&0)).await;
    let (counts, _) = rig.finish(service).await;
    assert!(counts.failed > 0, "{counts:?}");
}
