//! A queue at work over a journal and stores of its own; what its nodes do is up to the test.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use fieldline_core::ingest::{IngestService, IngestStores, Options, QueueProducer, partition_index};
use fieldline_core::ports::{
    AppendError, AttributeRow, AttributeStore, IngestStore, Journal as _, Offset, Partition, StateRow,
    StoreEffects, StoreError, StoreErrorKind, StoreResult,
};
use fieldline_journal::EmbeddedJournal;
use fieldline_model::entity::Tenant;
use fieldline_model::kv::{KvValueRef, pack};
use fieldline_model::message::QueueMessage;
use fieldline_model::record::RecordBatch;
use fieldline_model::timeseries::{Attribute, AttributeScope};
use fieldline_model::{EntityId, EntityKey, RuleChainId, RuleNodeId, TenantId};
use fieldline_storage::series::SeriesStore;
use parking_lot::Mutex;
use serde_json::json;
use tempfile::TempDir;

use crate::chain::CompiledChain;
use crate::chain_registry::TenantChains;
use crate::engine::{EngineShared, QueueHandle};
use crate::lanes::{LANE_QUEUE, LaneOptions, SlowLanes};
use crate::message::RuleMessage;
use crate::node::{Node, NodeContext, NodeResult};
use crate::nodes::tests::World;
use crate::originators::OriginatorCache;
use crate::producer::RuleMessageProducer;
use crate::services::NodeServices;
use crate::stats::{LastFailure, MessageCounts};
use crate::strategy::QueueStrategy;

/// Longest time that a test waits for what has to come.
const PATIENCE: Duration = Duration::from_secs(60);

/// A queue with one worker, its chains, and what they work on.
pub(super) struct Rig {
    pub(super) world: World,
    pub(super) uplink: QueueProducer,
    pub(super) journal: Arc<EmbeddedJournal>,
    pub(super) store: Arc<Store>,
    pub(super) attributes: Arc<Attributes>,
    pub(super) queue: Arc<QueueHandle>,
    /// Where messages go that would hold up others, if tenants share the queue.
    pub(super) lanes: Option<Arc<SlowLanes>>,
    services: NodeServices,
    _dir: TempDir,
}

impl Rig {
    pub(super) async fn new(partitions: u16, strategy: QueueStrategy) -> Self {
        Self::over(&fieldline_journal::Options::default(), partitions, strategy).await
    }

    /// The same with a journal of these options.
    pub(super) async fn over(
        options: &fieldline_journal::Options,
        partitions: u16,
        strategy: QueueStrategy,
    ) -> Self {
        let world = World::new().await;
        let dir = tempfile::tempdir().unwrap();
        let journal = Arc::new(EmbeddedJournal::open(dir.path(), options).unwrap());
        let uplink = QueueProducer::open(journal.clone(), partitions).unwrap();
        let attributes = Arc::new(Attributes::over(world.store.clone()));
        Self {
            queue: QueueHandle::new("Main", uplink.partitions(), strategy),
            store: Arc::new(Store {
                inner: world.store.clone(),
                refuses: AtomicBool::new(false),
            }),
            services: NodeServices {
                attributes: attributes.clone(),
                ..NodeServices::clone(&world.services)
            },
            attributes,
            lanes: None,
            uplink,
            journal,
            world,
            _dir: dir,
        }
    }

    /// The same with a queue that tenants share.
    pub(super) async fn shared(strategy: QueueStrategy, options: &LaneOptions) -> Self {
        let mut rig = Self::new(1, strategy.clone()).await;
        let lanes = SlowLanes::new(options);
        rig.queue = QueueHandle::shared("Main", 1, strategy, &lanes);
        rig.lanes = Some(lanes);
        rig
    }

    /// The lanes are forgotten, as by a program that ends.
    pub(super) fn forget_lanes(&mut self) {
        let options = self.lanes.as_ref().unwrap().options.clone();
        let (lanes, strategy) = (SlowLanes::new(&options), self.queue.strategy.read().clone());
        self.queue = QueueHandle::shared("Main", 1, strategy, &lanes);
        self.lanes = Some(lanes);
    }

