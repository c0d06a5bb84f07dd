//! The engine as the program holds it: its queues, and the state that all their workers share.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use fieldline_connectors::egress::EgressRules;
use fieldline_core::ingest::{
    IngestService, IngestShutdown, IngestStartError, MAIN_QUEUE, ProcessorFactory, QueueProducer,
};
use fieldline_core::options::{ByteSize, HumanDuration};
use fieldline_core::ports::{DeviceRpc, Partition, RestApiResponder};
use fieldline_core::usage::UsageStore;
use fieldline_devices::activity::ActivityTracker;
use fieldline_devices::downlink::DeviceLink;
use fieldline_entities::services::{ServiceContext, Services};
use fieldline_model::TenantId;
use fieldline_model::entity::{ProcessingStrategyType, Queue};
use parking_lot::{Mutex, RwLock};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::runtime::Handle;
use tracing::info;

use crate::accounts::{MailTokenCache, StoredServiceAccounts};
use crate::chain_registry::{ChainRegistry, ChainRegistryListener};
use crate::egress::EgressRegistry;
use crate::events::{DebugLimit, EventRecorder};
use crate::external::ExternalNodeSettings;
use crate::lanes::{LANE_QUEUE, LaneOptions, SlowLanes};
use crate::producer::RuleMessageProducer;
use crate::script_pool::ScriptPool;
use crate::services::NodeServices;
use crate::stats::QueueCounts;
use crate::strategy::QueueStrategy;
use crate::worker::RuleWorker;

/// Settings of the rule engine.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Options {
    /// Number of originators whose names and profiles are cached.
    pub cached_originators: usize,
    /// Threads of each queue other than `Main`, which uses `ingest.workers`.
    pub queue_workers: u16,
    /// Debug events that a tenant may store in an hour.
    pub debug_events_per_hour: u32,
    /// How often the statistics of queues are written.
    pub statistics_interval: HumanDuration,
    /// Threads that run scripts; a tenant may use all but one. 0 stands for the number of processors plus one.
    pub script_threads: u16,
    /// Longest run of a JavaScript script, and of all scripts of one evaluation together.
    pub script_time_limit: HumanDuration,
    /// Memory that a JavaScript script may take. All scripts together take at most this amount per thread, including up
    /// to four threads that may have been abandoned.
    pub script_memory: ByteSize,
    /// Script calls of one tenant that may wait for a thread; further ones fail.
    pub script_waiting: usize,
    /// Bytes of the arguments of one tenant's waiting calls.
    pub script_waiting_bytes: ByteSize,
    /// Script calls of all tenants that may wait for a thread.
    pub script_waiting_total: usize,
    /// Bytes of the arguments of all waiting calls.
    pub script_waiting_total_bytes: ByteSize,
    /// Scripts of one tenant that may be tried out at the same time.
    pub script_tests: usize,
    /// Scripts of one tenant that may wait to be tried out; further requests are answered with 429.
    pub script_tests_waiting: usize,
    /// The slow lanes, for messages that would hold up other tenants.
    pub lanes: LaneOptions,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            cached_originators: 100_000,
            queue_workers: 1,
            debug_events_per_hour: 50_000,
            statistics_interval: HumanDuration::secs(60),
            script_threads: 0,
            script_time_limit: HumanDuration::secs(8),
            script_memory: ByteSize::mib(64),
            script_waiting: 16_384,
            script_waiting_bytes: ByteSize::mib(64),
            script_waiting_total: 65_536,
            script_waiting_total_bytes: ByteSize::mib(256),
            script_tests: 2,
            script_tests_waiting: 8,
            lanes: LaneOptions::default(),
        }
    }
}

