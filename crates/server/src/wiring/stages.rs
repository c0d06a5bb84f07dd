//! The start of the platform in stages: each stage is built from the one before, and the last one is complete.

use std::sync::Arc;

use fieldline_core::address_guard;
use fieldline_core::in_flight::InFlightTracker;
use fieldline_core::ingest::{self, CrashHandling, IngestService, IngestStores, QueueProducer};
use fieldline_core::memory_pool;
use fieldline_core::queue_stats::SERVICE_ID;
use fieldline_core::set_aside::SetAsideService;
use fieldline_core::usage::UsageStore;
use fieldline_devices::activity::ActivityTracker;
use fieldline_devices::directory::DeviceDirectory;
use fieldline_devices::ota::{self, OtaDownloads, OtaRollouts};
use fieldline_devices::rpc::{DeviceRpcPort, DeviceRpcService};
use fieldline_devices::sessions::SessionRegistry;
use fieldline_entities::password::PasswordHashPool;
use fieldline_entities::rest_api_requests::{RestApiRequests, RestRequestLimits};
use fieldline_entities::services::{DeviceOnboarding, Services, TenantTransfer};
use fieldline_journal::JournalKind;
use fieldline_rules::catalog::NodeTypeCatalog;
use fieldline_rules::engine::{EngineDependencies, RuleEngineService};
use fieldline_rules::producer::RuleMessageProducer;
use fieldline_rules::queue_listener::QueueListener;
use tracing::warn;

use super::PlatformStores;
use crate::config::Config;
use crate::serve::ServeError;

/// Devices and the path to them. Nothing reads the journal yet.
pub(super) struct DeviceStage {
    pub(super) directory: Arc<DeviceDirectory>,
    pub(super) usage: Arc<UsageStore>,
    pub(super) sessions: Arc<SessionRegistry>,
    pub(super) rpc: Arc<DeviceRpcService>,
    pub(super) downloads: Arc<OtaDownloads>,
    pub(super) activity: Arc<ActivityTracker>,
    pub(super) rollouts: Arc<OtaRollouts>,
    pub(super) producer: QueueProducer,
    /// Appends the platform's own messages to the journal.
    messages: Arc<RuleMessageProducer>,
}

impl DeviceStage {
    pub(super) async fn start(stores: &PlatformStores, config: &Config) -> Result<Self, ServeError> {
        ingest::describe_metrics();
        fieldline_transport::describe_metrics();
        address_guard::describe_metrics();
        memory_pool::describe_metrics();
        let (entities, clock) = (stores.database.entity_stores(), &stores.clock);
        let values = &stores.observed_store;
        let usage = restored_usage(stores).await?;
        let sessions = SessionRegistry::new(config.mqtt.sessions_per_device);
        let producer = open_producer(stores, config)?;
        let messages = RuleMessageProducer::open(producer.clone(), entities.clone(), &config.rules);
        let stage = Self {
            directory: DeviceDirectory::new(
                entities.clone(),
                values.clone(),
                Some(usage.clone()),
                clock.clone(),
                &config.devices,
            ),
            rpc: DeviceRpcService::with_options(
                sessions.clone(),
                entities.rpcs.clone(),
                messages.clone(),
                clock.clone(),
                config.calls.clone(),
            ),
            downloads: OtaDownloads::new(
                entities.ota_packages.clone(),
                entities.ota_updates.clone(),
                &config.ota,
            ),
            activity: ActivityTracker::new(
                entities.clone(),
                values.clone(),
                messages.clone(),
                clock.clone(),
                &config.activity,
            ),
            rollouts: OtaRollouts::new(
                ota::RolloutServices {
                    stores: entities,
                    series: values.clone(),
                    attributes: values.clone(),
                    devices: sessions.clone(),
                    clock: clock.clone(),
                },
                &config.ota,
            ),
            sessions,
            usage,
            producer,
            messages,
        };
        stage.listen(stores);
        stage.rollouts.restore().await?;
        Ok(stage)
    }

    /// Registers all of these as listeners for changed entities.
    fn listen(&self, stores: &PlatformStores) {
        // Before the listeners that tell devices about a package: the requests of these devices must not hit a stale
        // cache.
        stores.events.listen(self.downloads.clone());
        stores.events.listen(self.directory.clone());
        stores.events.listen(self.sessions.clone());
        stores.events.listen(self.activity.clone());
        stores.events.listen(self.rollouts.clone());
    }

