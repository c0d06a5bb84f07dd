//! What the platform is made of, put together: the stores, and the path of messages between them.

use std::sync::Arc;
use std::time::{Duration, Instant};

use fieldline_core::address_guard::{self, AddressGuard};
use fieldline_core::clock::{SharedClock, SystemClock};
use fieldline_core::events::EntityEvents;
use fieldline_core::in_flight::InFlightTracker;
use fieldline_core::ingest::{CrashHandling, IngestService, IngestStores, QueueProducer};
use fieldline_core::memory_pool;
use fieldline_core::observed_store::ObservedStore;
use fieldline_core::ports::{Journal, NoRuleEngine, NoRuleNodes, RuleEngine};
use fieldline_core::queue_stats::SERVICE_ID;
use fieldline_core::set_aside::SetAsideService;
use fieldline_core::usage::UsageStore;
use fieldline_devices::activity::ActivityTracker;
use fieldline_devices::directory::DeviceDirectory;
use fieldline_devices::ota::{self, OtaDownloads, OtaRollouts};
use fieldline_devices::rpc::{DeviceRpcPort, DeviceRpcService};
use fieldline_devices::sessions::SessionRegistry;
use fieldline_entities::entity_query::{self, EntityQueryService};
use fieldline_entities::password::PasswordHashPool;
use fieldline_entities::rest_api_requests::{RestApiRequests, RestRequestLimits};
use fieldline_entities::services::{self, DeviceOnboarding, HousekeeperService, TenantTransfer, seed};
use fieldline_journal::{EmbeddedJournal, InFlightFile};
use fieldline_model::json::JsonRules;
use fieldline_rules::accounts::{ProviderSmsSender, SmtpMailSender};
use fieldline_rules::catalog::{NodeTypeCatalog, ScriptTestRunner};
use fieldline_rules::engine::{QueueListener, RuleEngineService};
use fieldline_rules::replay::{ChainReplayer, FieldReprocessor};
use fieldline_storage::series::SeriesStore;
use fieldline_storage::sql::EntityDatabase;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tracing::warn;

use crate::banner;
use crate::config::Config;
use crate::data_dir::DataDir;
use crate::retention::RetentionWorker;
use crate::serve::ServeError;
use crate::shutdown::ShutdownDeadline;
use crate::system_info::LocalSystemInfo;

/// How long after its start the program says that it is not ready because of what the journal held. A short replay is
/// worth waiting for, so that nobody who is sent here sees values older than before a crash; a long lag is no reason to
/// turn devices away.
const REPLAY_TIMEOUT: Duration = Duration::from_secs(10);

/// Everything that holds data, and who is told when it changes.
pub(crate) struct PlatformStores {
    pub(crate) journal: Arc<dyn Journal>,
    pub(crate) series: Arc<SeriesStore>,
    /// The way to the series for everything that writes.
    observed_store: Arc<ObservedStore>,
    database: EntityDatabase,
    /// Where it is noted what is worked on, if it can be.
    in_flight: Option<Arc<InFlightFile>>,
    events: Arc<EntityEvents>,
    clock: SharedClock,
}

impl PlatformStores {
    pub(crate) async fn open(dir: &DataDir, config: &Config) -> Result<Self, ServeError> {
        let clock: SharedClock = Arc::new(SystemClock);
        let journal = Arc::new(EmbeddedJournal::open(&dir.journal(), &config.journal)?);
        let series = SeriesStore::open(&dir.series(), &config.series, clock.clone())?;
        let database = EntityDatabase::sqlite(&dir.entities(), &config.sql).await?;
        let live = ObservedStore::new(
            series.clone(),
            series.clone(),
            series.clone(),
            series.clone(),
            series.clone(),
        );
        let hands = InFlightFile::open(dir.root())
            .inspect_err(|error| warn!(%error, "cannot open the notes of what is in hand, going on without"))
            .ok();
        Ok(Self {
            journal,
            observed_store: live,
            in_flight: hands.map(Arc::new),
            series,
            database,
            events: Arc::default(),
            clock,
        })
    }

