//! Queues across restarts, and the events about scripts that are switched off.

use std::sync::Arc;
use std::time::Duration;

use fieldline_core::events::{ChangeKind, EntityChange, EntityListener as _};
use fieldline_core::ingest::{IngestService, IngestStores, QueueProducer};
use fieldline_core::ports::{
    AppendError, EventFilter, IngestStore as _, Journal as _, Offset, Partition, RuleEngine as _,
    StoreEffects,
};
use fieldline_entities::services::{ServiceContext, Services};
use fieldline_journal::EmbeddedJournal;
use fieldline_model::entity::{EntityEvent, EventKind, Queue};
use fieldline_model::message::{MetadataMap, MsgType, QueueMessage};
use fieldline_model::page::PageLink;
use fieldline_model::record::RecordBatch;
use fieldline_model::{EntityId, RuleChainId, RuleNodeId, TenantId};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{EngineDependencies, Options, RuleEngineService};
use crate::chain::CompiledChain;
use crate::chain_registry::TenantChains;
use crate::message::RuleMessage;
use crate::node::{Node, NodeContext, NodeResult};
use crate::nodes::tests::{NOW, World};
use crate::producer::RuleMessageProducer;
use crate::queue_listener::QueueListener;

/// A node that collects the bodies of its messages.
struct Collect(Arc<Mutex<Vec<Value>>>);

impl Node for Collect {
    fn handle(&self, _: &mut NodeContext<'_>, msg: RuleMessage) -> NodeResult {
        self.0
            .lock()
            .push(serde_json::from_str(&msg.data.to_text()).unwrap());
        NodeResult::Done
    }
}

/// An engine over a journal, without workers.
struct Site {
    journal: Arc<EmbeddedJournal>,
    uplink: QueueProducer,
    engine: Arc<RuleEngineService>,
    seen: Arc<Mutex<Vec<Value>>>,
}

impl Site {
    /// An engine as after a start: it knows only the contents of journal and stores.
    fn over(world: &World, journal: Arc<EmbeddedJournal>) -> Self {
        let uplink = QueueProducer::open(journal.clone(), 2).unwrap();
        let options = Options::default();
        let messages = RuleMessageProducer::open(uplink.clone(), world.services.stores.clone(), &options);
        let services = Services::new(ServiceContext {
            // A separate event bus, so that an earlier engine hears nothing more.
            events: Arc::default(),
            rule_engine: messages.clone(),
            ..ServiceContext::clone(&world.services.rules.context)
        });
        let deps = EngineDependencies {
            services: services.with_alarm_gate(world.services.usage.clone()),
            messages,
            devices: Arc::new(fieldline_devices::downlink::NoDeviceLink),
            rpc: world.callers.clone(),
            rest_calls: world.callers.clone(),
            activity: world.services.activity.clone(),
            usage: world.services.usage.clone(),
            egress: fieldline_connectors::egress::EgressRules::default(),
            runtime: tokio::runtime::Handle::current(),
            service_id: "here".into(),
        };
        let engine = RuleEngineService::new(deps, &options);
        let site = Self {
            journal,
            uplink,
            engine,
            seen: Arc::default(),
        };
        let collect: Arc<dyn Node> = Arc::new(Collect(site.seen.clone()));
        site.runs(world, vec![collect], &[]);
        site
    }

    /// Puts a chain in force; returns the ids of its nodes.
    fn runs(
        &self,
        world: &World,
        nodes: Vec<Arc<dyn Node>>,
        edges: &[(usize, usize, &str)],
    ) -> Vec<RuleNodeId> {
        let nodes: Vec<_> = nodes.into_iter().map(|node| (RuleNodeId::new(), node)).collect();
        let ids = nodes.iter().map(|(id, _)| *id).collect();
        let chain = CompiledChain::of(RuleChainId::new(), nodes, edges);
        let chains = TenantChains::of(Some(chain.id), [Arc::new(chain)], 0);
        self.engine.shared().chains.put(world.tenant, chains);
        ids
    }

    /// Starts the workers as the program does.
    async fn start(&self, world: &World) -> IngestService {
        self.engine.route_queues().await.unwrap();
        let stores = IngestStores {
            store: world.store.clone(),
            activity: world.services.activity.clone(),
            processors: self.engine.main_processors(),
        };
        IngestService::start(&self.uplink, stores, &fieldline_core::ingest::Options::default())
            .await
            .unwrap()
    }

    async fn stop(self, service: IngestService) {
        let stop = move || service.stop(Duration::from_millis(200));
        tokio::task::spawn_blocking(stop).await.unwrap();
        self.engine.stop();
    }
}