    /// Adds the rule engine and the services.
    pub(super) fn with_rules(self, stores: &PlatformStores, config: &Config) -> RuleStage {
        let entities = stores.database.entity_stores();
        let messages = self.messages.clone();
        let catalog = NodeTypeCatalog::new();
        let passwords = PasswordHashPool::new(config.api.parallel_password_hashes);
        let services = Services::new(stores.context(passwords, messages.clone(), catalog.clone()))
            .with_alarm_gate(self.usage.clone());
        let rest_requests = RestApiRequests::new(SERVICE_ID, RestRequestLimits::default());
        let rules = RuleEngineService::new(
            EngineDependencies {
                services: services.clone(),
                messages: messages.clone(),
                devices: self.sessions.clone(),
                rpc: Arc::new(DeviceRpcPort(self.rpc.clone())),
                rest_calls: rest_requests.clone(),
                activity: self.activity.clone(),
                usage: self.usage.clone(),
                // The configuration was checked before the start.
                egress: config.egress.rules().unwrap_or_default(),
                runtime: tokio::runtime::Handle::current(),
                service_id: SERVICE_ID.into(),
            },
            &config.rules,
        );
        catalog.bind(&rules.shared().services);
        let context = &services.context;
        RuleStage {
            onboarding: DeviceOnboarding::with_options(context.clone(), &config.claiming),
            tenant_transfer: TenantTransfer::new(context.clone(), stores.observed_store.clone()),
            set_aside: SetAsideService::new(
                entities.set_aside,
                messages,
                stores.clock.clone(),
                &config.set_aside,
            ),
            devices: self,
            rules,
            services,
            rest_requests,
        }
    }
}

/// The rule engine on top of the devices. It accepts messages, but nothing processes them yet.
pub(super) struct RuleStage {
    pub(super) devices: DeviceStage,
    pub(super) rules: Arc<RuleEngineService>,
    pub(super) services: Services,
    pub(super) rest_requests: Arc<RestApiRequests>,
    pub(super) onboarding: Arc<DeviceOnboarding>,
    pub(super) tenant_transfer: Arc<TenantTransfer>,
    pub(super) set_aside: Arc<SetAsideService>,
}

impl RuleStage {
    /// Brings the stores in line with the journal and starts the workers, which wait for [`IngestService::begin`].
    pub(super) async fn start_ingest(
        self,
        stores: &PlatformStores,
        config: &Config,
    ) -> Result<IngestStage, ServeError> {
        let crashes = CrashHandling {
            in_flight: match &stores.in_flight {
                Some(hands) => InFlightTracker::start(hands.clone()),
                None => InFlightTracker::nowhere(),
            },
            set_aside: Some(self.set_aside.clone()),
        };
        self.rules.shared().chains.note_loads(&crashes.in_flight);
        self.set_aside.acquit_in(&crashes.in_flight);
        self.rules.route_queues().await?;
        let ingest_stores = IngestStores {
            store: stores.observed_store.clone(),
            activity: self.devices.activity.clone(),
            processors: self.rules.main_processors(),
        };
        let ingest =
            IngestService::start_after(crashes, &self.devices.producer, ingest_stores, &config.ingest)
                .await?;
        let ingest = Arc::new(ingest);
        self.rules.open_queues(&ingest).await?;
        self.rules.drain_deleted_queues(&ingest).await?;
        let queues = QueueListener::new(self.rules.clone(), ingest.clone());
        stores.events.listen(Arc::new(queues));
        Ok(IngestStage { parts: self, ingest })
    }
}

/// The message path, ready to start.
pub(super) struct IngestStage {
    pub(super) parts: RuleStage,
    pub(super) ingest: Arc<IngestService>,
}

/// Restores the usage of tenants before anything counts: usage from before the start stays counted after it.
async fn restored_usage(stores: &PlatformStores) -> Result<Arc<UsageStore>, ServeError> {
    let (entities, values) = (stores.database.entity_stores(), stores.observed_store.clone());
    let usage = UsageStore::new(entities, values, stores.clock.clone());
    stores.events.listen(usage.clone());
    usage.restore().await.map_err(ServeError::start)?;
    Ok(usage)
}

fn open_producer(stores: &PlatformStores, config: &Config) -> Result<QueueProducer, ServeError> {
    let configured = config.ingest.partitions;
    let uplink = QueueProducer::open(stores.journal.clone(), configured)?;
    let stored = stores.journal.partitions(uplink.queue());
    if stored != configured && config.journal.kind == JournalKind::Embedded {
        warn!(
            configured,
            stored,
            "`ingest.partitions` is fixed since the data directory was created, the setting has no effect"
        );
    }
    Ok(uplink)
}