    /// The context of services that check no rule nodes.
    fn context(&self, rule_engine: Arc<dyn RuleEngine>) -> services::ServiceContext {
        services::ServiceContext {
            stores: self.database.entity_stores(),
            series: self.observed_store.clone(),
            attributes: self.observed_store.clone(),
            events: self.events.clone(),
            clock: self.clock.clone(),
            passwords: PasswordHashPool::new(1),
            rule_engine,
            rule_nodes: Arc::new(NoRuleNodes),
        }
    }

    /// Creates what a new installation starts with.
    pub(crate) async fn seed(&self, config: &Config, demo: bool) -> Result<(), ServeError> {
        let context = self.context(Arc::new(NoRuleEngine));
        let mut password = config.admin_password.clone();
        if demo {
            password.get_or_insert_with(|| seed::DEMO_ADMIN_PASSWORD.to_owned());
        }
        if password.is_none() && !seed::has_admin(&context).await? {
            // Printed before it is stored: whenever the program ends, no administrator has a password that nobody saw.
            let generated = seed::new_password();
            banner::print_admin(seed::ADMIN_EMAIL, &generated);
            password = Some(generated);
        }
        seed::ensure_system(&context, password.as_deref()).await?;
        if demo {
            seed::seed_demo(&context).await?;
        }
        Ok(())
    }

    /// The routes of the REST API.
    pub(crate) async fn api(
        &self,
        core: &PlatformCore,
        dir: &DataDir,
        config: &Config,
    ) -> Result<axum::Router, ServeError> {
        let deps = fieldline_api::ApiDependencies {
            entities: self.database.entity_stores(),
            series: self.observed_store.clone(),
            attributes: self.observed_store.clone(),
            events: self.events.clone(),
            clock: self.clock.clone(),
            token_key: fieldline_api::TokenKey::load_or_create(&dir.token_key())
                .map_err(ServeError::start)?,
            token_settings: fieldline_api::stored_token_settings(&*self.database.entity_stores().settings)
                .await?,
            mailer: Arc::new(SmtpMailSender(core.rules.mail_tokens())),
            sms: Arc::new(ProviderSmsSender::default()),
            system_info: Arc::new(LocalSystemInfo::new(dir.root())),
            rule_engine: core.rules.message_producer(),
            rest_requests: core.rest_requests.clone(),
            set_aside: core.set_aside.clone(),
            device_link: core.sessions.clone(),
            rpc: core.rpc.clone(),
            onboarding: core.onboarding.clone(),
            tenant_transfer: core.tenant_transfer.clone(),
            usage: core.usage.clone(),
            rule_nodes: core.catalog.clone(),
            observed_store: self.observed_store.clone(),
            queries: self.queries(config),
            rule_usage: core.rules.shared().services.scripts.ledger().clone(),
            scripts: Arc::new(ScriptTestRunner::new(
                core.rules.shared().services.scripts.clone(),
            )),
            replays: Arc::new(ChainReplayer::new(core.rules.shared().clone())),
            reprocess: Arc::new(FieldReprocessor::new(core.rules.shared().clone())),
        };
        Ok(fieldline_api::router(deps, config.api.clone()))
    }

    /// Queries of entities, told of everything that changes.
    fn queries(&self, config: &Config) -> Arc<EntityQueryService> {
        let deps = entity_query::EntityQueryPorts {
            stores: self.database.entity_stores(),
            rows: self.database.entity_rows(),
            values: self.series.clone(),
            attributes: self.observed_store.clone(),
            clock: self.clock.clone(),
        };
        let queries = EntityQueryService::new(deps, config.api.query_memory.as_usize());
        self.events.listen(queries.entity_listener());
        self.observed_store.listen(queries.value_listener());
        queries
    }

    /// Closes what is open, as far as the time allows; what is not closed recovers at the next start.
    pub(crate) async fn close(&self, deadline: ShutdownDeadline) {
        deadline.step("journal", 0.4, self.journal.close()).await;
        let series = self.series.clone();
        let closing = tokio::task::spawn_blocking(move || series.close());
        match deadline.step("series", 0.6, closing).await {
            Some(Ok(Err(error))) => warn!(%error, "the time-series store did not close cleanly"),
            Some(Err(error)) => warn!(%error, "the time-series store did not close cleanly"),
            Some(Ok(Ok(()))) | None => {}
        }
        deadline.step("entities", 1.0, self.database.close()).await;
    }
}