/// The services that the engine depends on.
pub struct EngineDependencies {
    /// The business rules, by which nodes change entities.
    pub services: Services,
    /// Appends messages to the queues.
    pub messages: Arc<RuleMessageProducer>,
    /// Reaches the sessions of devices.
    pub devices: Arc<dyn DeviceLink>,
    /// Calls devices.
    pub rpc: Arc<dyn DeviceRpc>,
    /// Answers clients of the REST API.
    pub rest_calls: Arc<dyn RestApiResponder>,
    /// Records whether devices are active.
    pub activity: Arc<ActivityTracker>,
    /// What tenants use, and their limits.
    pub usage: Arc<UsageStore>,
    /// Addresses that external nodes of all tenants may connect to beyond public ones.
    pub egress: EgressRules,
    /// The runtime for waiting and background work.
    pub runtime: Handle,
    /// Name of this server.
    pub service_id: Arc<str>,
}

/// State shared by all workers.
pub struct EngineShared {
    /// The services of nodes.
    pub services: Arc<NodeServices>,
    /// The chains of all tenants.
    pub chains: Arc<ChainRegistry>,
    /// Records events.
    pub events: Arc<EventRecorder>,
}

impl EngineShared {
    /// Fails once the queues accept no more messages. A node that could not append then has not failed by itself: the
    /// message is not given up, and the next start processes it again.
    pub(crate) fn check_open(&self) -> Result<(), IngestShutdown> {
        let services = &self.services;
        if services.engine.is_closed() || services.scripts.is_stopped() {
            Err(IngestShutdown)
        } else {
            Ok(())
        }
    }
}

/// The tenants whose messages a queue holds.
#[derive(Clone)]
pub enum QueueRole {
    /// Messages of one tenant.
    Own,
    /// Messages of all tenants; those that would hold up others are diverted to the lanes.
    Shared(Arc<SlowLanes>),
    /// The queue of the lanes.
    Lane(Arc<SlowLanes>),
}

impl QueueRole {
    /// Whether the queue holds messages of only one tenant.
    pub const fn is_own(&self) -> bool {
        matches!(self, Self::Own)
    }

    /// Whether it is the queue of the lanes.
    pub const fn is_lane(&self) -> bool {
        matches!(self, Self::Lane(_))
    }

    /// The lanes, if this is their queue.
    pub(crate) const fn lanes_of_lane(&self) -> Option<&Arc<SlowLanes>> {
        match self {
            Self::Lane(lanes) => Some(lanes),
            _ => None,
        }
    }

    /// The lanes, if tenants share the queue. They open a moment after the queue does.
    pub(crate) fn shared_lanes(&self) -> Option<&SlowLanes> {
        match self {
            Self::Shared(lanes) => Some(lanes),
            _ => None,
        }
    }

    /// Like `shared_lanes`, but only once the lanes are open.
    pub(crate) fn open_lanes(&self) -> Option<&SlowLanes> {
        self.shared_lanes().filter(|lanes| lanes.are_open())
    }

    /// Notes that messages of a tenant hold up others; does nothing if the queue is not shared.
    pub(crate) fn mark_slow(&self, tenant: TenantId) {
        if let Some(lanes) = self.shared_lanes() {
            lanes.mark_slow(tenant);
        }
    }
}

/// A queue as its workers use it.
pub struct QueueHandle {
    /// Its name.
    pub name: Arc<str>,
    /// How many partitions it has.
    pub partitions: u16,
    /// Its strategies, which may change while it runs.
    pub strategy: RwLock<QueueStrategy>,
    /// Counts since the statistics were last written.
    pub counts: Mutex<QueueCounts>,
    pub(crate) role: QueueRole,
}

impl QueueHandle {
    /// A queue of one tenant.
    pub fn new(name: &str, partitions: u16, strategy: QueueStrategy) -> Arc<Self> {
        Self::of(name, partitions, strategy, QueueRole::Own)
    }

    /// A queue that tenants share.
    pub fn shared(name: &str, partitions: u16, strategy: QueueStrategy, lanes: &Arc<SlowLanes>) -> Arc<Self> {
        let queue = Self::of(name, partitions, strategy, QueueRole::Shared(lanes.clone()));
        lanes.register_queue(&queue);
        queue
    }

