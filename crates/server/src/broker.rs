//! The publish/subscribe broker in the program: its files, its listeners, and how it stops.

mod bridges;
mod commands;
mod history;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use fieldline_bridge::{BridgeRunner, LocalBroker};
use fieldline_broker::{BrokerAccess, BrokerPorts, BrokerServer, ListenerLayers, Options};
use fieldline_core::options::ByteSize;
use fieldline_core::ports::{
    BrokerAdmin, BrokerLogin, BrokerRefusal, ClientAuthenticator, ClientGrant, Journal, TimeSeriesStore,
};
use fieldline_entities::broker_access::BrokerAccessService;
use fieldline_journal::EmbeddedJournal;
use fieldline_storage::broker::EmbeddedBrokerStore;
use fieldline_transport::TransportServices;
use fieldline_transport::broker_access::{ClientAuthorities, CredentialsAccess, DeviceAccess};
use fieldline_transport::mqtts::{self, TlsError};
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;
use tracing::warn;

use self::bridges::BridgedBroker;
pub(crate) use self::commands::{BrokerCommand, run as run_command};
use self::history::StatisticsRecorder;
use crate::config::Config;
use crate::data_dir::{BrokerAddresses, DataDir};
use crate::serve::ServeError;

/// Reads certificate and key if the broker listens with TLS.
pub(crate) fn tls(options: &Options) -> Result<Option<TlsAcceptor>, TlsError> {
    match (options.has_tls(), &options.certificate, &options.private_key) {
        (true, Some(certificate), Some(key)) => mqtts::acceptor(certificate, key).map(Some),
        _ => Ok(None),
    }
}

/// Lets everyone in.
struct OpenAccess;

#[async_trait]
impl ClientAuthenticator for OpenAccess {
    async fn authenticate(&self, _: BrokerLogin<'_>) -> Result<ClientGrant, BrokerRefusal> {
        Ok(ClientGrant::default())
    }
}

/// The running broker, with the journal that it has for itself.
pub(crate) struct RunningBroker {
    server: Arc<BrokerServer>,
    journal: Arc<dyn Journal>,
    recording: JoinHandle<()>,
    bridges: Option<BridgeRunner>,
}

impl RunningBroker {
    /// Starts the broker if the settings say so; it does not listen yet. The history of its statistics is stored in
    /// `series`.
    pub(crate) async fn start(
        dir: &DataDir,
        config: &Config,
        services: &Arc<TransportServices>,
        access: BrokerAccessService,
        series: Arc<dyn TimeSeriesStore>,
    ) -> Result<Option<Self>, ServeError> {
        let options = &config.broker;
        if !options.is_enabled() {
            return Ok(None);
        }
        let authorities = match &options.client_authorities {
            Some(path) => ClientAuthorities::read(path)?,
            None => ClientAuthorities::default(),
        };
        // Its own, so that its records wait for no rule engine, and the other way round.
        let journal_options = fieldline_journal::Options {
            durability: config.journal.durability,
            min_free_disk: config.journal.min_free_disk,
            // One message may be for a million persistent sessions, each with 18 bytes of its record.
            max_append: ByteSize::mib(64),
            max_pending: ByteSize::mib(128),
            ..fieldline_journal::Options::default()
        };
        let journal: Arc<dyn Journal> =
            Arc::new(EmbeddedJournal::open(&dir.broker_journal(), &journal_options)?);
        let path = dir.broker_store();
        let opened = tokio::task::spawn_blocking(move || EmbeddedBrokerStore::open(&path)).await;
        let ports = BrokerPorts {
            clock: services.clock.clone(),
            journal: journal.clone(),
            store: Arc::new(opened.map_err(ServeError::start)??),
            authenticator: match options.access {
                BrokerAccess::Anyone => Arc::new(OpenAccess),
                BrokerAccess::Devices => Arc::new(DeviceAccess(services.clone())),
                BrokerAccess::Credentials => Arc::new(CredentialsAccess {
                    services: services.clone(),
                    access,
                    authorities,
                }),
            },
            proxies: config.http.proxies(),
        };
        let server = BrokerServer::start(options.clone(), ports)
            .await
            .map_err(ServeError::start)?;
        let recorder = StatisticsRecorder {
            minutes: server.minutes(),
            series,
        };
        Ok(Some(Self {
            server,
            journal,
            recording: tokio::spawn(recorder.run()),
            bridges: None,
        }))
    }

    /// The administration of the broker.
    pub(crate) fn admin(&self) -> Arc<dyn BrokerAdmin> {
        self.server.admin()
    }

    /// Listens on the addresses of the settings.
    pub(crate) async fn listen(
        &self,
        options: &Options,
        tls: Option<TlsAcceptor>,
    ) -> Result<BrokerAddresses, ServeError> {
        let mut bound = BrokerAddresses::default();
        let listeners = [
            ("broker.listen", options.listen, false, false, &mut bound.broker),
            (
                "broker.tls-listen",
                options.tls_listen,
                true,
                false,
                &mut bound.broker_tls,
            ),
            (
                "broker.websocket-listen",
                options.websocket_listen,
                false,
                true,
                &mut bound.broker_websocket,
            ),
            (
                "broker.websocket-tls-listen",
                options.websocket_tls_listen,
                true,
                true,
                &mut bound.broker_websocket_tls,
            ),
        ];
        for (key, address, has_tls, is_websocket, into) in listeners {
            let Some(address) = address else { continue };
            let layers = ListenerLayers {
                tls: tls.clone().filter(|_| has_tls),
                is_websocket,
            };
            let listening = self.server.listen(address, layers).await;
            *into = Some(listening.map_err(|source| ServeError::Listen { key, address, source })?);
        }
        if let Some(path) = &options.unix_listen {
            let listening = self.server.listen_locally(path).await;
            listening.map_err(|source| ServeError::ListenLocally {
                key: "broker.unix-listen",
                path: path.clone(),
                source,
            })?;
            bound.broker_unix = Some(path.clone());
        }
        Ok(bound)
    }

    /// Starts the bridges of the settings; the platform takes MQTT of devices at `devices`.
    pub(crate) fn start_bridges(&mut self, config: &Config, devices: SocketAddr) -> Result<(), ServeError> {
        let options = &config.bridges;
        if !options.is_empty() {
            let local: Arc<dyn LocalBroker> = Arc::new(BridgedBroker {
                server: self.server.clone(),
                max_packet: config.broker.max_packet.as_usize(),
            });
            let runner = BridgeRunner::start(options, &local, devices, config.mqtt.max_packet.as_usize());
            self.bridges = Some(runner.map_err(ServeError::start)?);
        }
        Ok(())
    }

    /// Ends the connections and stores what has changed, within `patience`.
    pub(crate) async fn stop(&self, patience: Duration) {
        self.recording.abort();
        if let Some(bridges) = &self.bridges {
            bridges.stop(patience.mul_f64(0.2)).await;
        }
        if !self.server.stop(patience.mul_f64(0.8)).await {
            warn!("the broker has not stored all that has changed; its next start takes it from its journal");
        }
        self.journal.close().await;
    }
}