/// The path of messages and those who listen to it.
pub(crate) struct PlatformCore {
    pub(crate) sessions: Arc<SessionRegistry>,
    rpc: Arc<DeviceRpcService>,
    downloads: Arc<OtaDownloads>,
    onboarding: Arc<DeviceOnboarding>,
    tenant_transfer: Arc<TenantTransfer>,
    guard: Arc<AddressGuard>,
    directory: Arc<DeviceDirectory>,
    activity: Arc<ActivityTracker>,
    usage: Arc<UsageStore>,
    producer: QueueProducer,
    rules: Arc<RuleEngineService>,
    rest_requests: Arc<RestApiRequests>,
    set_aside: Arc<SetAsideService>,
    catalog: Arc<NodeTypeCatalog>,
    ingest: Arc<IngestService>,
    /// Ends the activity tracker. Not before ingest has ended, or what is heard last is never written.
    stop_activity: watch::Sender<bool>,
    activity_task: JoinHandle<()>,
    /// Stores what tenants use; ends with the activity tracker.
    usage_task: JoinHandle<()>,
    /// Tells devices of their packages; ends with the activity tracker.
    rollout_task: JoinHandle<()>,
    /// Has devices that went to another tenant followed by their values.
    transfer_task: JoinHandle<()>,
    /// Takes away what deleted entities have left.
    housekeeper_task: JoinHandle<()>,
    /// Keeps what changes with calls to devices; ends with the activity tracker.
    rpc_task: JoinHandle<()>,
    retention_task: JoinHandle<()>,
}

