//! The HTTP server: bounded connections, time-outs for slow clients, a graceful end.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::ConnectInfo;
use fieldline_core::logging::LogGate;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinHandle;
use tower::ServiceExt as _;
use tower_http::timeout::RequestBodyTimeoutLayer;
use tracing::{debug, warn};

use crate::config::HttpOptions;

static ACCEPT_GATE: LogGate = LogGate::new(1);
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// The running HTTP server.
pub(crate) struct HttpServer {
    pub(crate) address: SocketAddr,
    stop: watch::Sender<bool>,
    accepting: JoinHandle<GracefulShutdown>,
}

impl HttpServer {
    /// Binds the address and serves the routes on it.
    pub(crate) async fn start(
        address: SocketAddr,
        routes: Router,
        options: &HttpOptions,
    ) -> io::Result<Self> {
        let listener = TcpListener::bind(address).await?;
        let address = listener.local_addr()?;
        let stop = watch::Sender::new(false);
        let routes = routes.layer(RequestBodyTimeoutLayer::new(options.body_timeout.0));
        let accepting = tokio::spawn(accept(listener, routes, options.clone(), stop.subscribe()));
        Ok(Self {
            address,
            stop,
            accepting,
        })
    }

    /// Stops accepting and waits for the requests that are being served, at most `patience`.
    pub(crate) async fn stop(self, patience: Duration) {
        self.stop.send_replace(true);
        let Ok(connections) = self.accepting.await else {
            return;
        };
        if tokio::time::timeout(patience, connections.shutdown())
            .await
            .is_err()
        {
            warn!("HTTP requests were still being served");
        }
    }
}

async fn accept(
    listener: TcpListener,
    routes: Router,
    options: HttpOptions,
    mut stop: watch::Receiver<bool>,
) -> GracefulShutdown {
    let graceful = GracefulShutdown::new();
    let permits = Arc::new(Semaphore::new(
        options.max_connections.min(Semaphore::MAX_PERMITS),
    ));
    let mut builder = hyper::server::conn::http1::Builder::new();
    builder
        .timer(TokioTimer::new())
        .header_read_timeout(options.header_timeout.0);
    loop {
        let accepted = async {
            let permit = permits.clone().acquire_owned().await;
            (listener.accept().await, permit)
        };
        let (accepted, permit) = tokio::select! {
            accepted = accepted => accepted,
            _ = stop.wait_for(|stop| *stop) => return graceful,
        };
        let (socket, peer) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                if let Some(suppressed) = ACCEPT_GATE.open() {
                    warn!(%error, suppressed, "cannot accept a connection");
                }
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        let _ = socket.set_nodelay(true);
        let routes = routes.clone();
        let service = TowerToHyperService::new(tower::service_fn(
            move |mut request: hyper::Request<hyper::body::Incoming>| {
                request.extensions_mut().insert(ConnectInfo(peer));
                routes.clone().oneshot(request)
            },
        ));
        let connection = graceful.watch(builder.serve_connection(TokioIo::new(socket), service));
        tokio::spawn(async move {
            if let Err(error) = connection.await {
                debug!(%peer, %error, "HTTP connection ended");
            }
            drop(permit);
        });
    }
}
