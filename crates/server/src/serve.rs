//! `fieldline serve`: starts the parts one after the other, and stops them in an order that loses no data.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use fieldline_core::ingest;
use fieldline_core::ports::{JournalError, StoreError};
use fieldline_entities::services;
use fieldline_transport::{coap, mqtts};
use metrics_exporter_prometheus::PrometheusHandle;
use tokio::runtime::{Handle, Runtime};
use tokio::sync::watch;
use tracing::{info, warn};

use crate::config::EffectiveConfig;
use crate::data_dir::{BoundAddresses, DataDir};
use crate::servers::{self, ListenAddresses, RunningServers, ServerCertificates};
use crate::shutdown::{self, StopSignal};
use crate::wiring::{PlatformCore, PlatformStores};
use crate::{banner, limits, memory_budget, probes};

/// Time left to blocking calls after everything else has stopped.
const BLOCKING_CALLS_TIMEOUT: Duration = Duration::from_millis(200);

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
    #[error("cannot listen on {} (`{key}`): {source}", path.display())]
    ListenLocally {
        key: &'static str,
        path: PathBuf,
        source: std::io::Error,
    },
    #[error("cannot start to store what devices send: {0}")]
    Ingest(#[from] ingest::IngestStartError),
    #[error("{0}")]
    Tls(#[from] mqtts::TlsError),
    #[error("{0}")]
    Dtls(#[from] coap::DtlsSetupError),
    #[error("cannot start: {0}")]
    Start(Box<dyn std::error::Error + Send + Sync>),
}

impl ServeError {
    pub(crate) fn start(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self::Start(error.into())
    }
}

/// Runs the platform until a stop is requested.
pub(crate) fn run(loaded: &EffectiveConfig, demo: bool) -> Result<(), ServeError> {
    let stop = shutdown::listen(loaded.config.shutdown_timeout.0).map_err(ServeError::start)?;
    limits::raise_open_files();
    let runtime = start_runtime("fieldline")?;
    let http_runtime = start_runtime("fieldline-http")?;
    let result = runtime.block_on(serve(loaded, demo, &stop, http_runtime.handle()));
    http_runtime.shutdown_timeout(BLOCKING_CALLS_TIMEOUT);
    runtime.shutdown_timeout(BLOCKING_CALLS_TIMEOUT);
    result
}

/// Starts a runtime with one thread per processor.
fn start_runtime(thread_name: &str) -> Result<Runtime, ServeError> {
    tokio::runtime::Builder::new_multi_thread()
        .thread_name(thread_name)
        .enable_all()
        .build()
        .map_err(ServeError::start)
}

async fn serve(
    loaded: &EffectiveConfig,
    demo: bool,
    stop: &StopSignal,
    http_runtime: &Handle,
) -> Result<(), ServeError> {
    let started = Instant::now();
    let config = &loaded.config;
    if !loaded.without_effect.is_empty() {
        let names = loaded.without_effect.join(", ");
        info!("environment variables of ThingsBoard's that have no effect here: {names}");
    }
    // Read before anything is created, so that a wrong path shows up at the first attempt.
    let certificates = ServerCertificates {
        mqtts: servers::tls(&config.mqtts)?,
        coaps: servers::dtls(&config.coaps)?,
        broker: crate::broker::tls(&config.broker)?,
    };
    let in_dir = |source| ServeError::DataDir {
        path: config.data_dir.clone(),
        source,
    };
    let dir = DataDir::open(&config.data_dir).map_err(in_dir)?;
    let is_demo = dir.is_demo(demo).map_err(in_dir)?;
    if is_demo && !demo {
        warn!(
            "the data directory has the demo's accounts with well-known passwords, listening on this machine only unless told otherwise"
        );
    }
    let addresses = ListenAddresses::of(loaded, is_demo, certificates);
    let metrics = probes::install_metrics().map_err(ServeError::start)?;
    memory_budget::announce(config);

    let stores = PlatformStores::open(&dir, config).await?;
    let platform = PlatformContext {
        loaded,
        dir: &dir,
        stores: &stores,
        stop,
        http_runtime,
        demo,
        metrics,
        started,
    };
    let result = platform.run(addresses).await;
    stores.close(stop.deadline()).await;
    if result.is_ok() {
        info!("stopped");
    }
    result
}

/// Context that all steps need.
struct PlatformContext<'a> {
    loaded: &'a EffectiveConfig,
    dir: &'a DataDir,
    stores: &'a PlatformStores,
    stop: &'a StopSignal,
    http_runtime: &'a Handle,
    demo: bool,
    metrics: PrometheusHandle,
    started: Instant,
}

impl PlatformContext<'_> {
    /// Runs everything that uses the stores; when this returns, nothing uses them any more.
    async fn run(&self, addresses: ListenAddresses) -> Result<(), ServeError> {
        let config = &self.loaded.config;
        self.stores.seed(config, self.demo).await?;
        let core = PlatformCore::start(self.stores, self.dir, config).await?;
        let result = self.serve(&core, addresses).await;
        core.finish(self.stores, self.stop.deadline()).await;
        result
    }

    /// Serves until a stop is requested; when this returns, no client is connected any more.
    async fn serve(&self, core: &PlatformCore, addresses: ListenAddresses) -> Result<(), ServeError> {
        let config = &self.loaded.config;
        let stopping = watch::Sender::new(false);
        let probes = probes::ProbeState {
            journal: self.stores.journal.clone(),
            sessions: core.sessions().clone(),
            metrics: self.metrics.clone(),
            started: self.started,
            stopping: stopping.subscribe(),
            series: self.stores.series.clone(),
            ingest_failure: Box::new(core.ingest_failure()),
            replaying: Box::new(core.replaying()),
        };
        let api = core.api(self.stores, self.dir, config).await?;
        let mut servers = RunningServers::new(
            core.device_services(self.stores, config),
            core.broker_access(),
            self.stores.time_series(),
            self.dir,
            config,
            self.http_runtime.clone(),
        )
        .await?;
        if let Some(admin) = servers.broker_admin() {
            core.set_broker_admin(admin);
        }
        let opened = servers.open(addresses, api, probes, config).await;
        let result = match opened.and_then(|listening| self.announce(&listening).map(|()| listening)) {
            Ok(listening) => {
                core.set_device_ports(listening.device_ports());
                // Only after the servers listen: even if the journal holds a bad record, people can reach the API to
                // repair the cause.
                core.begin_ingest();
                let signal = self.stop.wait().await;
                info!(signal, "stopping");
                Ok(())
            }
            Err(error) => Err(error),
        };
        stopping.send_replace(true);
        core.close_rest_requests();
        if let Err(error) = self.dir.remove_listening() {
            warn!(%error, "cannot take back where the servers listen");
        }
        servers.stop(self.stop.deadline().share(0.35)).await;
        result
    }

    fn announce(&self, listening: &BoundAddresses) -> Result<(), ServeError> {
        self.dir
            .write_listening(listening)
            .map_err(|source| ServeError::DataDir {
                path: self.loaded.config.data_dir.clone(),
                source,
            })?;
        banner::print(listening, self.demo);
        info!(http = %listening.http, mqtt = %listening.mqtt, elapsed_ms = self.started.elapsed().as_millis(), "ready");
        Ok(())
    }
}