impl PlatformCore {
    pub(crate) async fn start(stores: &PlatformStores, config: &Config) -> Result<Self, ServeError> {
        fieldline_core::ingest::describe_metrics();
        fieldline_transport::describe_metrics();
        address_guard::describe_metrics();
        memory_pool::describe_metrics();
        let entities = stores.database.entity_stores();
        let directory = DeviceDirectory::new(
            entities.clone(),
            stores.observed_store.clone(),
            stores.clock.clone(),
            &config.devices,
        );
        let usage = UsageStore::new(
            entities.clone(),
            stores.observed_store.clone(),
            stores.clock.clone(),
        );
        stores.events.listen(usage.clone());
        // Before anybody counts: what was used up before the start is used up after it.
        usage.restore().await.map_err(ServeError::start)?;
        directory.count_in(usage.clone());
        let sessions = SessionRegistry::new(config.mqtt.sessions_per_device);
        let calls = DeviceRpcService::with_options(
            sessions.clone(),
            entities.rpcs.clone(),
            stores.clock.clone(),
            config.calls.clone(),
        );
        let downloads = OtaDownloads::new(
            entities.ota_packages.clone(),
            entities.ota_updates.clone(),
            &config.ota,
        );
        // Before those who tell devices of a package: what these ask for then is looked up anew.
        stores.events.listen(downloads.clone());
        let activity = ActivityTracker::new(
            entities,
            stores.observed_store.clone(),
            stores.clock.clone(),
            &config.activity,
        );
        stores.events.listen(directory.clone());
        stores.events.listen(sessions.clone());
        stores.events.listen(activity.clone());
        let rollouts = OtaRollouts::new(
            ota::RolloutServices {
                stores: stores.database.entity_stores(),
                series: stores.observed_store.clone(),
                attributes: stores.observed_store.clone(),
                devices: sessions.clone(),
                clock: stores.clock.clone(),
            },
            &config.ota,
        );
        stores.events.listen(rollouts.clone());
        rollouts.restore().await?;
        let uplink = open_producer(stores, config)?;
        let rest_calls = RestApiRequests::new(SERVICE_ID, RestRequestLimits::default());
        let rules = RuleEngineService::new(
            fieldline_rules::engine::EngineDependencies {
                stores: stores.database.entity_stores(),
                series: stores.observed_store.clone(),
                attributes: stores.observed_store.clone(),
                events: stores.events.clone(),
                clock: stores.clock.clone(),
                devices: sessions.clone(),
                rpc: Arc::new(DeviceRpcPort(calls.clone())),
                rest_calls: rest_calls.clone(),
                activity: activity.clone(),
                usage: usage.clone(),
                // The configuration was looked at before the start.
                egress: config.egress.rules().unwrap_or_default(),
                producer: uplink.clone(),
                runtime: tokio::runtime::Handle::current(),
                service_id: SERVICE_ID.into(),
            },
            &config.rules,
        );
        activity.report_to(rules.message_producer());
        calls.report_to(rules.message_producer());
        let onboarding =
            DeviceOnboarding::with_options(stores.context(rules.message_producer()), &config.claiming);
        let moves = TenantTransfer::new(
            stores.context(rules.message_producer()),
            stores.observed_store.clone(),
        );
        let ingest_stores = IngestStores {
            store: stores.observed_store.clone(),
            activity: activity.clone(),
            processors: rules.main_processors(),
        };
        let set_aside = SetAsideService::new(
            stores.database.entity_stores().set_aside,
            rules.message_producer(),
            stores.clock.clone(),
            &config.set_aside,
        );
        let crashes = CrashHandling {
            in_flight: match &stores.in_flight {
                Some(hands) => InFlightTracker::start(hands.clone()),
                None => InFlightTracker::nowhere(),
            },
            set_aside: Some(set_aside.clone()),
        };
        rules.shared().chains.note_loads(&crashes.in_flight);
        set_aside.acquit_in(&crashes.in_flight);
        rules.route_queues().await?;
        let ingest = IngestService::start_after(crashes, &uplink, ingest_stores, &config.ingest).await?;
        let ingest = Arc::new(ingest);
        rules.open_queues(&ingest).await?;
        rules.drain_deleted_queues(&ingest).await?;
        stores.events.listen(Arc::new(QueueListener {
            engine: rules.clone(),
            ingest: ingest.clone(),
        }));
        tokio::spawn(fieldline_rules::stats::report(rules.clone()));
        tokio::spawn(rules.mail_tokens().run_renewal());
        let catalog = Arc::new(NodeTypeCatalog::new(rules.shared().services.clone()));
        let unfinished = rules.shared().services.rules.ota_packages.discard_unfinished();
        if let Err(error) = unfinished.await {
            warn!(%error, "cannot delete uploads that were cut off");
        }
        let housekeeping = RetentionWorker {
            alarms: rules.shared().services.rules.alarms.clone(),
            rpcs: rules.shared().services.rules.rpc_cleanup.clone(),
            packages: rules.shared().services.rules.ota_packages.clone(),
            events: rules.shared().services.stores.events.clone(),
            audit: rules.shared().services.stores.audit.clone(),
            clock: stores.clock.clone(),
            options: config.events.clone(),
        };
        let housekeeping = tokio::spawn(housekeeping.run());
        let stop_activity = watch::Sender::new(false);
        let following = tokio::spawn(moves.clone().run(stop_activity.subscribe()));
        let leftovers = HousekeeperService::new(
            stores.context(rules.message_producer()),
            stores.observed_store.clone(),
        );
        let clearing = tokio::spawn(leftovers.run(stop_activity.subscribe()));
        let tracker = activity.clone();
        let watching = tokio::spawn(tracker.run(config.activity.clone(), stop_activity.subscribe()));
        let rolling_out = tokio::spawn(rollouts.run(stop_activity.subscribe()));
        let calling = tokio::spawn(calls.clone().run(stop_activity.subscribe()));
        let reporting = tokio::spawn(usage.clone().run(config.usage.clone(), stop_activity.subscribe()));
        Ok(Self {
            sessions,
            rpc: calls,
            downloads,
            onboarding,
            tenant_transfer: moves,
            guard: Arc::new(AddressGuard::new(
                config.address_guard.clone(),
                stores.clock.clone(),
            )),
            directory,
            activity,
            usage,
            producer: uplink,
            rules,
            rest_requests: rest_calls,
            set_aside,
            catalog,
            ingest,
            stop_activity,
            activity_task: watching,
            usage_task: reporting,
            rollout_task: rolling_out,
            transfer_task: following,
            housekeeper_task: clearing,
            rpc_task: calling,
            retention_task: housekeeping,
        })
    }