    /// The queue of the lanes.
    pub fn lane(partitions: u16, lanes: &Arc<SlowLanes>) -> Arc<Self> {
        // Messages in a lane follow the strategies of the queues that they come from; late ones are not tried again.
        let strategy = QueueStrategy {
            processing: ProcessingStrategyType::SkipAllFailuresAndTimedOut,
            ..QueueStrategy::default()
        };
        Self::of(LANE_QUEUE, partitions, strategy, QueueRole::Lane(lanes.clone()))
    }

    fn of(name: &str, partitions: u16, strategy: QueueStrategy, role: QueueRole) -> Arc<Self> {
        Arc::new(Self {
            name: name.into(),
            partitions: partitions.max(1),
            strategy: RwLock::new(strategy),
            counts: Mutex::default(),
            role,
        })
    }

    /// Creates the workers of the queue, each on its own thread.
    pub fn processors(self: &Arc<Self>, shared: &Arc<EngineShared>) -> ProcessorFactory {
        let (queue, shared) = (Arc::clone(self), Arc::clone(shared));
        Arc::new(move || Box::new(RuleWorker::new(shared.clone(), queue.clone())))
    }
}

type QueueKey = (TenantId, String);

/// The rule engine.
pub struct RuleEngineService {
    shared: Arc<EngineShared>,
    message_producer: Arc<RuleMessageProducer>,
    queue_producer: QueueProducer,
    main: Arc<QueueHandle>,
    queues: Mutex<HashMap<QueueKey, Arc<QueueHandle>>>,
    /// Deleted queues: their workers process the rest, and new messages if the queue is created again.
    retired: Mutex<HashMap<QueueKey, Arc<QueueHandle>>>,
    opening: tokio::sync::Mutex<()>,
    lanes: Arc<SlowLanes>,
    mail_tokens: Arc<MailTokenCache>,
    options: Options,
}

impl RuleEngineService {
    /// An engine that is not running yet. It listens to entity events from here on.
    pub fn new(deps: EngineDependencies, options: &Options) -> Arc<Self> {
        let ServiceContext {
            stores,
            series,
            attributes,
            events: changes,
            clock,
            ..
        } = ServiceContext::clone(&deps.services.context);
        let (originators, lanes) = (deps.messages.originators().clone(), deps.messages.lanes().clone());
        let limit = DebugLimit {
            events: options.debug_events_per_hour,
            ..DebugLimit::default()
        };
        let server = deps.service_id.clone();
        let events = EventRecorder::start(
            stores.events.clone(),
            clock.clone(),
            &server,
            limit,
            &deps.runtime,
        );
        let mail_tokens = MailTokenCache::new(stores.settings.clone(), clock.clone());
        let egress = EgressRegistry::new(deps.egress, stores.clone());
        changes.listen(egress.clone());
        let external = ExternalNodeSettings {
            accounts: Arc::new(StoredServiceAccounts {
                settings: stores.settings.clone(),
                tokens: mail_tokens.clone(),
            }),
            egress: Some(egress),
            ..ExternalNodeSettings::default()
        };
        let services = Arc::new(NodeServices {
            stores,
            rules: deps.services,
            series,
            attributes,
            engine: deps.messages.clone(),
            devices: deps.devices,
            rpc: deps.rpc,
            rest_calls: deps.rest_calls,
            activity: deps.activity,
            usage: deps.usage,
            external,
            scripts: script_pool(options, &events),
            originators: originators.clone(),
            clock,
            runtime: deps.runtime,
            service_id: deps.service_id,
        });
        let chains = ChainRegistry::new(services.clone(), events.clone());
        changes.listen(originators);
        changes.listen(Arc::new(ChainRegistryListener(chains.clone())));
        let producer = deps.messages.queue_producer().clone();
        let partitions = producer.partitions();
        producer.set_backlog(lanes.clone());
        let main = QueueHandle::shared(MAIN_QUEUE, partitions, QueueStrategy::default(), &lanes);
        Arc::new(Self {
            shared: Arc::new(EngineShared {
                services,
                chains,
                events,
            }),
            message_producer: deps.messages,
            queues: Mutex::new(HashMap::from([(
                (TenantId::NULL, MAIN_QUEUE.to_owned()),
                main.clone(),
            )])),
            main,
            retired: Mutex::default(),
            queue_producer: producer,
            opening: tokio::sync::Mutex::default(),
            lanes,
            mail_tokens,
            options: options.clone(),
        })
    }

