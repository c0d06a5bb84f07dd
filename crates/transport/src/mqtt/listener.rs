//! Listeners: accept connections, log devices in, and hand their connections to event loops.

use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use fieldline_core::logging::LogGate;
use fieldline_core::partial_budget::PartialBudget;
use fieldline_devices::sessions::{CloseReason, SessionProtocol};
use fieldline_event_loop::{EventLoopGroup, TaskStream, TrustedProxies, listen};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use tracing::warn;

use super::Options;
use super::connection::{ConnectionPermit, MqttConnection, MqttShared};
use super::driver::MqttDriver;
use super::keepalive::KeepAliveMonitor;
use super::large_memory::{LargeLimits, LargeMemory};
use super::login::{AuthenticatedDevice, LoginOutcome, MqttPeer, log_in};
use super::provisioning::{self, ProvisioningClient};
use crate::TransportServices;
use crate::metrics::{ConnectionMetrics, TransportMetrics};

static ACCEPT_GATE: LogGate = LogGate::new(1);
static PROXY_GATE: LogGate = LogGate::new(1);

/// Pause after the operating system refused an accept, usually for want of file handles.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Extra time for a device whose time to connect is over, as it may have passed while this process was stopped.
const CONNECT_GRACE: Duration = Duration::from_millis(500);

/// The MQTT device server, shared by all its listeners.
pub struct MqttServer {
    shared: Arc<MqttShared>,
    max_connections: u32,
    connect_timeout: Duration,
    /// Proxies that must send a PROXY protocol header; empty if the protocol is off.
    proxies: TrustedProxies,
    stop: watch::Sender<bool>,
    /// They carry the connections of devices that have logged in.
    loops: EventLoopGroup<MqttConnection>,
}

impl MqttServer {
    /// Creates a server without listeners, in the context of a runtime. The `proxies` count only if the options turn the
    /// PROXY protocol on.
    ///
    /// # Errors
    /// The system has no threads or files left for an event loop.
    pub fn new(
        services: Arc<TransportServices>,
        options: &Options,
        proxies: &TrustedProxies,
    ) -> std::io::Result<Arc<Self>> {
        let loops = EventLoopGroup::start("mqtt", options.event_loops, MqttDriver::new)?;
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
        Ok(Arc::new(Self {
            shared: Arc::new(shared),
            max_connections: max_connections as u32,
            connect_timeout: options.connect_timeout.0,
            proxies: match options.proxy_protocol {
                true => proxies.clone(),
                false => TrustedProxies::default(),
            },
            stop,
            loops,
        }))
    }

    /// Binds an address and accepts devices on it until the server is stopped, with TLS if there is an acceptor.
    /// Returns the bound address.
    pub async fn listen(
        self: &Arc<Self>,
        address: SocketAddr,
        tls: Option<TlsAcceptor>,
    ) -> std::io::Result<SocketAddr> {
        let listener = listen(address)?;
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
        let server = self.clone();
        match tls {
            None => tokio::spawn(async move { server.introduce(place, socket, peer).await }),
            Some(acceptor) => {
                tokio::spawn(async move { server.introduce_tls(place, socket, peer, acceptor).await })
            }
        };
    }

    async fn introduce(self: Arc<Self>, place: ConnectionPermit, mut socket: TcpStream, peer: SocketAddr) {
        let introduction = async {
            let peer = MqttPeer {
                address: self.resolve_peer(&mut socket, peer).await?,
                protocol: SessionProtocol::Mqtt,
                certificates: None,
            };
            log_in(&mut socket, &self.shared, peer).await
        };
        if let Some(outcome) = self.in_time(introduction).await {
            self.welcome(place, socket, outcome).await;
        }
    }

    async fn introduce_tls(
        self: Arc<Self>,
        place: ConnectionPermit,
        socket: TcpStream,
        peer: SocketAddr,
        acceptor: TlsAcceptor,
    ) {
        if let Some((stream, outcome)) = self.in_time(self.handshake_tls(socket, peer, acceptor)).await {
            self.welcome(place, stream, outcome).await;
        }
    }

    /// Hands the connection of a device to an event loop, or serves a client that asks for credentials.
    async fn welcome<S: TaskStream>(&self, place: ConnectionPermit, stream: S, outcome: LoginOutcome) {
        match outcome {
            LoginOutcome::Device(admitted) => self.hand_over(place, stream, *admitted),
            LoginOutcome::Newcomer(newcomer) => self.provision(&place, stream, *newcomer).await,
        }
    }

    fn hand_over<S: TaskStream>(&self, place: ConnectionPermit, stream: S, admitted: AuthenticatedDevice) {
        match stream.into_socket() {
            Ok(socket) => {
                let connection = MqttConnection::open(place, socket, admitted);
                self.loops.adopt(Box::new(connection));
            }
            Err(error) => warn!(%error, "cannot hand a connection to its event loop"),
        }
    }

    /// Serves a provisioning client, which never becomes a device connection.
    async fn provision<S: TaskStream>(
        &self,
        place: &ConnectionPermit,
        mut stream: S,
        newcomer: ProvisioningClient,
    ) {
        let mut stop = self.stop.subscribe();
        tokio::select! {
            () = provisioning::serve(&mut stream, place, newcomer) => {}
            _ = stop.wait_for(|stop| *stop) => {}
        }
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
        let certificates = stream.peer_certificates();
        let peer = MqttPeer {
            address,
            protocol: SessionProtocol::Mqtts,
            certificates: certificates.as_deref(),
        };
        let entry = log_in(&mut stream, &self.shared, peer).await?;
        Some((stream, entry))
    }
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
