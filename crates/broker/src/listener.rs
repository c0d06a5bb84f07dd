//! The broker's listeners: accept connections, log clients in, and hand their connections to event loops.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use fieldline_codec::ReasonCode;
use fieldline_core::logging::LogGate;
use fieldline_event_loop::{TaskStream, WebSocketStream, listen, listen_locally};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tracing::warn;

use crate::broker::PendingPublications;
use crate::connection::{BrokerConnection, ClientPhase, RetainedBacklog};
use crate::hold::PublisherHold;
use crate::login::{ClientOrigin, ClientPeer, LoggedInClient, log_in};
use crate::server::BrokerServer;

static ACCEPT_GATE: LogGate = LogGate::new(1);
static PROXY_GATE: LogGate = LogGate::new(1);

/// Pause after the operating system refused an accept, usually for want of file handles.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// Path of MQTT over WebSocket.
const WEBSOCKET_PATH: &str = "/mqtt";
/// Names of MQTT over WebSocket, of 3.1.1 on and of 3.1.
const SUBPROTOCOLS: [&str; 2] = ["mqtt", "mqttv3.1"];
/// Where clients of a Unix socket come from.
const THIS_MACHINE: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

/// One of the permitted connections; given back when dropped.
pub(crate) struct ClientPermit {
    _permit: OwnedSemaphorePermit,
}

/// What lies between TCP and MQTT on a listener.
#[derive(Clone, Default)]
pub struct ListenerLayers {
    /// TLS, if there is an acceptor.
    pub tls: Option<TlsAcceptor>,
    /// Whether clients speak WebSocket.
    pub is_websocket: bool,
}

/// Where clients connect.
enum BrokerListener {
    Tcp(TcpListener, ListenerLayers),
    /// Removes its file at the end.
    Unix(UnixListener, PathBuf),
}

/// A client that has connected.
enum AcceptedClient {
    Tcp(TcpStream, SocketAddr, ListenerLayers),
    Unix(UnixStream),
    /// A part of this program.
    Bridge(UnixStream),
}

impl BrokerListener {
    async fn accept(&self) -> io::Result<AcceptedClient> {
        match self {
            Self::Tcp(listener, layers) => {
                let (socket, peer) = listener.accept().await?;
                // Acknowledgements are small and must not wait for more output.
                let _ = socket.set_nodelay(true);
                Ok(AcceptedClient::Tcp(socket, peer, layers.clone()))
            }
            Self::Unix(listener, _) => Ok(AcceptedClient::Unix(listener.accept().await?.0)),
        }
    }
}

impl Drop for BrokerListener {
    fn drop(&mut self) {
        if let Self::Unix(_, path) = self {
            // The next start would find it and remove it, too.
            let _ = std::fs::remove_file(path);
        }
    }
}

impl BrokerServer {
    /// Binds an address and accepts clients on it until the broker is stopped. Returns the bound address.
    ///
    /// # Errors
    /// The address is in use, not of this machine, or not permitted.
    pub async fn listen(
        self: &Arc<Self>,
        address: SocketAddr,
        layers: ListenerLayers,
    ) -> io::Result<SocketAddr> {
        let listener = listen(address)?;
        let bound = listener.local_addr()?;
        self.note_port(&layers, bound.port());
        tokio::spawn(self.clone().accept(BrokerListener::Tcp(listener, layers)));
        Ok(bound)
    }

    /// Notes where clients connect, for administrators.
    fn note_port(&self, layers: &ListenerLayers, port: u16) {
        let mut ports = self.broker.ports.lock();
        let noted = match (layers.tls.is_some(), layers.is_websocket) {
            (false, false) => &mut ports.tcp,
            (true, false) => &mut ports.tls,
            (false, true) => &mut ports.websocket,
            (true, true) => &mut ports.websocket_tls,
        };
        *noted = Some(port);
    }

    /// Binds a Unix socket and accepts clients on it until the broker is stopped.
    ///
    /// # Errors
    /// Another program listens there, or the file cannot be made.
    pub async fn listen_locally(self: &Arc<Self>, path: &Path) -> io::Result<()> {
        let listener = listen_locally(path)?;
        tokio::spawn(
            self.clone()
                .accept(BrokerListener::Unix(listener, path.to_owned())),
        );
        Ok(())
    }

    /// Opens a connection for a bridge, which is a part of this program and needs no credentials. Its client identifier begins with
    /// [`BRIDGE_PREFIX`].
    ///
    /// # Errors
    /// The system has no files left.
    pub fn connect_bridge(self: &Arc<Self>) -> io::Result<UnixStream> {
        let (bridge, socket) = UnixStream::pair()?;
        let server = self.clone();
        tokio::spawn(async move {
            let permit = server.in_time(async { server.permits.clone().acquire_owned().await.ok() });
            if let Some(permit) = permit.await {
                let permit = ClientPermit { _permit: permit };
                server.introduce(permit, AcceptedClient::Bridge(socket)).await;
            }
        });
        Ok(bridge)
    }

