//! Proxies whose word counts about who is behind them.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use fieldline_codec::address::IpRange;
use fieldline_codec::proxy;
use tokio::io::AsyncReadExt as _;
use tokio::net::TcpStream;

/// The addresses of the operator's own proxies. Whoever else says where it comes from is not believed.
#[derive(Debug, Clone, Default)]
pub struct TrustedProxies(Arc<[IpRange]>);

impl TrustedProxies {
    /// Reads ranges of addresses.
    ///
    /// # Errors
    /// One is no range; the text says which.
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

    /// Who is at the other end of a connection just accepted. A trusted proxy has to say so in a header of the PROXY
    /// protocol, which is taken off; where it speaks for itself, as to see whether this server lives, it is the proxy.
    /// Whoever is not trusted is who it is, whatever it says.
    ///
    /// # Errors
    /// The proxy sends no header, or a wrong one; the connection is to be closed. Nothing bounds the time here.
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