    /// Another tenant with a device, whose messages come to the same chain.
    pub(super) async fn neighbour(&mut self) -> (TenantId, EntityId) {
        let stores = self.world.services.stores.clone();
        let own = stores.tenants.get(self.world.tenant).await.unwrap().unwrap();
        let other = Tenant {
            id: TenantId::new(),
            title: "Neighbour".into(),
            name: "Neighbour".into(),
            ..own
        };
        let other = stores.tenants.insert(other).await.unwrap().id;
        let own = std::mem::replace(&mut self.world.tenant, other);
        let profile = self.world.device_profile("default", json!(null)).await;
        let profile_of_own = std::mem::replace(&mut self.world.profile, profile);
        let device = self.world.device("neighbour", json!(null)).await;
        (self.world.tenant, self.world.profile) = (own, profile_of_own);
        (other, device)
    }

    /// Changes what nodes of workers that are started later have.
    pub(super) fn services(&mut self) -> &mut NodeServices {
        &mut self.services
    }

    /// Nodes of workers that are started later put messages into the queues of the journal.
    pub(super) fn pushes(&mut self) {
        let originators = OriginatorCache::new(self.world.services.stores.clone(), 64);
        let lanes = self.lanes.clone();
        let lanes = lanes.unwrap_or_else(|| SlowLanes::new(&LaneOptions::default()));
        self.services.engine = Arc::new(RuleMessageProducer::new(self.uplink.clone(), originators, lanes));
    }

    /// Puts a chain in force, whose first node all messages come to.
    pub(super) fn chain(
        &self,
        nodes: Vec<Arc<dyn Node>>,
        edges: &[(usize, usize, &str)],
    ) -> Arc<CompiledChain> {
        let nodes = nodes.into_iter().map(|node| (RuleNodeId::new(), node)).collect();
        self.put(CompiledChain::of(RuleChainId::new(), nodes, edges))
    }

    /// The same for a chain that is made already.
    pub(super) fn put(&self, chain: CompiledChain) -> Arc<CompiledChain> {
        let chain = Arc::new(chain);
        self.put_for(self.world.tenant, &chain);
        chain
    }

    /// Puts a chain in force for another tenant as well.
    pub(super) fn put_for(&self, tenant: TenantId, chain: &Arc<CompiledChain>) {
        let chains = TenantChains::of(Some(chain.id), [chain.clone()], 0);
        self.world.common.chains.put(tenant, chains);
    }

    /// Starts the worker.
    pub(super) async fn start(&self) -> IngestService {
        let common = Arc::new(EngineShared {
            services: Arc::new(self.services.clone()),
            chains: self.world.common.chains.clone(),
            events: self.world.common.events.clone(),
        });
        let stores = IngestStores {
            store: self.store.clone(),
            activity: self.services.activity.clone(),
            processors: self.queue.processors(&common),
        };
        let options = Options {
            workers: 1,
            ..Options::default()
        };
        // So that a test knows what the first batch meets.
        let lane = self.lanes.as_ref().map(|lanes| (lanes, self.open_lane(lanes)));
        let service = IngestService::start(&self.uplink, stores, &options)
            .await
            .unwrap();
        if let Some((lanes, uplink)) = lane {
            let processors = QueueHandle::lane(1, lanes).processors(&common);
            let started = service.add_slow_queue("lane", &uplink, processors, 1);
            started.await.unwrap();
        }
        service
    }

    fn open_lane(&self, lanes: &SlowLanes) -> QueueProducer {
        let uplink = self.uplink.open_unrouted(TenantId::NULL, LANE_QUEUE, 1).unwrap();
        let queue = uplink.queue();
        let end = self.journal.end(Partition { queue, index: 0 });
        lanes.open(uplink.clone(), vec![end]);
        uplink
    }

    /// Closes the journal, and lets the worker come to its end. Returns what was counted, and how the last message that
    /// failed has failed.
    pub(super) async fn finish(&self, service: IngestService) -> (MessageCounts, Option<LastFailure>) {
        self.journal.close().await;
        let (has_replayed, failure) = (service.has_replayed(), service.failure());
        self.stop(service, PATIENCE).await;
        assert_eq!(failure(), None);
        assert!(has_replayed(), "a message was never acknowledged");
        self.counts()
    }