fn journal(dir: &TempDir) -> Arc<EmbeddedJournal> {
    let options = fieldline_journal::Options::default();
    Arc::new(EmbeddedJournal::open(dir.path(), &options).unwrap())
}

fn queue(tenant: TenantId, name: &str) -> Queue {
    serde_json::from_value(json!({
        "id": { "entityType": "QUEUE", "id": fieldline_model::new_uuid() },
        "createdTime": NOW, "tenantId": { "entityType": "TENANT", "id": tenant.0 },
        "name": name, "topic": name, "partitions": 2, "pollInterval": 25,
        "packProcessingTimeout": 2000, "consumerPerPartition": false,
        "submitStrategy": { "type": "BURST", "batchSize": 1000 },
        "processingStrategy": { "type": "SKIP_ALL_FAILURES", "retries": 3, "failurePercentage": 0,
            "pauseBetweenRetries": 3, "maxPauseBetweenRetries": 3 },
    }))
    .unwrap()
}

fn message(device: EntityId, n: i64) -> QueueMessage {
    QueueMessage::new(
        MsgType::PostTelemetry,
        device,
        NOW,
        MetadataMap::new(),
        json!({ "n": n }).to_string(),
    )
}

async fn eventually(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    for _ in 0..1000 {
        if holds().await {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("{what}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_left_in_a_deleted_queue_is_processed_after_a_restart() {
    let world = World::new().await;
    let dir = tempfile::tempdir().unwrap();
    let device = world.device("pump", json!({})).await;
    // One queue is shared by all tenants, the other belongs to one.
    let owners = [TenantId::NULL, world.tenant];
    let journal = journal(&dir);
    let site = Site::over(&world, journal.clone());
    for (n, owner) in (0..).zip(owners) {
        let uplink = site.uplink.open_other(owner, &format!("Gone{n}"), 2).unwrap();
        let mut batch = RecordBatch::new();
        batch.push_message(world.tenant, &message(device, n));
        uplink
            .append(world.subject(device), &batch)
            .await
            .unwrap()
            .await
            .unwrap();
    }

    // The queues are no longer configured.
    let site = Site::over(&world, journal.clone());
    let mut stored = site.uplink.stored();
    stored.sort_by(|a, b| a.1.cmp(&b.1));
    assert_eq!(
        stored,
        [(owners[0], "Gone0".to_owned()), (owners[1], "Gone1".to_owned())]
    );
    let service = site.start(&world).await;
    site.engine.open_queues(&service).await.unwrap();
    site.engine.drain_deleted_queues(&service).await.unwrap();
    assert_eq!(site.engine.retired.lock().len(), 2);
    let seen = site.seen.clone();
    eventually("a message is left", async || seen.lock().len() == 2).await;
    for (owner, name) in &stored {
        let uplink = site.uplink.open_unrouted(*owner, name, 2).unwrap();
        let is_empty = async || !service.holds_something(&uplink).await.unwrap();
        eventually("a queue is not empty", is_empty).await;
    }
    site.stop(service).await;

    // An empty queue gets no workers.
    let site = Site::over(&world, journal.clone());
    let service = site.start(&world).await;
    site.engine.drain_deleted_queues(&service).await.unwrap();
    assert!(site.engine.retired.lock().is_empty());
    site.stop(service).await;
    assert_eq!(seen.lock().len(), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn queues_are_routed_and_in_line_with_the_store_before_anything_is_processed() {
    let world = World::new().await;
    let dir = tempfile::tempdir().unwrap();
    let device = world.device("pump", json!({})).await;
    world
        .services
        .stores
        .queues
        .insert(queue(TenantId::NULL, "Fast"))
        .await
        .unwrap();
    let site = Site::over(&world, journal(&dir));
    // A crash: the journal has lost records that are stored already.
    let fast = site.uplink.open_unrouted(TenantId::NULL, "Fast", 2).unwrap();
    let partition = Partition {
        queue: fast.queue(),
        index: 1,
    };
    world
        .store
        .apply(partition, Offset(10), &StoreEffects::default())
        .await
        .unwrap();
    let service = site.start(&world).await;
    assert_eq!(
        world.store.resume_position(partition).await.unwrap(),
        Some(Offset(0))
    );
    // The workers of the main queue run; those of the other queue have not started.
    let before = site
        .journal
        .end(Partition {
            queue: site.uplink.queue(),
            index: 0,
        })
        .0
        + site
            .journal
            .end(Partition {
                queue: site.uplink.queue(),
                index: 1,
            })
            .0;
    let mut to_fast = message(device, 1);
    to_fast.queue = Some("Fast".into());
    site.engine
        .message_producer()
        .push(world.tenant, to_fast)
        .await
        .unwrap();
    let held = |queue| -> u64 {
        (0..2)
            .map(|index| site.journal.end(Partition { queue, index }).0)
            .sum()
    };
    assert_eq!((held(site.uplink.queue()), held(fast.queue())), (before, 1));
    site.engine.open_queues(&service).await.unwrap();
    let seen = site.seen.clone();
    eventually("the message is left", async || seen.lock().len() == 1).await;
    site.stop(service).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_waits_for_changes_of_queues_finds_them_in_force() {
    let world = World::new().await;
    let dir = tempfile::tempdir().unwrap();
    let site = Site::over(&world, journal(&dir));
    let service = Arc::new(site.start(&world).await);
    let listener = QueueListener::new(site.engine.clone(), service.clone());
    let names = || -> Vec<String> {
        let queues = site.engine.queues();
        queues.iter().map(|(_, queue)| queue.name.to_string()).collect()
    };
    for number in 0..3 {
        let name = format!("Late{number}");
        let stores = &world.services.stores;
        stores.queues.insert(queue(TenantId::NULL, &name)).await.unwrap();
        // What a change that is one of many began is waited for as well.
        for _ in 0..3 {
            listener.on_change(EntityChange::new(
                TenantId::NULL,
                TenantId::NULL,
                ChangeKind::Queues,
            ));
        }
        listener.settled().unwrap().await;
        assert!(names().contains(&name), "{name} of {:?}", names());
    }
    drop(listener);
    eventually("a change still goes on", async || {
        Arc::strong_count(&service) == 1
    })
    .await;
    site.stop(Arc::into_inner(service).unwrap()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_slow_lane_that_fills_up_holds_back_large_records_of_its_tenant() {
    let world = World::new().await;
    let dir = tempfile::tempdir().unwrap();
    let device = world.device("pump", json!({})).await;
    let site = Site::over(&world, journal(&dir));
    let mut large = RecordBatch::new();
    let mut text = message(device, 1);
    text.data = format!("\"{}\"", "x".repeat(2_000));
    large.push_message(world.tenant, &text);
    let lanes = site.engine.lanes();
    let filling = lanes.options.backlog.0 / 4;
    assert!(lanes.try_reserve(world.tenant, filling));
    let refused = site.uplink.try_append(world.subject(device), &large);
    assert_eq!(refused.err(), Some(AppendError::Busy));
    lanes.release(world.tenant, filling);
    let appended = site.uplink.try_append(world.subject(device), &large);
    appended.unwrap().await.unwrap();
}

async fn errors_of(world: &World, entity: EntityId) -> Vec<EntityEvent> {
    let filter = EventFilter::of(EventKind::Error);
    let events = &world.services.stores.events;
    events
        .list(world.tenant, entity, &filter, &PageLink::first(10))
        .await
        .unwrap()
        .data
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_script_that_is_switched_off_leaves_one_event_of_its_node() {
    let world = World::new().await;
    let dir = tempfile::tempdir().unwrap();
    let device = world.device("pump", json!({})).await;
    let site = Site::over(&world, journal(&dir));
    let endless = json!({
        "scriptLang": "TBEL", "tbelScript": "if (msg.n < 0) { return true; } while (true) { } return false;",
    });
    let nodes = vec![
        world.node("filter.TbJsFilterNode", endless),
        Arc::new(Collect(site.seen.clone())) as Arc<dyn Node>,
    ];
    let ids = site.runs(&world, nodes, &[(0, 1, "True"), (0, 1, "Failure")]);
    let node = EntityId::from(*ids.first().unwrap());
    let service = site.start(&world).await;
    let push = async |n| {
        site.engine
            .message_producer()
            .push(world.tenant, message(device, n))
            .await
            .unwrap();
    };
    for n in 0..2 {
        push(n).await;
    }
    let seen = site.seen.clone();
    eventually("two are too slow", async || seen.lock().len() == 2).await;
    // Ordinary slowness causes no event.
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert!(errors_of(&world, node).await.is_empty());
    for n in [2, 3, -1] {
        push(n).await;
    }
    eventually("the others fail", async || seen.lock().len() == 5).await;
    eventually("there is no event", async || {
        !errors_of(&world, node).await.is_empty()
    })
    .await;
    let events = errors_of(&world, node).await;
    assert_eq!(events.len(), 1, "{events:?}");
    let body = serde_json::to_value(events.first().unwrap().body_json()).unwrap();
    assert_eq!(body["method"], "script");
    assert!(
        body["error"].as_str().unwrap().contains("switched off for 60 s"),
        "{body}"
    );
    site.stop(service).await;
}