    /// The state that its workers share.
    pub fn shared(&self) -> &Arc<EngineShared> {
        &self.shared
    }

    /// The access tokens of the mail account in the settings.
    pub fn mail_tokens(&self) -> Arc<MailTokenCache> {
        self.mail_tokens.clone()
    }

    /// Appends messages to the queues.
    pub fn message_producer(&self) -> Arc<RuleMessageProducer> {
        self.message_producer.clone()
    }

    /// The workers of the main queue.
    pub fn main_processors(&self) -> ProcessorFactory {
        self.main.processors(&self.shared)
    }

    /// Opens queues that are configured and not open yet, updates the strategies of the open ones, and stops routing to
    /// deleted ones.
    ///
    /// # Errors
    /// The stores or the journal failed.
    pub async fn open_queues(&self, ingest: &IngestService) -> Result<(), IngestStartError> {
        let _one = self.opening.lock().await;
        self.open_lanes(ingest).await?;
        let configured = self.shared.services.stores.queues.of_all_tenants().await?;
        let mut gone: Vec<QueueKey> = self.queues.lock().keys().cloned().collect();
        for queue in configured {
            let key = (queue.tenant_id, queue.name.clone());
            gone.retain(|other| *other != key);
            let known = self.queues.lock().get(&key).cloned();
            match known {
                Some(known) => *known.strategy.write() = QueueStrategy::of(&queue),
                None => self.open_queue(key, &queue, ingest).await?,
            }
        }
        for (tenant, name) in gone {
            if !(tenant.is_null() && name == MAIN_QUEUE) {
                // The rest of its messages is still processed: its workers run until the program ends.
                info!(%tenant, queue = name, "queue is gone, its messages go to the main queue");
                self.queue_producer.close_other(tenant, &name);
                let key = (tenant, name);
                let handle = self.queues.lock().remove(&key);
                self.retired.lock().extend(handle.map(|handle| (key, handle)));
            }
        }
        Ok(())
    }

    /// The slow lanes.
    pub fn lanes(&self) -> &Arc<SlowLanes> {
        &self.lanes
    }

    /// Starts the lanes' queue if lanes are configured or messages are left in it. Diverting begins if lanes are
    /// configured.
    async fn open_lanes(&self, ingest: &IngestService) -> Result<(), IngestStartError> {
        let count = self.options.lanes.count;
        let is_stored = self.queue_producer.stored().iter().any(|key| *key == lane_key());
        if self.lanes.are_open() || (count == 0 && !is_stored) {
            return Ok(());
        }
        let uplink = self
            .queue_producer
            .open_unrouted(TenantId::NULL, LANE_QUEUE, count.clamp(1, 64))?;
        let handle = QueueHandle::lane(uplink.partitions(), &self.lanes);
        let (processors, workers) = (handle.processors(&self.shared), uplink.partitions());
        ingest
            .add_slow_queue("lane", &uplink, processors, workers)
            .await?;
        if count > 0 {
            let partitions = (0..uplink.partitions()).map(|index| Partition {
                queue: uplink.queue(),
                index,
            });
            let ends = partitions
                .map(|partition| uplink.journal().end(partition))
                .collect();
            self.lanes.open(uplink, ends);
        }
        Ok(())
    }