    /// What was counted, and how the last message that failed has failed.
    pub(super) fn counts(&self) -> (MessageCounts, Option<LastFailure>) {
        self.queue.counts.lock().of(self.world.tenant).clone()
    }

    /// Ends the worker, whatever it is at.
    pub(super) async fn stop(&self, service: IngestService, patience: Duration) {
        tokio::task::spawn_blocking(move || service.stop(patience))
            .await
            .unwrap();
    }

    /// A partition of the queue.
    pub(super) fn partition(&self, index: u16) -> Partition {
        Partition {
            queue: self.uplink.queue(),
            index,
        }
    }

    /// A device whose messages are in a partition.
    pub(super) async fn device_in(&self, partition: u16) -> EntityId {
        for n in 0..1000 {
            let device = self.world.device(&format!("{partition}-{n}"), json!(null)).await;
            if partition_index(device.id, self.uplink.partitions()) == partition {
                return device;
            }
        }
        panic!("no device has come to partition {partition}");
    }

    /// A device sends rows of the value `n` at these times, as one record.
    pub(super) async fn send(&self, device: EntityId, times: impl IntoIterator<Item = i64>) {
        self.send_of(self.world.tenant, device, times).await;
    }

    /// The same of a device of any tenant.
    pub(super) async fn send_of(
        &self,
        tenant: TenantId,
        device: EntityId,
        times: impl IntoIterator<Item = i64>,
    ) {
        let subject = EntityKey {
            tenant,
            entity: device,
        };
        let mut batch = RecordBatch::new();
        let mut telemetry = batch.begin_telemetry(subject, 0, 0);
        for ts in times {
            telemetry.begin_row(ts);
            pack("n", KvValueRef::Long(ts), telemetry.buffer());
            telemetry.count_point();
        }
        telemetry.finish();
        self.append(subject, &batch).await;
    }

    /// A device sends rows, as records of their own, until the journal takes none; returns how many it took.
    pub(super) async fn fill(&self, device: EntityId) -> i64 {
        for ts in 1.. {
            let mut batch = RecordBatch::new();
            let mut telemetry = batch.begin_telemetry(self.world.subject(device), 0, 0);
            telemetry.begin_row(ts);
            pack("n", KvValueRef::Long(ts), telemetry.buffer());
            telemetry.count_point();
            telemetry.finish();
            match self.uplink.try_append(self.world.subject(device), &batch) {
                Ok(append) => append.await.unwrap(),
                Err(refused) => {
                    assert_eq!(refused, AppendError::Busy);
                    return ts - 1;
                }
            }
        }
        unreachable!("the journal has no end")
    }

    /// A device sends a client attribute.
    pub(super) async fn send_attribute(&self, device: EntityId, key: &str, value: i64) {
        let mut batch = RecordBatch::new();
        let mut attributes =
            batch.begin_attributes(self.world.subject(device), value, AttributeScope::Client);
        pack(key, KvValueRef::Long(value), attributes.buffer());
        attributes.finish();
        self.append(self.world.subject(device), &batch).await;
    }

    /// A message from inside the platform.
    pub(super) async fn send_message(&self, message: &QueueMessage) {
        let mut batch = RecordBatch::new();
        batch.push_message(self.world.tenant, message);
        self.append(self.world.subject(message.originator), &batch).await;
    }

    async fn append(&self, subject: EntityKey, batch: &RecordBatch) {
        self.uplink.append(subject, batch).await.unwrap().await.unwrap();
    }
}

