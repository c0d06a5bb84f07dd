//! A way to a server that can be cut.

use std::sync::Arc;

use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;

/// Forwards connections until it is told to cut them; new ones are taken on.
pub(crate) struct Proxy {
    pub(crate) port: u16,
    cut: Arc<Notify>,
}

impl Proxy {
    pub(crate) async fn to(server: String) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let cut = Arc::new(Notify::new());
        let cuts = Arc::clone(&cut);
        tokio::spawn(async move {
            loop {
                let (mut client, _) = listener.accept().await.unwrap();
                let mut server = TcpStream::connect(&server).await.unwrap();
                let cuts = Arc::clone(&cuts);
                tokio::spawn(async move {
                    tokio::select! {
                        _ = copy_bidirectional(&mut client, &mut server) => {}
                        () = cuts.notified() => {}
                    }
                });
            }
        });
        Self { port, cut }
    }

    /// Ends all connections that there are.
    pub(crate) fn cut(&self) {
        self.cut.notify_waiters();
    }
}
