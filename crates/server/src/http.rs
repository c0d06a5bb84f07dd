//! The HTTP server: bounded connections, timeouts for slow clients, a graceful stop.

mod address_limiter;
mod body;
pub(crate) mod cors;
mod forwarded;
mod stream;
mod timer;

#[cfg(test)]
mod tests;

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::ConnectInfo;
use fieldline_core::logging::LogGate;
use fieldline_event_loop::TrustedProxies;
use hyper::Request;
use hyper::body::Incoming;
use hyper::header::{CONNECTION, EXPECT, HeaderValue};
use hyper::server::conn::http1;
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use metrics::{Gauge, counter, describe_counter, describe_gauge, gauge};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, watch};
use tokio::task::JoinHandle;
use tower::ServiceExt as _;
use tracing::{debug, warn};

use self::address_limiter::{AddressLimiter, AddressPermit};
use self::body::{BodyTimeouts, TimedBody};
use self::stream::WriteTimeoutStream;
use self::timer::PeerTimer;
use crate::config::HttpOptions;

const CONNECTIONS: &str = "fieldline_http_connections";
const REFUSED: &str = "fieldline_http_refused_connections_total";

static ACCEPT_GATE: LogGate = LogGate::new(1);
static ADDRESS_GATE: LogGate = LogGate::new(1);
static PROXY_GATE: LogGate = LogGate::new(1);
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Most connections in the accept queue, as far as the operating system allows it.
const BACKLOG: u32 = 1024;
/// Send buffer of a connection in the operating system, bytes. By default it grows to megabytes per connection, and a
/// slow peer that reads some of it looks the same as one that reads nothing.
const SEND_BUFFER: u32 = 256 << 10;
/// Largest request head, and most bytes of a response that are buffered before they are written.
const CONNECTION_BUFFER: usize = 64 << 10;
/// Most connections of a listener for probes only.
const PROBE_CONNECTIONS: usize = 64;

/// Limits of one HTTP server.
#[derive(Debug, Clone)]
pub(crate) struct HttpLimits {
    max_connections: usize,
    max_connections_per_address: usize,
    header_timeout: Duration,
    write_timeout: Duration,
    body: BodyTimeouts,
    proxies: TrustedProxies,
    /// Whether connections of trusted proxies begin with a header of the PROXY protocol.
    proxy_protocol: bool,
}

impl HttpLimits {
    /// Returns the configured limits.
    pub(crate) fn of(options: &HttpOptions) -> Self {
        Self {
            max_connections: options.max_connections,
            max_connections_per_address: options.max_connections_per_address,
            header_timeout: options.header_timeout.0,
            write_timeout: options.write_timeout.0,
            body: BodyTimeouts {
                silence: options.body_timeout.0,
                whole: options.request_timeout.0,
            },
            proxies: options.proxies(),
            proxy_protocol: options.proxy_protocol,
        }
    }

    /// Returns the same limits for a listener that serves probes only.
    pub(crate) fn for_probes(self) -> Self {
        Self {
            max_connections: PROBE_CONNECTIONS,
            max_connections_per_address: 0,
            proxy_protocol: false,
            ..self
        }
    }
}

/// Registers the descriptions of the metrics; call once at start.
pub(crate) fn describe_metrics() {
    describe_gauge!(CONNECTIONS, "Open HTTP connections");
    describe_counter!(
        REFUSED,
        "HTTP connections closed at once because their address had too many"
    );
}

/// The running HTTP server.
pub(crate) struct HttpServer {
    pub(crate) address: SocketAddr,
    stop: watch::Sender<bool>,
    accept_task: JoinHandle<OpenConnections>,
}

impl HttpServer {
    /// Binds the address and serves the routes on it.
    pub(crate) fn start(address: SocketAddr, routes: Router, limits: HttpLimits) -> io::Result<Self> {
        let listener = bind(address)?;
        let address = listener.local_addr()?;
        let stop = watch::Sender::new(false);
        let acceptor = HttpAcceptor::new(routes, &limits);
        let accepting = tokio::spawn(acceptor.accept(listener, stop.subscribe()));
        Ok(Self {
            address,
            stop,
            accept_task: accepting,
        })
    }