    /// What the device servers work with.
    pub(crate) fn device_services(
        &self,
        stores: &PlatformStores,
        config: &Config,
    ) -> fieldline_transport::TransportServices {
        fieldline_transport::TransportServices {
            directory: self.directory.clone(),
            guard: self.guard.clone(),
            sessions: self.sessions.clone(),
            rpc: self.rpc.clone(),
            downloads: self.downloads.clone(),
            onboarding: self.onboarding.clone(),
            producer: self.producer.clone(),
            attributes: stores.observed_store.clone(),
            activity: self.activity.clone(),
            clock: stores.clock.clone(),
            json: JsonRules {
                type_cast: config.mqtt.json_type_cast,
                max_string_length: config.mqtt.json_max_text,
                ..JsonRules::default()
            },
        }
    }

    /// Ends the calls of clients that wait for rule chains: the program stops.
    pub(crate) fn close_rest_requests(&self) {
        self.rest_requests.close();
    }

    /// Asks why ingest has ended for good, `None` while it works.
    pub(crate) fn ingest_failure(&self) -> impl Fn() -> Option<String> + Send + Sync + 'static {
        self.ingest.failure()
    }

    /// Lets the journal be processed: the ports are open.
    pub(crate) fn begin_ingest(&self) {
        self.ingest.begin();
    }

    /// Asks whether it is worth waiting for what the journal held at the start.
    pub(crate) fn replaying(&self) -> impl Fn() -> bool + Send + Sync + 'static {
        let (has_replayed, started) = (self.ingest.has_replayed(), Instant::now());
        move || started.elapsed() < REPLAY_TIMEOUT && !has_replayed()
    }

    /// Stores what the journal still holds, as far as the time allows; the rest is replayed by the next start.
    pub(crate) async fn finish(self, stores: &PlatformStores, deadline: ShutdownDeadline) {
        self.retention_task.abort();
        // What is left follows after the next start.
        self.transfer_task.abort();
        self.housekeeper_task.abort();
        self.rules.stop();
        // Sessions have ended just now, which the journal can still be told.
        deadline.step("device events", 0.2, self.activity.flush()).await;
        deadline.step("journal", 0.4, stores.journal.close()).await;
        let (ingest, patience) = (self.ingest, deadline.share(0.5));
        let stopping = tokio::task::spawn_blocking(move || ingest.stop(patience));
        if let Some(Err(error)) = deadline.step("ingest", 0.7, stopping).await {
            warn!(%error, "ingest did not stop cleanly");
        }
        self.stop_activity.send_replace(true);
        let writer = self.activity_task.abort_handle();
        deadline.step("activity", 0.5, self.activity_task).await;
        writer.abort();
        let rollouts = self.rollout_task.abort_handle();
        deadline.step("OTA rollouts", 0.5, self.rollout_task).await;
        rollouts.abort();
        let caller = self.rpc_task.abort_handle();
        deadline.step("calls", 0.5, self.rpc_task).await;
        caller.abort();
        let reporter = self.usage_task.abort_handle();
        deadline.step("API usage", 0.5, self.usage_task).await;
        reporter.abort();
    }
}

fn open_producer(stores: &PlatformStores, config: &Config) -> Result<QueueProducer, ServeError> {
    let configured = config.ingest.partitions;
    let uplink = QueueProducer::open(stores.journal.clone(), configured)?;
    let stored = stores.journal.partitions(uplink.queue());
    if stored != configured {
        warn!(
            configured,
            stored,
            "`ingest.partitions` is fixed since the data directory was created, the setting has no effect"
        );
    }
    Ok(uplink)
}
