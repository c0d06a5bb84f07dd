//! The servers for devices, people and probes.

use std::future::Future;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::response::Redirect;
use axum::routing::get;
use fieldline_core::ports::{BrokerAdmin, TimeSeriesStore};
use fieldline_entities::broker_access::BrokerAccessService;
use fieldline_transport::{TransportServices, coap, http as device_http, mqtt, mqtts};
use tokio::runtime::Handle;
use tokio_rustls::TlsAcceptor;
use tracing::warn;

use crate::broker::RunningBroker;
use crate::config::{Config, ConfigSource, EffectiveConfig};
use crate::data_dir::{BoundAddresses, BrokerAddresses, DataDir};
use crate::http::cors::{self, AllowedOrigins};
use crate::http::{HttpLimits, HttpServer};
use crate::probes::{self, ProbeState};
use crate::serve::ServeError;

/// Reads certificate and key if a TLS listener is configured.
pub(crate) fn tls(options: &mqtts::Options) -> Result<Option<(SocketAddr, TlsAcceptor)>, ServeError> {
    match (&options.listen, &options.certificate, &options.private_key) {
        (Some(address), Some(certificate), Some(key)) => {
            Ok(Some((*address, mqtts::acceptor(certificate, key)?)))
        }
        _ => Ok(None),
    }
}

/// Reads the DTLS credentials if a CoAP listener over DTLS is configured.
pub(crate) fn dtls(options: &coap::SecureOptions) -> Result<Option<coap::DtlsCredentials>, ServeError> {
    match options.listen {
        Some(_) => Ok(Some(coap::DtlsCredentials::read(options)?)),
        None => Ok(None),
    }
}

/// Certificates of the listeners with TLS and DTLS.
pub(crate) struct ServerCertificates {
    pub(crate) mqtts: Option<(SocketAddr, TlsAcceptor)>,
    pub(crate) coaps: Option<coap::DtlsCredentials>,
    pub(crate) broker: Option<TlsAcceptor>,
}

/// The addresses to listen on, and the web origins that may use the one for HTTP.
pub(crate) struct ListenAddresses {
    http: SocketAddr,
    origins: AllowedOrigins,
    probes: Option<SocketAddr>,
    mqtt: SocketAddr,
    certificates: ServerCertificates,
    broker: fieldline_broker::Options,
}

impl ListenAddresses {
    /// Returns the addresses of the configuration. The demo's passwords are publicly known, so HTTP and MQTT listen on
    /// this machine only unless the configuration sets an address.
    pub(crate) fn of(loaded: &EffectiveConfig, demo: bool, certificates: ServerCertificates) -> Self {
        let is_kept_here = |key: &str| demo && *loaded.source(key) == ConfigSource::Default;
        let public = |key: &str, address: SocketAddr| {
            if is_kept_here(key) {
                SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), address.port())
            } else {
                address
            }
        };
        let config = &loaded.config;
        Self {
            http: public("http.listen", config.http.listen),
            origins: if is_kept_here("http.cors-origins") {
                AllowedOrigins::ThisMachine
            } else {
                AllowedOrigins::parse(&config.http.cors_origins)
            },
            probes: config.http.probe_listen,
            mqtt: public("mqtt.listen", config.mqtt.listen),
            certificates,
            broker: fieldline_broker::Options {
                listen: config
                    .broker
                    .listen
                    .map(|address| public("broker.listen", address)),
                websocket_listen: config
                    .broker
                    .websocket_listen
                    .map(|address| public("broker.websocket-listen", address)),
                ..config.broker.clone()
            },
        }
    }
}

/// The running servers. They must be stopped even if some of them did not start.
pub(crate) struct RunningServers {
    services: Arc<TransportServices>,
    mqtt: Arc<mqtt::MqttServer>,
    coap: coap::CoapServer,
    broker: Option<RunningBroker>,
    http: Vec<HttpServer>,
    /// Serves HTTP on threads of its own. On those of the device servers, a request would wait until a thousand busy
    /// devices have had their turn.
    http_runtime: Handle,
}

impl RunningServers {
    /// Creates servers that do not listen yet.
    pub(crate) async fn new(
        services: TransportServices,
        access: BrokerAccessService,
        series: Arc<dyn TimeSeriesStore>,
        dir: &DataDir,
        config: &Config,
        http_runtime: Handle,
    ) -> Result<Self, ServeError> {
        crate::http::describe_metrics();
        let services = Arc::new(services);
        Ok(Self {
            mqtt: mqtt::MqttServer::new(services.clone(), &config.mqtt, &config.http.proxies())
                .map_err(ServeError::start)?,
            broker: RunningBroker::start(dir, config, &services, access, series).await?,
            coap: coap::CoapServer::new(
                services.clone(),
                &config.coap,
                config.journal.max_append.as_usize(),
            ),
            services,
            http: Vec::new(),
            http_runtime,
        })
    }

