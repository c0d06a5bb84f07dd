//! Listeners: accept connections, log devices in, and start their tasks.

use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use fieldline_core::logging::LogGate;
use fieldline_devices::sessions::{CloseReason, SessionProtocol};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use tracing::warn;

use super::Options;
use super::connection::{ConnectionPermit, MqttConnection, MqttShared, serve_connection};
use super::keepalive::KeepAliveMonitor;
use super::large_memory::{LargeLimits, LargeMemory};
use super::login::{LoginOutcome, MqttPeer, log_in};
use super::partial_budget::PartialBudget;
use super::provisioning::{self, ProvisioningClient};
use super::stream::MqttStream;
use crate::TransportServices;
use crate::metrics::{ConnectionMetrics, TransportMetrics};
use crate::proxies::TrustedProxies;

static ACCEPT_GATE: LogGate = LogGate::new(1);
static PROXY_GATE: LogGate = LogGate::new(1);

/// Pause after the operating system refused an accept, usually for want of file handles.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Extra time for a device whose time to connect is over, as it may have passed while this process was stopped.
const CONNECT_GRACE: Duration = Duration::from_millis(500);

/// Length of the accept queue, as far as the operating system allows. After an outage all devices connect at once, and
/// a device that finds the queue full retries only after a second.
const BACKLOG: u32 = 4_096;

/// The MQTT device server, shared by all its listeners.
pub struct MqttServer {
    shared: Arc<MqttShared>,
    max_connections: u32,
    connect_timeout: Duration,
    /// Proxies that must send a PROXY protocol header; empty if the protocol is off.
    proxies: TrustedProxies,
    stop: watch::Sender<bool>,
}

impl MqttServer {
    /// Creates a server without listeners. The `proxies` count only if the options turn the PROXY protocol on.
    pub fn new(services: Arc<TransportServices>, options: &Options, proxies: &TrustedProxies) -> Arc<Self> {
        let max_connections = options
            .max_connections
            .clamp(1, Semaphore::MAX_PERMITS.min(u32::MAX as usize));
        let max_content = u32::try_from(options.max_packet.0).unwrap_or(u32::MAX);
        let shared = MqttShared {
            services,
            keep_alive: KeepAliveMonitor::new(),
            partial_budget: PartialBudget::new(options.partial_memory.as_usize()),
            metrics: TransportMetrics::of("mqtt"),
            gateway_metrics: Arc::default(),
            connections: ConnectionMetrics::of("mqtt"),
            connection_permits: Semaphore::new(max_connections),
            max_packet: with_header(max_content),
            max_content,
            large_memory: LargeMemory::new(LargeLimits {
                all: options.chunk_memory,
                grace: options.chunk_grace.0,
                pace: options.chunk_pace.0,
                ..LargeLimits::default()
            }),
            inactivity_s: u32::try_from(options.inactivity_timeout.0.as_secs()).unwrap_or(u32::MAX),
        };
        let stop = watch::Sender::new(false);
        tokio::spawn(shared.keep_alive.clone().run(stop.subscribe()));
        let reporting = shared.gateway_metrics.clone();
        let interval = options.gateway_metrics_interval.0;
        tokio::spawn(reporting.run(shared.services.clone(), interval, stop.subscribe()));
        Arc::new(Self {
            shared: Arc::new(shared),
            max_connections: max_connections as u32,
            connect_timeout: options.connect_timeout.0,
            proxies: match options.proxy_protocol {
                true => proxies.clone(),
                false => TrustedProxies::default(),
            },
            stop,
        })
    }

    /// Binds an address and accepts devices on it until the server is stopped, with TLS if there is an acceptor.
    /// Returns the bound address.
    pub async fn listen(
        self: &Arc<Self>,
        address: SocketAddr,
        tls: Option<TlsAcceptor>,
    ) -> std::io::Result<SocketAddr> {
        let listener = bind(address)?;
        let bound = listener.local_addr()?;
        tokio::spawn(self.clone().accept(listener, tls));
        Ok(bound)
    }

    /// Stops accepting, ends all sessions and waits for them for at most `patience`. Returns whether all have ended.
    pub async fn stop(&self, patience: Duration) -> bool {
        self.stop.send_replace(true);
        self.shared
            .services
            .sessions
            .close_all(None, CloseReason::Shutdown);
        timeout(
            patience,
            self.shared.connection_permits.acquire_many(self.max_connections),
        )
        .await
        .is_ok()
    }

