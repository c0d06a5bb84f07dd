//! The way to the brokers of a cluster. Whoever answers first names the others, and the library connects to them by
//! itself: all it can be told is a SOCKS proxy (RFC 1928). This is one, on loopback, which connects to what may be reached.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::timeout;

use crate::egress::Egress;

/// Connections at a time; a cluster has one for each broker and partition that is written to.
const MAX_CONNECTIONS: usize = 1024;
/// How long a connection may take to say where it leads, and to come about.
const TIMEOUT: Duration = Duration::from_secs(30);

const VERSION: u8 = 5;
const NO_AUTHENTICATION: u8 = 0;
const CONNECT: u8 = 1;
const SUCCEEDED: u8 = 0;
const NOT_ALLOWED: u8 = 2;
const UNREACHABLE: u8 = 4;

/// A relay that runs until it is dropped, with all that goes through it.
#[derive(Debug)]
pub(super) struct SocksRelay {
    address: SocketAddr,
    failure: Arc<Mutex<Option<String>>>,
    accepting: AbortHandle,
}

impl SocksRelay {
    /// Begins to relay what may be reached.
    pub(super) async fn open(egress: Egress) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let failure = Arc::default();
        let accepting = tokio::spawn(accept(listener, egress, Arc::clone(&failure))).abort_handle();
        Ok(Self {
            address,
            failure,
            accepting,
        })
    }

    /// Where it listens.
    pub(super) fn address(&self) -> String {
        self.address.to_string()
    }

    /// Why the last connection did not come about, which the library is not told.
    pub(super) fn failure(&self) -> Option<String> {
        self.failure
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

impl Drop for SocksRelay {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn accept(listener: TcpListener, egress: Egress, failure: Arc<Mutex<Option<String>>>) {
    // Ends with this task.
    let mut connections = JoinSet::new();
    loop {
        while connections.len() >= MAX_CONNECTIONS {
            connections.join_next().await;
        }
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    connections.spawn(serve(stream, egress.clone(), Arc::clone(&failure)));
                }
                // Usually for want of file handles.
                Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
            },
            Some(_) = connections.join_next() => {}
        }
    }
}

async fn serve(mut client: TcpStream, egress: Egress, failure: Arc<Mutex<Option<String>>>) {
    let dialled = timeout(TIMEOUT, async {
        let (host, port) = request(&mut client).await?;
        let dialled = egress.connect(&host, port).await;
        let reply = match &dialled {
            Ok(_) => SUCCEEDED,
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => NOT_ALLOWED,
            Err(_) => UNREACHABLE,
        };
        *failure.lock().unwrap_or_else(PoisonError::into_inner) =
            dialled.as_ref().err().map(ToString::to_string);
        // The address that it is bound to interests nobody.
        client
            .write_all(&[VERSION, reply, 0, 1, 0, 0, 0, 0, 0, 0])
            .await?;
        dialled
    });
    if let Ok(Ok(mut server)) = dialled.await {
        let _ = client.set_nodelay(true);
        let _ = server.set_nodelay(true);
        // However it ends, the library notices.
        let _ = copy_bidirectional(&mut client, &mut server).await;
    }
}

/// Reads where a connection leads.
async fn request(client: &mut TcpStream) -> io::Result<(String, u16)> {
    let wrong = || io::Error::other("not SOCKS 5");
    if client.read_u8().await? != VERSION {
        return Err(wrong());
    }
    let mut methods = vec![0; client.read_u8().await?.into()];
    client.read_exact(&mut methods).await?;
    client.write_all(&[VERSION, NO_AUTHENTICATION]).await?;
    let mut head = [0; 4];
    client.read_exact(&mut head).await?;
    let [VERSION, CONNECT, _, kind] = head else {
        return Err(wrong());
    };
    let host = match kind {
        1 => Ipv4Addr::from(client.read_u32().await?).to_string(),
        3 => {
            let mut name = vec![0; client.read_u8().await?.into()];
            client.read_exact(&mut name).await?;
            String::from_utf8(name).map_err(|_| wrong())?
        }
        4 => std::net::Ipv6Addr::from(client.read_u128().await?).to_string(),
        _ => return Err(wrong()),
    };
    Ok((host, client.read_u16().await?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::egress::EgressRules;

    async fn dial(relay: &SocksRelay, host: &str, port: u16) -> (u8, TcpStream) {
        let mut stream = TcpStream::connect(relay.address).await.unwrap();
        let mut request = vec![VERSION, 1, NO_AUTHENTICATION, VERSION, CONNECT, 0, 3];
        request.push(u8::try_from(host.len()).unwrap());
        request.extend(host.as_bytes());
        request.extend(port.to_be_bytes());
        stream.write_all(&request).await.unwrap();
        let mut reply = [0; 12];
        stream.read_exact(&mut reply).await.unwrap();
        (reply[3], stream)
    }

    #[tokio::test]
    async fn what_may_be_reached_is_relayed_and_nothing_else() {
        let broker = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = broker.local_addr().unwrap().port();
        let closed = SocksRelay::open(Egress::fixed(EgressRules::default()))
            .await
            .unwrap();
        let (reply, mut stream) = dial(&closed, "localhost", port).await;
        assert_eq!(reply, NOT_ALLOWED);
        assert_eq!(stream.read(&mut [0]).await.unwrap(), 0, "the connection ends");
        let failure = closed.failure().unwrap();
        assert!(
            failure.contains("of host localhost is refused: loopback"),
            "{failure}"
        );

        let rules = EgressRules::parse(&["127.0.0.1"]).unwrap();
        let open = SocksRelay::open(Egress::fixed(rules)).await.unwrap();
        let (reply, mut stream) = dial(&open, "127.0.0.1", port).await;
        assert_eq!((reply, open.failure()), (SUCCEEDED, None));
        let (mut accepted, _) = broker.accept().await.unwrap();
        stream.write_all(b"ping").await.unwrap();
        let mut word = [0; 4];
        accepted.read_exact(&mut word).await.unwrap();
        assert_eq!(&word, b"ping");
        drop(open);
        assert_eq!(
            accepted.read(&mut word).await.unwrap_or(0),
            0,
            "ends with the relay"
        );
    }
}