    async fn accept(self: Arc<Self>, listener: BrokerListener) {
        let mut closing = self.closing.subscribe();
        loop {
            // Takes the permit first: a connection that cannot be served stays in the operating system's queue.
            let accepted = async {
                let permit = self.permits.clone().acquire_owned().await;
                (listener.accept().await, permit)
            };
            let (accepted, permit) = tokio::select! {
                accepted = accepted => accepted,
                _ = closing.wait_for(|closing| *closing) => return,
            };
            match (accepted, permit) {
                (Ok(client), Ok(permit)) => {
                    let (server, permit) = (self.clone(), ClientPermit { _permit: permit });
                    tokio::spawn(async move { server.introduce(permit, client).await });
                }
                (Err(error), _) => {
                    if let Some(suppressed) = ACCEPT_GATE.open() {
                        warn!(%error, suppressed, "the broker cannot accept a connection");
                    }
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
                (_, Err(_)) => return,
            }
        }
    }

    async fn introduce(self: Arc<Self>, permit: ClientPermit, client: AcceptedClient) {
        let (socket, address, layers) = match client {
            AcceptedClient::Tcp(socket, address, layers) => (socket, address, layers),
            AcceptedClient::Unix(socket) => {
                let introduced = async { Some((socket, THIS_MACHINE)) };
                return self.welcome(permit, introduced, ClientOrigin::Plain).await;
            }
            AcceptedClient::Bridge(socket) => {
                let introduced = async { Some((socket, THIS_MACHINE)) };
                return self.welcome(permit, introduced, ClientOrigin::Bridge).await;
            }
        };
        let known = self.behind_proxy(socket, address);
        let ListenerLayers { tls, is_websocket } = layers;
        match (tls, is_websocket) {
            (None, false) => self.welcome(permit, known, ClientOrigin::Plain).await,
            (None, true) => {
                let handshake = async {
                    let (socket, client) = known.await?;
                    Some((websocket(socket).await?, client))
                };
                self.welcome(permit, handshake, ClientOrigin::Plain).await;
            }
            (Some(acceptor), false) => {
                let handshake = async {
                    let (socket, client) = known.await?;
                    Some((acceptor.accept(socket).await.ok()?, client))
                };
                self.welcome(permit, handshake, ClientOrigin::Tls).await;
            }
            (Some(acceptor), true) => {
                let handshake = async {
                    let (socket, client) = known.await?;
                    let secured = acceptor.accept(socket).await.ok()?;
                    Some((websocket(secured).await?, client))
                };
                self.welcome(permit, handshake, ClientOrigin::Tls).await;
            }
        }
    }

    /// The connection with the address of its client, which may be behind a proxy; `None` if it must be closed.
    async fn behind_proxy(&self, mut socket: TcpStream, peer: SocketAddr) -> Option<(TcpStream, SocketAddr)> {
        match self.proxies.resolve_client(&mut socket, peer).await {
            Ok(client) => Some((socket, client)),
            Err(error) => {
                if let Some(suppressed) = PROXY_GATE.open() {
                    warn!(%peer, %error, suppressed, "the broker closed a connection of a trusted proxy");
                }
                None
            }
        }
    }

    /// Logs a client in over the stream that `handshake` makes, and hands its connection over.
    async fn welcome<S: TaskStream>(
        &self,
        permit: ClientPermit,
        handshake: impl Future<Output = Option<(S, SocketAddr)>>,
        origin: ClientOrigin,
    ) {
        let introduction = async {
            let (mut stream, address) = handshake.await?;
            let certificates = stream.peer_certificates();
            let peer = ClientPeer {
                address,
                certificates: certificates.as_deref(),
                origin,
            };
            let client = self.log_in(&mut stream, peer).await?;
            Some((stream, client))
        };
        if let Some((stream, client)) = self.in_time(introduction).await {
            self.hand_over(permit, stream, client);
        }
    }

    async fn log_in<S: TaskStream>(&self, stream: &mut S, peer: ClientPeer<'_>) -> Option<LoggedInClient> {
        let reservation = self.partial_budget.share();
        let authenticator = match peer.origin {
            ClientOrigin::Bridge => &self.bridges,
            _ => &self.authenticator,
        };
        log_in(
            stream,
            &self.broker,
            authenticator,
            peer,
            reservation,
            self.max_packet,
        )
        .await
    }

    /// Runs `introduction` until the connect timeout, or until the broker stops.
    async fn in_time<T>(&self, introduction: impl Future<Output = Option<T>>) -> Option<T> {
        let mut closing = self.closing.subscribe();
        let introduction = pin!(introduction);
        tokio::select! {
            introduced = timeout(self.broker.options.connect_timeout.0, introduction) => introduced.ok().flatten(),
            _ = closing.wait_for(|closing| *closing) => None,
        }
    }

    fn hand_over<S: TaskStream>(&self, permit: ClientPermit, stream: S, client: LoggedInClient) {
        if *self.closing.borrow() {
            client
                .open
                .session
                .lock()
                .close_link(ReasonCode::ServerShuttingDown);
        }
        match stream.into_socket() {
            Ok(socket) => self.loops.adopt(Box::new(BrokerConnection {
                stream: socket,
                _permit: permit,
                rules: client.rules,
                authentication: client.authentication,
                incoming: match client.open.session.is_bridge() {
                    true => None,
                    false => self.broker.limits.incoming_of_client(),
                },
                open: client.open,
                mqtt: client.mqtt,
                has_input: !client.rest.is_empty(),
                hold: PublisherHold::default(),
                input: client.rest,
                reservation: client.reservation,
                out: client.connack,
                written: 0,
                phase: ClientPhase::Delivering,
                publications: PendingPublications::new(self.broker.clone()),
                backlog: RetainedBacklog::new(self.broker.clone()),
                active_ms: 0,
                watched: None,
                is_last_look: false,
                comes_back: true,
                end: None,
                lingers: false,
                away: None,
            })),
            Err(error) => warn!(%error, "cannot hand a connection to its event loop"),
        }
    }
}

async fn websocket<S: TaskStream>(stream: S) -> Option<WebSocketStream<S>> {
    WebSocketStream::accept(stream, WEBSOCKET_PATH, &SUBPROTOCOLS)
        .await
        .ok()
}