    async fn accept(self: Arc<Self>, listener: TcpListener, tls: Option<TlsAcceptor>) {
        let mut stop = self.stop.subscribe();
        loop {
            // Takes the permit first: a connection that cannot be served stays in the operating system's queue.
            let accepted = async {
                let permit = self.shared.connection_permits.acquire().await;
                (listener.accept().await, permit)
            };
            let (accepted, permit) = tokio::select! {
                accepted = accepted => accepted,
                _ = stop.wait_for(|stop| *stop) => return,
            };
            match (accepted, permit) {
                // Drops a blocked address before any read or handshake. A proxy's own address is not checked: its
                // clients' are.
                (Ok((_, peer)), Ok(_))
                    if !self.proxies.contains(peer.ip())
                        && !self.shared.services.guard.try_admit(peer.ip()) => {}
                (Ok((socket, peer)), Ok(permit)) => {
                    let place = ConnectionPermit::take(&self.shared, permit);
                    self.start(socket, peer, tls.clone(), place);
                }
                (Err(error), _) => {
                    if let Some(suppressed) = ACCEPT_GATE.open() {
                        warn!(%error, suppressed, "cannot accept a connection");
                    }
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
                (_, Err(_)) => return,
            }
        }
    }

    fn start(
        self: &Arc<Self>,
        socket: TcpStream,
        peer: SocketAddr,
        tls: Option<TlsAcceptor>,
        place: ConnectionPermit,
    ) {
        // Acknowledgements are small and must not wait for more output.
        let _ = socket.set_nodelay(true);
        // Two task types, so that a connection without TLS does not take the room of one with TLS.
        let server = self.clone();
        match tls {
            None => tokio::spawn(serve_connection(Box::pin(
                server.authenticate(place, socket, peer),
            ))),
            Some(acceptor) => tokio::spawn(serve_connection(Box::pin(
                server.authenticate_tls(place, socket, peer, acceptor),
            ))),
        };
    }

    async fn authenticate(
        self: Arc<Self>,
        place: ConnectionPermit,
        mut socket: TcpStream,
        peer: SocketAddr,
    ) -> Option<MqttConnection<TcpStream>> {
        let introduction = async {
            let peer = MqttPeer {
                address: self.resolve_peer(&mut socket, peer).await?,
                protocol: SessionProtocol::Mqtt,
                certificates: None,
            };
            log_in(&mut socket, &self.shared, peer).await
        };
        match self.in_time(introduction).await? {
            LoginOutcome::Device(admitted) => Some(MqttConnection::open(place, socket, *admitted)),
            LoginOutcome::Newcomer(newcomer) => self.provision(&place, socket, *newcomer).await,
        }
    }

    async fn authenticate_tls(
        self: Arc<Self>,
        place: ConnectionPermit,
        socket: TcpStream,
        peer: SocketAddr,
        acceptor: TlsAcceptor,
    ) -> Option<MqttConnection<TlsStream<TcpStream>>> {
        let (stream, entry) = self.in_time(self.handshake_tls(socket, peer, acceptor)).await?;
        match entry {
            LoginOutcome::Device(admitted) => Some(MqttConnection::open(place, stream, *admitted)),
            LoginOutcome::Newcomer(newcomer) => self.provision(&place, stream, *newcomer).await,
        }
    }

    /// Serves a provisioning client, which never becomes a device connection.
    async fn provision<S: MqttStream>(
        &self,
        place: &ConnectionPermit,
        mut stream: S,
        newcomer: ProvisioningClient,
    ) -> Option<MqttConnection<S>> {
        let mut stop = self.stop.subscribe();
        tokio::select! {
            () = provisioning::serve(&mut stream, place, newcomer) => {}
            _ = stop.wait_for(|stop| *stop) => {}
        }
        None
    }

    /// Runs `introduction` until the connect timeout, or until the server stops.
    async fn in_time<T>(&self, introduction: impl Future<Output = Option<T>>) -> Option<T> {
        let mut stop = self.stop.subscribe();
        let mut introduction = pin!(introduction);
        let introduced = async {
            match timeout(self.connect_timeout, introduction.as_mut()).await {
                Ok(introduced) => introduced,
                // Input that arrived while this process was stopped still counts.
                Err(_) => timeout(CONNECT_GRACE, introduction).await.ok().flatten(),
            }
        };
        tokio::select! {
            introduced = introduced => introduced,
            _ = stop.wait_for(|stop| *stop) => None,
        }
    }

    /// Returns the address of the peer, or of the client behind the proxy; `None` if the connection must be closed.
    async fn resolve_peer(&self, socket: &mut TcpStream, peer: SocketAddr) -> Option<SocketAddr> {
        match self.proxies.resolve_client(socket, peer).await {
            Ok(caller) if caller == peer || self.shared.services.guard.try_admit(caller.ip()) => Some(caller),
            Ok(_) => None,
            Err(error) => {
                if let Some(suppressed) = PROXY_GATE.open() {
                    warn!(%peer, %error, suppressed, "closed a connection of a trusted proxy");
                }
                None
            }
        }
    }

    async fn handshake_tls(
        &self,
        mut socket: TcpStream,
        peer: SocketAddr,
        acceptor: TlsAcceptor,
    ) -> Option<(TlsStream<TcpStream>, LoginOutcome)> {
        let address = self.resolve_peer(&mut socket, peer).await?;
        let mut stream = acceptor.accept(socket).await.ok()?;
        let certificates = crate::mqtts::peer_certificates(&stream);
        let peer = MqttPeer {
            address,
            protocol: SessionProtocol::Mqtts,
            certificates: certificates.as_deref(),
        };
        let entry = log_in(&mut stream, &self.shared, peer).await?;
        Some((stream, entry))
    }
}

fn bind(address: SocketAddr) -> std::io::Result<TcpListener> {
    let socket = match address {
        SocketAddr::V4(_) => TcpSocket::new_v4()?,
        SocketAddr::V6(_) => TcpSocket::new_v6()?,
    };
    // A restarted server must not wait until the system has forgotten the old process's connections.
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

/// Returns the size of the largest packet, fixed header included, whose content has at most `content` bytes.
const fn with_header(content: u32) -> u32 {
    let length_bytes = match content {
        0..=127 => 1,
        128..=16_383 => 2,
        16_384..=2_097_151 => 3,
        _ => 4,
    };
    content.saturating_add(1 + length_bytes)
}
