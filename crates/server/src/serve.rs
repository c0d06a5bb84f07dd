//! `fieldline serve`: wires the parts together, and takes them apart again in the order that loses nothing.

use std::future::Future;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use fieldline_core::activity::ActivityTracker;
use fieldline_core::clock::{SharedClock, SystemClock};
use fieldline_core::devices::DeviceDirectory;
use fieldline_core::events::EntityEvents;
use fieldline_core::ingest::{IngestService, IngestStores, Uplink};
use fieldline_core::password::Passwords;
use fieldline_core::ports::{Journal, JournalError, StoreError};
use fieldline_core::services::{self, seed};
use fieldline_core::sessions::Sessions;
use fieldline_journal::EmbeddedJournal;
use fieldline_model::json::JsonRules;
use fieldline_storage::series::SeriesStore;
use fieldline_storage::sql::Database;
use fieldline_transport::{http as device_http, mqtt, mqtts};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tracing::{info, warn};

use crate::config::{Config, Loaded, Source};
use crate::data_dir::{DataDir, Listening};
use crate::http::HttpServer;
use crate::{banner, limits, probes, shutdown};

/// Why the platform did not start, or did not stop cleanly.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ServeError {
    #[error("cannot use the data directory {}: {source}", path.display())]
    DataDir { path: PathBuf, source: std::io::Error },
    #[error("cannot open the journal: {0}")]
    Journal(#[from] JournalError),
    #[error("cannot open the stores: {0}")]
    Store(#[from] StoreError),
    #[error("cannot create what a new installation starts with: {0}")]
    Seed(#[from] services::ServiceError),
    #[error("cannot listen on {address} (`{key}`): {source}")]
    Listen {
        key: &'static str,
        address: SocketAddr,
        source: std::io::Error,
    },
    #[error("{0}")]
    Tls(#[from] mqtts::TlsError),
    #[error("cannot start: {0}")]
    Start(Box<dyn std::error::Error + Send + Sync>),
}

impl ServeError {
    fn start(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self::Start(error.into())
    }
}

/// Runs the platform until it is told to stop.
pub(crate) fn run(loaded: Loaded, demo: bool) -> Result<(), ServeError> {
    limits::raise_open_files();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(ServeError::start)?;
    let result = runtime.block_on(serve(loaded, demo));
    // Whatever is still running has had its time.
    runtime.shutdown_timeout(Duration::from_millis(200));
    result
}

async fn serve(loaded: Loaded, demo: bool) -> Result<(), ServeError> {
    let started = Instant::now();
    let config = &loaded.config;
    let dir = DataDir::open(&config.data_dir).map_err(|source| ServeError::DataDir {
        path: config.data_dir.clone(),
        source,
    })?;
    let metrics = probes::install_metrics().map_err(ServeError::start)?;
    let stores = Stores::open(&dir, config).await?;
    let new_admin = stores.seed(config, demo).await?;
    let core = Core::start(&stores, config)?;

    let services = Arc::new(core.device_services(&stores, config));
    let mqtt_server = mqtt::MqttServer::new(services.clone(), &config.mqtt);
    let mqtt_address = on_loopback(&loaded, demo, "mqtt.listen", config.mqtt.listen);
    let mqtt = listen(
        "mqtt.listen",
        mqtt_address,
        mqtt_server.listen(mqtt_address, None),
    )
    .await?;
    let mqtts = match (
        &config.mqtts.listen,
        &config.mqtts.certificate,
        &config.mqtts.private_key,
    ) {
        (Some(address), Some(certificate), Some(key)) => {
            let acceptor = mqtts::acceptor(certificate, key)?;
            Some(
                listen(
                    "mqtts.listen",
                    *address,
                    mqtt_server.listen(*address, Some(acceptor)),
                )
                .await?,
            )
        }
        _ => None,
    };
    let probes = probes::Probes {
        journal: stores.journal.clone(),
        sessions: core.sessions.clone(),
        metrics,
        started,
        stopping: core.stop.subscribe(),
        series: stores.series.clone(),
        has_replayed: Box::new(core.ingest.has_replayed()),
    };
    let limits = device_http::Limits {
        max_body: config.http.max_device_body.as_usize(),
        body_memory: config.http.device_body_memory.as_usize(),
    };
    let routes = stores
        .api(&dir, config)?
        .merge(device_http::router(services, limits))
        .merge(probes::router(probes));
    let http_address = on_loopback(&loaded, demo, "http.listen", config.http.listen);
    let http = listen(
        "http.listen",
        http_address,
        HttpServer::start(http_address, routes, &config.http),
    )
    .await?;

    let listening = Listening {
        http: http.address,
        mqtt,
        mqtts,
    };
    dir.write_listening(&listening)
        .map_err(|source| ServeError::DataDir {
            path: config.data_dir.clone(),
            source,
        })?;
    let shown = new_admin
        .as_ref()
        .map(|(email, password)| (*email, password.as_str()));
    banner::print(&listening, demo, shown);
    info!(http = %listening.http, mqtt = %listening.mqtt, elapsed_ms = started.elapsed().as_millis(), "ready");

    let signal = shutdown::requested().await.map_err(ServeError::start)?;
    info!(signal, "stopping");
    let deadline = Instant::now() + config.shutdown_timeout.0;
    core.stop.send_replace(true);
    if let Err(error) = dir.remove_listening() {
        warn!(%error, "cannot take back where the servers listen");
    }
    let left = || deadline.saturating_duration_since(Instant::now());
    let ((), all_ended) = tokio::join!(http.stop(left() / 3), mqtt_server.stop(left() / 3));
    if !all_ended {
        warn!("device connections were still open");
    }
    core.finish(&stores, left() / 2).await;
    stores.close().await;
    info!("stopped");
    Ok(())
}

/// The demo has well-known passwords: it is for this machine only, unless somebody says otherwise.
fn on_loopback(loaded: &Loaded, demo: bool, key: &str, address: SocketAddr) -> SocketAddr {
    if demo && *loaded.source(key) == Source::Default {
        return SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), address.port());
    }
    address
}

async fn listen<T>(
    key: &'static str,
    address: SocketAddr,
    binding: impl Future<Output = std::io::Result<T>>,
) -> Result<T, ServeError> {
    binding
        .await
        .map_err(|source| ServeError::Listen { key, address, source })
}

/// Everything that holds data, and who is told when it changes.
struct Stores {
    journal: Arc<dyn Journal>,
    series: Arc<SeriesStore>,
    database: Database,
    events: Arc<EntityEvents>,
    clock: SharedClock,
}

impl Stores {
    async fn open(dir: &DataDir, config: &Config) -> Result<Self, ServeError> {
        let clock: SharedClock = Arc::new(SystemClock);
        let journal = Arc::new(EmbeddedJournal::open(&dir.journal(), &config.journal)?);
        let series = SeriesStore::open(&dir.series(), &config.series, clock.clone())?;
        let database = Database::sqlite(&dir.entities(), &config.sql).await?;
        Ok(Self {
            journal,
            series,
            database,
            events: Arc::default(),
            clock,
        })
    }

    /// Creates what a new installation starts with; returns a generated password of the administrator.
    async fn seed(&self, config: &Config, demo: bool) -> Result<Option<(&'static str, String)>, ServeError> {
        let context = services::Context {
            stores: self.database.entity_stores(),
            series: self.series.clone(),
            attributes: self.series.clone(),
            events: self.events.clone(),
            clock: self.clock.clone(),
            passwords: Passwords::new(1).map_err(ServeError::start)?,
        };
        let demo_password = demo.then_some(seed::DEMO_ADMIN_PASSWORD);
        let created =
            seed::ensure_system(&context, config.admin_password.as_deref().or(demo_password)).await?;
        if demo {
            seed::seed_demo(&context).await?;
        }
        Ok(created.admin_email.zip(created.generated_password))
    }

    fn api(&self, dir: &DataDir, config: &Config) -> Result<axum::Router, ServeError> {
        let deps = fieldline_api::Deps {
            entities: self.database.entity_stores(),
            series: self.series.clone(),
            attributes: self.series.clone(),
            events: self.events.clone(),
            clock: self.clock.clone(),
            token_key: fieldline_api::TokenKey::load_or_create(&dir.token_key())
                .map_err(ServeError::start)?,
        };
        fieldline_api::router(deps, config.api.clone()).map_err(ServeError::start)
    }

    async fn close(&self) {
        if let Err(error) = self.series.close() {
            warn!(%error, "the time-series store did not close cleanly");
        }
        self.database.close().await;
    }
}

/// The path of messages and those who listen to it.
struct Core {
    directory: Arc<DeviceDirectory>,
    sessions: Arc<Sessions>,
    activity: Arc<ActivityTracker>,
    uplink: Uplink,
    ingest: IngestService,
    stop: watch::Sender<bool>,
    watching: JoinHandle<()>,
}

impl Core {
    fn start(stores: &Stores, config: &Config) -> Result<Self, ServeError> {
        fieldline_core::ingest::describe_metrics();
        fieldline_transport::describe_metrics();
        let entities = stores.database.entity_stores();
        let directory = DeviceDirectory::new(entities.clone(), &config.devices);
        let sessions = Sessions::new(config.mqtt.sessions_per_device);
        let activity = ActivityTracker::new(
            entities,
            stores.series.clone(),
            stores.clock.clone(),
            &config.activity,
        );
        stores.events.listen(directory.clone());
        stores.events.listen(sessions.clone());
        stores.events.listen(activity.clone());
        let uplink = Uplink::open(stores.journal.clone(), config.ingest.partitions)?;
        let ingest_stores = IngestStores {
            store: stores.series.clone(),
            activity: activity.clone(),
        };
        let ingest = IngestService::start(&uplink, ingest_stores, &config.ingest)?;
        let stop = watch::Sender::new(false);
        let watching = tokio::spawn(activity.clone().run(config.activity.clone(), stop.subscribe()));
        Ok(Self {
            directory,
            sessions,
            activity,
            uplink,
            ingest,
            stop,
            watching,
        })
    }

    fn device_services(&self, stores: &Stores, config: &Config) -> fieldline_transport::Services {
        fieldline_transport::Services {
            directory: self.directory.clone(),
            sessions: self.sessions.clone(),
            uplink: self.uplink.clone(),
            attributes: stores.series.clone(),
            activity: self.activity.clone(),
            clock: stores.clock.clone(),
            json: JsonRules {
                type_cast: config.mqtt.json_type_cast,
                max_string_length: config.mqtt.json_max_text,
                ..JsonRules::default()
            },
        }
    }

    /// Stores what the journal still holds, as far as the time allows; the rest is replayed by the next start.
    async fn finish(self, stores: &Stores, patience: Duration) {
        stores.journal.close().await;
        let ingest = self.ingest;
        let waiting = tokio::task::spawn_blocking(move || ingest.stop(patience));
        if waiting.await.is_err() {
            warn!("ingest did not stop cleanly");
        }
        let _ = self.watching.await;
    }
}
