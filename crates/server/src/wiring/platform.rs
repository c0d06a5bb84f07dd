//! The running platform: the services its servers need, and how it stops.

use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use fieldline_api::{ApiDependencies, CertificateFiles, DevicePorts, TokenKey};
use fieldline_core::address_guard::AddressGuard;
use fieldline_core::ingest::IngestService;
use fieldline_core::ports::{BrokerAdmin, BrokerAdminSlot};
use fieldline_devices::sessions::SessionRegistry;
use fieldline_entities::broker_access::BrokerAccessService;
use fieldline_model::json::JsonRules;
use fieldline_replay::{ChainReplayer, FieldReprocessor};
use fieldline_rules::accounts::{ProviderSmsSender, SmtpMailSender};
use fieldline_rules::catalog::ScriptTestRunner;
use tokio::time::timeout;
use tracing::warn;

use super::PlatformStores;
use super::background::BackgroundTasks;
use super::stages::{DeviceStage, IngestStage, RuleStage};
use crate::config::Config;
use crate::data_dir::DataDir;
use crate::serve::ServeError;
use crate::shutdown::ShutdownDeadline;
use crate::system_info::LocalSystemInfo;

/// How long after the start `/readyz` reports "not ready" because of the backlog in the journal. A short replay is
/// worth waiting for, so that no client routed here sees values older than before a crash; a long backlog is no reason
/// to turn devices away.
const REPLAY_TIMEOUT: Duration = Duration::from_secs(10);

/// The share of the time for a stop in which what the journal holds is to be stored before it is closed.
const CATCH_UP_SHARE: f64 = 0.3;

/// The message path and its listeners.
pub(crate) struct PlatformCore {
    parts: RuleStage,
    guard: Arc<AddressGuard>,
    ingest: Arc<IngestService>,
    background: BackgroundTasks,
    system_info: Arc<LocalSystemInfo>,
    device_ports: Arc<OnceLock<DevicePorts>>,
    broker_admin: BrokerAdminSlot,
}

impl PlatformCore {
    pub(crate) async fn start(
        stores: &PlatformStores,
        dir: &DataDir,
        config: &Config,
    ) -> Result<Self, ServeError> {
        let devices = DeviceStage::start(stores, config).await?;
        let rules = devices.with_rules(stores, config);
        let stage = rules.start_ingest(stores, config).await?;
        let system_info = Arc::new(LocalSystemInfo::new(dir.root()));
        let background = BackgroundTasks::start(&stage, stores, system_info.clone(), config).await;
        let IngestStage { parts, ingest } = stage;
        Ok(Self {
            parts,
            guard: Arc::new(AddressGuard::new(
                config.address_guard.clone(),
                stores.clock.clone(),
            )),
            ingest,
            background,
            system_info,
            device_ports: Arc::default(),
            broker_admin: BrokerAdminSlot::default(),
        })
    }

    /// The routes of the REST API.
    pub(crate) async fn api(
        &self,
        stores: &PlatformStores,
        dir: &DataDir,
        config: &Config,
    ) -> Result<axum::Router, ServeError> {
        let RuleStage {
            devices,
            rules,
            services,
            ..
        } = &self.parts;
        let engine = rules.shared();
        let settings = &services.context.stores.settings;
        let deps = ApiDependencies {
            services: services.clone(),
            token_key: TokenKey::load_or_create(&dir.token_key()).map_err(ServeError::start)?,
            token_settings: fieldline_api::stored_token_settings(&**settings).await?,
            mailer: Arc::new(SmtpMailSender(rules.mail_tokens())),
            sms: Arc::new(ProviderSmsSender::default()),
            system_info: self.system_info.clone(),
            rest_requests: self.parts.rest_requests.clone(),
            set_aside: self.parts.set_aside.clone(),
            device_link: devices.sessions.clone(),
            rpc: devices.rpc.clone(),
            onboarding: self.parts.onboarding.clone(),
            tenant_transfer: self.parts.tenant_transfer.clone(),
            usage: devices.usage.clone(),
            overload: stores.overload.clone(),
            observed_store: stores.observed_store.clone(),
            queries: stores.queries(config),
            rule_usage: engine.services.scripts.ledger().clone(),
            rule_counters: engine.chains.clone(),
            scripts: Arc::new(ScriptTestRunner::new(engine.services.scripts.clone())),
            replays: Arc::new(ChainReplayer::new(engine.clone())),
            reprocess: Arc::new(FieldReprocessor::new(engine.clone())),
            certificates: CertificateFiles {
                mqtts: config
                    .mqtts
                    .certificate
                    .clone()
                    .filter(|_| config.mqtts.listen.is_some()),
                coaps: config
                    .coaps
                    .certificate
                    .clone()
                    .filter(|_| config.coaps.listen.is_some()),
            },
            map_file: config.http.map_file.clone(),
            device_ports: self.device_ports.clone(),
            broker_admin: self.broker_admin.clone(),
        };
        Ok(fieldline_api::router(deps, config.api.clone()))
    }