    /// Stops accepting and waits at most `patience` for the requests being served.
    pub(crate) async fn stop(self, patience: Duration) {
        self.stop.send_replace(true);
        let ended = async {
            if let Ok(connections) = self.accept_task.await {
                connections.end().await;
            }
        };
        if tokio::time::timeout(patience, ended).await.is_err() {
            warn!("HTTP requests were still being served");
        }
    }
}

/// Binds a listener for HTTP connections.
pub(crate) fn bind(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = match address {
        SocketAddr::V4(_) => TcpSocket::new_v4()?,
        SocketAddr::V6(_) => TcpSocket::new_v6()?,
    };
    // A restart must not wait until the system has forgotten the connections of the previous process.
    socket.set_reuseaddr(true)?;
    // Accepted connections inherit it.
    socket.set_send_buffer_size(SEND_BUFFER)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

/// The open connections.
struct OpenConnections {
    /// Tells the connections to end after the request being served.
    shutdown: watch::Sender<bool>,
    /// Each connection holds a sender, and nothing is sent: it closes when the last connection ends.
    left: mpsc::Receiver<()>,
}

impl OpenConnections {
    /// Waits until all connections have ended. Upgraded connections no longer count.
    async fn end(mut self) {
        self.shutdown.send_replace(true);
        let _ = self.left.recv().await;
    }
}

/// Resources of an open connection, released when it ends, however it ends and whatever protocol it was upgraded to.
struct HttpConnectionGuard {
    _permit: Option<OwnedSemaphorePermit>,
    _visit: AddressPermit,
    open: Gauge,
}

impl Drop for HttpConnectionGuard {
    fn drop(&mut self) {
        self.open.decrement(1);
    }
}

/// Serves the connections of a listener.
struct HttpConnectionHandler {
    routes: Router,
    protocol: http1::Builder,
    addresses: Arc<AddressLimiter>,
    proxies: TrustedProxies,
    proxy_protocol: bool,
    header_timeout: Duration,
    write_timeout: Duration,
    body: BodyTimeouts,
    shutdown: watch::Sender<bool>,
    /// Dropped with the last connection.
    _alive: mpsc::Sender<()>,
    open: Gauge,
}

struct HttpAcceptor {
    handler: Arc<HttpConnectionHandler>,
    permits: Arc<Semaphore>,
    left: mpsc::Receiver<()>,
}

impl HttpAcceptor {
    fn new(routes: Router, limits: &HttpLimits) -> Self {
        let mut protocol = http1::Builder::new();
        protocol
            .timer(PeerTimer)
            .header_read_timeout(limits.header_timeout)
            .max_buf_size(CONNECTION_BUFFER);
        let (alive, left) = mpsc::channel(1);
        let serving = HttpConnectionHandler {
            routes,
            protocol,
            addresses: AddressLimiter::new(limits.max_connections_per_address),
            proxies: limits.proxies.clone(),
            proxy_protocol: limits.proxy_protocol,
            header_timeout: limits.header_timeout,
            write_timeout: limits.write_timeout,
            body: limits.body,
            shutdown: watch::Sender::new(false),
            _alive: alive,
            open: gauge!(CONNECTIONS),
        };
        Self {
            handler: Arc::new(serving),
            permits: Arc::new(Semaphore::new(limits.max_connections.min(Semaphore::MAX_PERMITS))),
            left,
        }
    }

    async fn accept(self, listener: TcpListener, mut stop: watch::Receiver<bool>) -> OpenConnections {
        loop {
            // The permit comes first: connections that cannot be served stay in the operating system's queue.
            let accepted = async {
                let permit = self.permits.clone().acquire_owned().await;
                (listener.accept().await, permit)
            };
            let (accepted, permit) = tokio::select! {
                accepted = accepted => accepted,
                _ = stop.wait_for(|stop| *stop) => {
                    return OpenConnections {
                        shutdown: self.handler.shutdown.clone(),
                        left: self.left,
                    };
                }
            };
            match accepted {
                Ok((socket, peer)) => self.handler.clone().accept_connection(socket, peer, permit.ok()),
                Err(error) => {
                    if let Some(suppressed) = ACCEPT_GATE.open() {
                        warn!(%error, suppressed, "cannot accept a connection");
                    }
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }
}

impl HttpConnectionHandler {
    fn accept_connection(
        self: Arc<Self>,
        mut socket: TcpStream,
        peer: SocketAddr,
        permit: Option<OwnedSemaphorePermit>,
    ) {
        if !self.proxy_protocol || !self.proxies.contains(peer.ip()) {
            if let Some(visit) = self.acquire_address_permit(peer) {
                let held = self.hold(visit, permit);
                tokio::spawn(self.serve(socket, peer, held));
            }
            return;
        }
        tokio::spawn(async move {
            let mut ending = self.shutdown.subscribe();
            let introduced = tokio::time::timeout(
                self.header_timeout,
                self.proxies.resolve_client(&mut socket, peer),
            );
            let introduced = tokio::select! {
                introduced = introduced => introduced.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into())),
                _ = ending.wait_for(|ending| *ending) => return,
            };
            match introduced {
                Ok(caller) => {
                    if let Some(visit) = self.acquire_address_permit(caller) {
                        let held = self.hold(visit, permit);
                        self.serve(socket, caller, held).await;
                    }
                }
                Err(error) => {
                    if let Some(suppressed) = PROXY_GATE.open() {
                        warn!(%peer, %error, suppressed, "closed a connection of a trusted proxy");
                    }
                }
            }
        });
    }

    /// Counts a connection of an address, unless the address has reached its limit. A trusted proxy has none: all its
    /// clients share the address.
    fn acquire_address_permit(&self, peer: SocketAddr) -> Option<AddressPermit> {
        let visit = self
            .addresses
            .try_acquire(peer.ip(), self.proxies.contains(peer.ip()));
        if visit.is_none() {
            counter!(REFUSED).increment(1);
            if let Some(suppressed) = ADDRESS_GATE.open() {
                warn!(address = %peer.ip(), suppressed, "refused a connection, its address has as many as it may have");
            }
        }
        visit
    }

    fn hold(&self, visit: AddressPermit, permit: Option<OwnedSemaphorePermit>) -> HttpConnectionGuard {
        self.open.increment(1);
        HttpConnectionGuard {
            _permit: permit,
            _visit: visit,
            open: self.open.clone(),
        }
    }

    async fn serve(self: Arc<Self>, socket: TcpStream, peer: SocketAddr, held: HttpConnectionGuard) {
        let _ = socket.set_nodelay(true);
        let (routes, patience, proxies) = (self.routes.clone(), self.body, self.proxies.clone());
        let service = TowerToHyperService::new(tower::service_fn(move |request: Request<Incoming>| {
            let mut request = request.map(|body| TimedBody::new(body, patience));
            let caller = forwarded::resolve_client(&proxies, peer, request.headers_mut());
            request.extensions_mut().insert(ConnectInfo(caller));
            // Reading the body sends `100 Continue` to a client that expects it, so such a body is not read to discard
            // it.
            let unread = match request.headers().contains_key(EXPECT) {
                true => None,
                false => request.body_mut().unread(),
            };
            let answered = routes.clone().oneshot(request);
            async move {
                let mut answer = answered.await?;
                if let Some(unread) = unread
                    && !unread.discard().await
                {
                    let close = HeaderValue::from_static("close");
                    answer.headers_mut().insert(CONNECTION, close);
                }
                Ok::<_, Infallible>(answer)
            }
        }));
        let socket = TokioIo::new(WriteTimeoutStream::new(socket, self.write_timeout, held));
        let connection = self.protocol.serve_connection(socket, service).with_upgrades();
        let mut ending = self.shutdown.subscribe();
        let mut connection = std::pin::pin!(connection);
        let stopping = async {
            let _ = ending.wait_for(|ending| *ending).await;
        };
        let ended = tokio::select! {
            ended = connection.as_mut() => Some(ended),
            () = stopping => None,
        };
        let ended = match ended {
            Some(ended) => ended,
            None => {
                connection.as_mut().graceful_shutdown();
                connection.await
            }
        };
        if let Err(error) = ended {
            debug!(%peer, %error, "HTTP connection ended");
        }
    }
}