/// A node that does this.
pub(super) fn node(
    does: impl Fn(&mut NodeContext<'_>, RuleMessage) -> NodeResult + Send + Sync + 'static,
) -> Arc<dyn Node> {
    struct Does<F>(F);
    impl<F: Fn(&mut NodeContext<'_>, RuleMessage) -> NodeResult + Send + Sync> Node for Does<F> {
        fn handle(&self, ctx: &mut NodeContext<'_>, msg: RuleMessage) -> NodeResult {
            (self.0)(ctx, msg)
        }
    }
    Arc::new(Does(does))
}

/// The times of messages in the order in which they came to a node.
#[derive(Clone, Default)]
pub(super) struct Seen(Arc<Mutex<Vec<i64>>>);

impl Seen {
    /// A node that ends messages.
    pub(super) fn node(&self) -> Arc<dyn Node> {
        let seen = self.clone();
        node(move |_, msg| {
            seen.note(&msg);
            NodeResult::Done
        })
    }

    pub(super) fn note(&self, msg: &RuleMessage) {
        self.0.lock().push(msg.values_ts());
    }

    pub(super) fn all(&self) -> Vec<i64> {
        self.0.lock().clone()
    }
}

/// Waits until it holds.
pub(super) async fn eventually(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let deadline = tokio::time::Instant::now() + PATIENCE;
    while !holds().await {
        assert!(tokio::time::Instant::now() < deadline, "{what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

fn as_the_test_wants<T>() -> StoreResult<T> {
    Err(StoreError::new(
        StoreErrorKind::Unavailable,
        "as the test wants it",
    ))
}

/// A store that takes nothing while the test says so.
pub(super) struct Store {
    inner: Arc<SeriesStore>,
    pub(super) refuses: AtomicBool,
}

#[async_trait]
impl IngestStore for Store {
    async fn apply(&self, partition: Partition, next: Offset, effects: &StoreEffects<'_>) -> StoreResult<()> {
        if self.refuses.load(Ordering::Acquire) {
            return as_the_test_wants();
        }
        self.inner.apply(partition, next, effects).await
    }

    async fn apply_between_records(
        &self,
        partition: Partition,
        effects: &StoreEffects<'_>,
    ) -> StoreResult<()> {
        if self.refuses.load(Ordering::Acquire) {
            return as_the_test_wants();
        }
        self.inner.apply_between_records(partition, effects).await
    }

    async fn resume_position(&self, partition: Partition) -> StoreResult<Option<Offset>> {
        self.inner.resume_position(partition).await
    }

    async fn rewind(&self, partition: Partition, to: Offset) -> StoreResult<()> {
        self.inner.rewind(partition, to).await
    }

    async fn states(&self, partition: Partition) -> StoreResult<Vec<StateRow>> {
        self.inner.states(partition).await
    }

    async fn checkpoint(&self) -> StoreResult<Vec<(Partition, Offset)>> {
        self.inner.checkpoint().await
    }
}

/// Attributes whose next reads take their time, or panic.
pub(super) struct Attributes {
    inner: Arc<SeriesStore>,
    pub(super) slow: AtomicUsize,
    pub(super) panics: AtomicUsize,
}

impl Attributes {
    fn over(inner: Arc<SeriesStore>) -> Self {
        Self {
            inner,
            slow: AtomicUsize::new(0),
            panics: AtomicUsize::new(0),
        }
    }
}

/// Takes one of what is left.
fn takes_one(left: &AtomicUsize) -> bool {
    let one_less = |left: usize| left.checked_sub(1);
    left.fetch_update(Ordering::AcqRel, Ordering::Acquire, one_less)
        .is_ok()
}

#[async_trait]
impl AttributeStore for Attributes {
    async fn save(&self, rows: &[AttributeRow<'_>]) -> StoreResult<()> {
        AttributeStore::save(&*self.inner, rows).await
    }

    async fn save_relaxed(&self, rows: &[AttributeRow<'_>]) -> StoreResult<()> {
        AttributeStore::save_relaxed(&*self.inner, rows).await
    }

    async fn get(
        &self,
        subject: EntityKey,
        scope: AttributeScope,
        keys: Option<&[String]>,
    ) -> StoreResult<Vec<Attribute>> {
        assert!(!takes_one(&self.panics), "as the test wants it");
        let found = AttributeStore::get(&*self.inner, subject, scope, keys).await;
        if takes_one(&self.slow) {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        found
    }

    async fn delete(
        &self,
        subject: EntityKey,
        scope: AttributeScope,
        keys: &[String],
    ) -> StoreResult<Vec<String>> {
        AttributeStore::delete(&*self.inner, subject, scope, keys).await
    }
}
