//! Accepting connections.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use fieldline_core::logging::LogGate;
use fieldline_core::sessions::CloseReason;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio_rustls::TlsAcceptor;
use tracing::warn;

use super::Options;
use super::connection::{Shared, serve};
use super::keepalive::KeepAlive;
use super::login::{Admitted, log_in};
use super::stream::Stream;
use crate::Services;
use crate::metrics::{ConnectionMetrics, Metrics};

static ACCEPT_GATE: LogGate = LogGate::new(1);

/// How long no connection is accepted after the operating system refused one, usually for want of file handles.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// The MQTT device server. One for all its listeners.
pub struct MqttServer {
    shared: Arc<Shared>,
    connections: Arc<Semaphore>,
    metrics: Arc<ConnectionMetrics>,
    max_connections: u32,
    connect_timeout: Duration,
    stop: watch::Sender<bool>,
}

impl MqttServer {
    /// A server without listeners.
    pub fn new(services: Arc<Services>, options: &Options) -> Arc<Self> {
        let max_connections = options
            .max_connections
            .clamp(1, Semaphore::MAX_PERMITS.min(u32::MAX as usize));
        let max_content = u32::try_from(options.max_packet.0).unwrap_or(u32::MAX);
        let shared = Shared {
            services,
            keep_alive: KeepAlive::new(),
            metrics: Metrics::of("mqtt"),
            max_packet: with_header(max_content),
            max_content,
            inactivity_s: u32::try_from(options.inactivity_timeout.0.as_secs()).unwrap_or(u32::MAX),
        };
        let stop = watch::Sender::new(false);
        tokio::spawn(shared.keep_alive.clone().run(stop.subscribe()));
        Arc::new(Self {
            shared: Arc::new(shared),
            connections: Arc::new(Semaphore::new(max_connections)),
            metrics: Arc::new(ConnectionMetrics::of("mqtt")),
            max_connections: max_connections as u32,
            connect_timeout: options.connect_timeout.0,
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
        let listener = TcpListener::bind(address).await?;
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
        tokio::time::timeout(patience, self.connections.acquire_many(self.max_connections))
            .await
            .is_ok()
    }

    async fn accept(self: Arc<Self>, listener: TcpListener, tls: Option<TlsAcceptor>) {
        let mut stop = self.stop.subscribe();
        loop {
            // The permit first: what cannot be served is left to the operating system's queue.
            let accepted = async {
                let permit = self.connections.clone().acquire_owned().await;
                (listener.accept().await, permit)
            };
            let (accepted, permit) = tokio::select! {
                accepted = accepted => accepted,
                _ = stop.wait_for(|stop| *stop) => return,
            };
            match (accepted, permit) {
                (Ok((socket, _)), Ok(permit)) => self.clone().start(socket, tls.clone(), permit),
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

    fn start(self: Arc<Self>, socket: TcpStream, tls: Option<TlsAcceptor>, permit: OwnedSemaphorePermit) {
        // Acknowledgements are small and must not wait for more to send.
        let _ = socket.set_nodelay(true);
        let metrics = self.metrics.clone();
        metrics.accepted.increment(1);
        metrics.open.increment(1);
        match tls {
            None => tokio::spawn(async move {
                let mut socket = socket;
                self.run(&mut socket, None).await;
                drop(permit);
                metrics.open.decrement(1);
            }),
            Some(acceptor) => tokio::spawn(async move {
                if let Ok(Ok(mut stream)) =
                    tokio::time::timeout(self.connect_timeout, acceptor.accept(socket)).await
                {
                    let certificates = crate::mqtts::peer_certificates(&stream);
                    self.run(&mut stream, certificates).await;
                }
                drop(permit);
                metrics.open.decrement(1);
            }),
        };
    }

    async fn run<S: Stream>(self: Arc<Self>, stream: &mut S, certificates: Option<Vec<Vec<u8>>>) {
        // Boxed, so that an established connection does not carry the room that logging in takes.
        let admitted = Box::pin(self.admit(stream, certificates)).await;
        let shared = self.shared.clone();
        drop(self);
        if let Some(admitted) = admitted {
            serve(stream, &shared, admitted).await;
        }
    }

    async fn admit<S: Stream>(&self, stream: &mut S, certificates: Option<Vec<Vec<u8>>>) -> Option<Admitted> {
        let mut stop = self.stop.subscribe();
        tokio::select! {
            admitted = tokio::time::timeout(self.connect_timeout, log_in(stream, &self.shared, certificates.as_deref())) => {
                admitted.ok().flatten()
            }
            _ = stop.wait_for(|stop| *stop) => None,
        }
    }
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
