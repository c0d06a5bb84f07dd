//! Proxies that are trusted to name the client behind them.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use fieldline_codec::address::IpRange;
use fieldline_codec::proxy;
use tokio::io::AsyncReadExt as _;
use tokio::net::TcpStream;

/// The addresses of the operator's own proxies. A PROXY header from any other address is not believed.
#[derive(Debug, Clone, Default)]
pub struct TrustedProxies(Arc<[IpRange]>);

impl TrustedProxies {
    /// Parses ranges of addresses.
    ///
    /// # Errors
    /// A text is not a range; the error says which.
    pub fn parse(ranges: &[String]) -> Result<Self, String> {
        let ranges: Result<Vec<IpRange>, String> = ranges.iter().map(|range| range.parse()).collect();
        Ok(Self(ranges?.into()))
    }

    /// Whether a proxy of the operator has the address.
    pub fn contains(&self, address: IpAddr) -> bool {
        self.0.iter().any(|range| range.contains(address))
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the address of the client at the other end of a connection just accepted. A trusted proxy must send a
    /// PROXY protocol header, which is read off the socket; if the header says that the proxy speaks for itself (a
    /// health check, for example), the client is the proxy. An untrusted peer is the client, whatever it sends.
    ///
    /// # Errors
    /// The proxy sends no header, or a wrong one; the caller closes the connection. There is no timeout here.
    pub async fn resolve_client(&self, socket: &mut TcpStream, peer: SocketAddr) -> io::Result<SocketAddr> {
        if !self.contains(peer.ip()) {
            return Ok(peer);
        }
        let mut header = Vec::new();
        loop {
            let missing = proxy::missing_bytes(&header).map_err(io::Error::other)?;
            if missing == 0 {
                break;
            }
            let read = header.len();
            header.resize(read + missing, 0);
            if let Some(rest) = header.get_mut(read..) {
                socket.read_exact(rest).await?;
            }
        }
        let source = proxy::decode(&header).map_err(io::Error::other)?;
        Ok(source.unwrap_or(peer))
    }
}
