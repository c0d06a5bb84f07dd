//! Accepting connections.

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

/// How long no connection is accepted after the operating system refused one, usually for want of file handles.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// How long a device is waited for beyond its time, which may have passed while this process was stopped.
const CONNECT_GRACE: Duration = Duration::from_millis(500);

/// Connections that wait to be accepted, as far as the operating system allows. After an outage all devices come at once, and
/// one that finds the queue full tries again only after a second.
const BACKLOG: u32 = 4_096;

/// The MQTT device server. One for all its listeners.
pub struct MqttServer {
    shared: Arc<MqttShared>,
    max_connections: u32,
    connect_timeout: Duration,
    /// Those who have to say who is behind them; nobody where they are not to.
    proxies: TrustedProxies,
    stop: watch::Sender<bool>,
}

impl MqttServer {
    /// A server without listeners. `proxies` are believed where the options say so.
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

    /// Binds an address and accepts devices on it, with TLS where an acceptor is given, until the server is stopped.
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

    /// Stops accepting, ends all sessions and waits for them, at most `patience`. Returns whether all have ended.
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
            // The place first: what cannot be served is left to the operating system's queue.
            let accepted = async {
                let permit = self.shared.connection_permits.acquire().await;
                (listener.accept().await, permit)
            };
            let (accepted, permit) = tokio::select! {
                accepted = accepted => accepted,
                _ = stop.wait_for(|stop| *stop) => return,
            };
            match (accepted, permit) {
                // Before anything is read, and before a handshake. A proxy is not who it is about.
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
        // Acknowledgements are small and must not wait for more to send.
        let _ = socket.set_nodelay(true);
        // Tasks of two types: a connection without TLS does not take the room of one that has it.
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

    /// Serves somebody who asks for credentials, and is no device afterwards either.
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

    /// Gives up on a device that takes too long to introduce itself, and when the server stops.
    async fn in_time<T>(&self, introduction: impl Future<Output = Option<T>>) -> Option<T> {
        let mut stop = self.stop.subscribe();
        let mut introduction = pin!(introduction);
        let introduced = async {
            match timeout(self.connect_timeout, introduction.as_mut()).await {
                Ok(introduced) => introduced,
                // What has arrived while this process was stopped counts.
                Err(_) => timeout(CONNECT_GRACE, introduction).await.ok().flatten(),
            }
        };
        tokio::select! {
            introduced = introduced => introduced,
            _ = stop.wait_for(|stop| *stop) => None,
        }
    }

    /// Who is at the other end, or behind the proxy there. `None` when the connection is to be closed.
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
    // A restart must not wait until the system has forgotten the connections of the process before.
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

/// Largest packet, fixed header included, whose content has at most that many bytes.
const fn with_header(content: u32) -> u32 {
    let length_bytes = match content {
        0..=127 => 1,
        128..=16_383 => 2,
        16_384..=2_097_151 => 3,
        _ => 4,
    };
    content.saturating_add(1 + length_bytes)
}