    /// Tells the API where the servers listen.
    pub(crate) fn set_device_ports(&self, ports: DevicePorts) {
        let _ = self.device_ports.set(ports);
    }

    /// Gives the API the administration of the broker.
    pub(crate) fn set_broker_admin(&self, admin: Arc<dyn BrokerAdmin>) {
        let _ = self.broker_admin.set(admin);
    }

    /// Returns the sessions of devices.
    pub(crate) const fn sessions(&self) -> &Arc<SessionRegistry> {
        &self.parts.devices.sessions
    }

    /// Returns the services that the device servers use.
    pub(crate) fn device_services(
        &self,
        stores: &PlatformStores,
        config: &Config,
    ) -> fieldline_transport::TransportServices {
        let devices = &self.parts.devices;
        fieldline_transport::TransportServices {
            directory: devices.directory.clone(),
            guard: self.guard.clone(),
            sessions: devices.sessions.clone(),
            rpc: devices.rpc.clone(),
            downloads: devices.downloads.clone(),
            overload: stores.overload.clone(),
            onboarding: self.parts.onboarding.clone(),
            producer: devices.producer.clone(),
            attributes: stores.observed_store.clone(),
            activity: devices.activity.clone(),
            clock: stores.clock.clone(),
            json: JsonRules {
                type_cast: config.mqtt.json_type_cast,
                max_string_length: config.mqtt.json_max_text,
                ..JsonRules::default()
            },
        }
    }

    /// Returns who may connect to the broker with credentials of its own.
    pub(crate) fn broker_access(&self) -> BrokerAccessService {
        self.parts.services.broker_access.clone()
    }

    /// Ends the client calls that wait for rule chains, because the program stops.
    pub(crate) fn close_rest_requests(&self) {
        self.parts.rest_requests.close();
    }

    /// Returns a function that tells why ingest has failed for good, `None` while it works.
    pub(crate) fn ingest_failure(&self) -> impl Fn() -> Option<String> + Send + Sync + 'static {
        self.ingest.failure()
    }

    /// Starts to process the journal; call it once the ports are open.
    pub(crate) fn begin_ingest(&self) {
        self.ingest.begin();
    }

    /// Returns a function that tells whether to wait for the replay of the journal's backlog at the start.
    pub(crate) fn replaying(&self) -> impl Fn() -> bool + Send + Sync + 'static {
        let (has_replayed, started) = (self.ingest.has_replayed(), Instant::now());
        move || started.elapsed() < REPLAY_TIMEOUT && !has_replayed()
    }

    /// Stores what the journal still holds, as far as the time allows; the next start replays the rest.
    pub(crate) async fn finish(self, stores: &PlatformStores, deadline: ShutdownDeadline) {
        let tasks = self.background.interrupt();
        self.parts.rules.stop_sources();
        // Sessions have just ended, and those events can still be appended to the journal.
        let activity = &self.parts.devices.activity;
        deadline.step("device events", 0.2, activity.flush()).await;
        // What is left in the journal would be lost to whoever takes another one from here on. A backlog may be too long for that.
        let _ = timeout(deadline.share(CATCH_UP_SHARE), self.ingest.caught_up()).await;
        self.parts.rules.stop();
        deadline.step("journal", 0.4, stores.journal.close()).await;
        let (ingest, patience) = (self.ingest, deadline.share(0.5));
        let stopping = tokio::task::spawn_blocking(move || ingest.stop(patience));
        if let Some(Err(error)) = deadline.step("ingest", 0.7, stopping).await {
            warn!(%error, "ingest did not stop cleanly");
        }
        tasks.finish(deadline).await;
    }
}