    /// Routes messages to the configured queues before any worker starts, so that the first messages already go where
    /// they belong.
    ///
    /// # Errors
    /// The stores or the journal failed.
    pub async fn route_queues(&self) -> Result<(), IngestStartError> {
        for queue in self.shared.services.stores.queues.of_all_tenants().await? {
            self.queue_producer
                .open_other(queue.tenant_id, &queue.name, partitions_of(&queue))?;
        }
        Ok(())
    }

    /// Processes the rest in deleted queues with the default strategy, and releases empty ones from the journal. To be
    /// called once, after the configured queues have been opened.
    ///
    /// # Errors
    /// The stores or the journal failed.
    pub async fn drain_deleted_queues(&self, ingest: &IngestService) -> Result<(), IngestStartError> {
        let _one = self.opening.lock().await;
        for key in self.queue_producer.stored() {
            if key == lane_key() || self.queues.lock().contains_key(&key) {
                continue;
            }
            let uplink = self.queue_producer.open_unrouted(key.0, &key.1, 1)?;
            if !ingest.holds_something(&uplink).await? {
                ingest.release(&uplink).await?;
                continue;
            }
            info!(tenant = %key.0, queue = key.1, "queue is gone and not empty, it is emptied");
            let handle = self.handle(&key, uplink.partitions(), QueueStrategy::default());
            let processors = handle.processors(&self.shared);
            ingest
                .add_queue(&key.1, &uplink, processors, self.options.queue_workers)
                .await?;
            self.retired.lock().insert(key, handle);
        }
        Ok(())
    }

    fn handle(
        &self,
        (tenant, name): &QueueKey,
        partitions: u16,
        strategy: QueueStrategy,
    ) -> Arc<QueueHandle> {
        if tenant.is_null() {
            QueueHandle::shared(name, partitions, strategy, &self.lanes)
        } else {
            QueueHandle::new(name, partitions, strategy)
        }
    }

    async fn open_queue(
        &self,
        key: QueueKey,
        queue: &Queue,
        ingest: &IngestService,
    ) -> Result<(), IngestStartError> {
        let uplink = self
            .queue_producer
            .open_other(key.0, &key.1, partitions_of(queue))?;
        if let Some(handle) = self.retired.lock().remove(&key) {
            *handle.strategy.write() = QueueStrategy::of(queue);
            self.queues.lock().insert(key, handle);
            return Ok(());
        }
        let handle = self.handle(&key, uplink.partitions(), QueueStrategy::of(queue));
        let processors = handle.processors(&self.shared);
        ingest
            .add_queue(&key.1, &uplink, processors, self.options.queue_workers)
            .await?;
        self.queues.lock().insert(key, handle);
        Ok(())
    }

    /// How often the statistics of queues are written.
    pub fn statistics_interval(&self) -> Duration {
        self.options.statistics_interval.0
    }

    /// All open queues with their tenant; the null tenant stands for shared queues.
    pub fn queues(&self) -> Vec<(TenantId, Arc<QueueHandle>)> {
        let queues = self.queues.lock();
        queues
            .iter()
            .map(|((tenant, _), handle)| (*tenant, handle.clone()))
            .collect()
    }

    /// Stops what makes messages of its own accord.
    pub fn stop_sources(&self) {
        self.shared.chains.stop();
    }

    /// Stops sources and scripts; the queues end with the journal.
    pub fn stop(&self) {
        self.stop_sources();
        self.shared.services.scripts.stop();
    }
}

fn script_pool(options: &Options, events: &Arc<EventRecorder>) -> Arc<ScriptPool> {
    let events = events.clone();
    let switched_off = move |tenant, owner, time| events.switched_off(tenant, owner, time);
    ScriptPool::start(options, Arc::default(), Box::new(switched_off))
}

/// The journal key of the lanes' queue.
fn lane_key() -> QueueKey {
    (TenantId::NULL, LANE_QUEUE.to_owned())
}

fn partitions_of(queue: &Queue) -> u16 {
    u16::try_from(queue.partitions).unwrap_or(1).clamp(1, 64)
}

#[cfg(test)]
mod tests;