    /// The administration of the broker; `None` if it is off.
    pub(crate) fn broker_admin(&self) -> Option<Arc<dyn BrokerAdmin>> {
        self.broker.as_ref().map(RunningBroker::admin)
    }

    /// Listens on all addresses: the API with the device API and the probes, the probes alone, MQTT and CoAP.
    pub(crate) async fn open(
        &mut self,
        addresses: ListenAddresses,
        api: Router,
        probes: ProbeState,
        config: &Config,
    ) -> Result<BoundAddresses, ServeError> {
        let options = &config.http;
        let limits = HttpLimits::of(options);
        let probes = probes::router(Arc::new(probes));
        let device_limits = device_http::DeviceHttpLimits {
            max_body: options.max_device_body.as_usize(),
            body_memory: options.device_body_memory.as_usize(),
            max_append: config.journal.max_append.as_usize(),
            body_deadline: options.request_timeout.0,
        };
        let routes = api
            .merge(device_http::router(self.services.clone(), device_limits))
            .merge(fieldline_web::documentation())
            .merge(probes.clone());
        let routes = match options.ui_source() {
            Some(source) => fieldline_web::add_to(routes, source),
            None => routes.route("/", get(async || Redirect::to("/swagger-ui.html"))),
        };
        let routes = routes.layer(cors::layer(addresses.origins));
        let probe_address = match addresses.probes {
            Some(address) => {
                let limits = limits.clone().for_probes();
                Some(self.open_http("http.probe-listen", address, probes, limits)?)
            }
            None => None,
        };
        let http = self.open_http("http.listen", addresses.http, routes, limits)?;
        let binding = self.mqtt.listen(addresses.mqtt, None);
        let mqtt = listening("mqtt.listen", addresses.mqtt, binding).await?;
        let broker_certificate = addresses.certificates.broker.clone();
        let mqtts = match addresses.certificates.mqtts {
            Some((address, acceptor)) => {
                let binding = self.mqtt.listen(address, Some(acceptor));
                Some(listening("mqtts.listen", address, binding).await?)
            }
            None => None,
        };
        let (coap, coaps) = self.open_coap(addresses.certificates.coaps, config).await?;
        let broker = match &mut self.broker {
            Some(broker) => {
                let bound = broker.listen(&addresses.broker, broker_certificate).await?;
                broker.start_bridges(config, mqtt)?;
                bound
            }
            None => BrokerAddresses::default(),
        };
        Ok(BoundAddresses {
            http,
            probes: probe_address,
            mqtt,
            mqtts,
            coap,
            coaps,
            broker,
        })
    }

    async fn open_coap(
        &self,
        credentials: Option<coap::DtlsCredentials>,
        config: &Config,
    ) -> Result<(Option<SocketAddr>, Option<SocketAddr>), ServeError> {
        let plain = match config.coap.listen {
            Some(address) => {
                let binding = std::future::ready(self.coap.listen(address));
                Some(listening("coap.listen", address, binding).await?)
            }
            None => None,
        };
        let secure = match (config.coaps.listen, credentials) {
            (Some(address), Some(credentials)) => {
                let bound = self.coap.listen_secure(address, credentials, &config.coaps);
                Some(listening("coaps.listen", address, std::future::ready(bound)).await?)
            }
            _ => None,
        };
        Ok((plain, secure))
    }

    fn open_http(
        &mut self,
        key: &'static str,
        address: SocketAddr,
        routes: Router,
        limits: HttpLimits,
    ) -> Result<SocketAddr, ServeError> {
        let _entered = self.http_runtime.enter();
        let server = HttpServer::start(address, routes, limits).map_err(|source| ServeError::Listen {
            key,
            address,
            source,
        })?;
        let bound = server.address;
        self.http.push(server);
        Ok(bound)
    }

    /// Stops accepting, ends the sessions of devices and waits at most `patience` for the requests being served.
    pub(crate) async fn stop(self, patience: Duration) {
        let http: Vec<_> = self
            .http
            .into_iter()
            .map(|server| tokio::spawn(server.stop(patience)))
            .collect();
        let broker = async {
            if let Some(broker) = &self.broker {
                broker.stop(patience).await;
            }
        };
        let (mqtt, coap, ()) = tokio::join!(self.mqtt.stop(patience), self.coap.stop(patience), broker);
        if !mqtt {
            warn!("device connections were still open");
        }
        if !coap {
            warn!("requests over CoAP were still worked on");
        }
        for server in http {
            // A panic in it was reported already; it matters only that the task has ended.
            let _ = server.await;
        }
    }
}

async fn listening(
    key: &'static str,
    address: SocketAddr,
    binding: impl Future<Output = std::io::Result<SocketAddr>>,
) -> Result<SocketAddr, ServeError> {
    binding
        .await
        .map_err(|source| ServeError::Listen { key, address, source })
}
