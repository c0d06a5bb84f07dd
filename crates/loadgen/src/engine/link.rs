//! One non-blocking connection, with or without TLS.

use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

use mio::net::TcpStream;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, StreamOwned};
use socket2::{Domain, Protocol, Socket, Type};

/// Connections from one source address, below what the ephemeral ports of an address usually allow.
const PER_SOURCE: usize = 20_000;

/// A connection to the server.
pub(super) enum Link {
    /// TCP.
    Plain(TcpStream),
    /// TLS over TCP.
    Tls(Box<StreamOwned<ClientConnection, TcpStream>>),
}

/// TLS as the connections use it.
#[derive(Clone)]
pub struct Tls {
    /// Certificates that are trusted and the like.
    pub config: Arc<ClientConfig>,
    /// The name that the server's certificate must have.
    pub name: ServerName<'static>,
}

impl Link {
    /// Begins to connect. Connections to this machine beyond the first 20,000 come from further loopback addresses, since an
    /// address has ports for some 28,000 only.
    pub(super) fn open(target: SocketAddr, index: usize, tls: Option<&Tls>) -> io::Result<Self> {
        let socket = Socket::new(Domain::for_address(target), Type::STREAM, Some(Protocol::TCP))?;
        socket.set_nonblocking(true)?;
        socket.set_tcp_nodelay(true)?;
        let further = index / PER_SOURCE;
        if further > 0 && target.ip() == IpAddr::V4(Ipv4Addr::LOCALHOST) {
            let last = u8::try_from(further + 1).map_err(|_| io::ErrorKind::AddrNotAvailable)?;
            socket.bind(&SocketAddr::from((Ipv4Addr::new(127, 0, 0, last), 0)).into())?;
        }
        match socket.connect(&target.into()) {
            Ok(()) => {}
            Err(error) if error.raw_os_error() == Some(libc::EINPROGRESS) => {}
            Err(error) => return Err(error),
        }
        let stream = TcpStream::from_std(socket.into());
        Ok(match tls {
            None => Self::Plain(stream),
            Some(tls) => {
                let session =
                    ClientConnection::new(tls.config.clone(), tls.name.clone()).map_err(io::Error::other)?;
                Self::Tls(Box::new(StreamOwned::new(session, stream)))
            }
        })
    }

    /// What the event loop watches.
    pub(super) fn socket(&mut self) -> &mut TcpStream {
        match self {
            Self::Plain(stream) => stream,
            Self::Tls(stream) => &mut stream.sock,
        }
    }

    /// Whether a short read may have left something behind.
    pub(super) fn may_hold_more(&self) -> bool {
        matches!(self, Self::Tls(_))
    }

    pub(super) fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(stream) => stream.read(buffer),
            Self::Tls(stream) => stream.read(buffer),
        }
    }

    /// Writes what the system takes now.
    pub(super) fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Plain(stream) => stream.write(bytes),
            Self::Tls(stream) => stream.write(bytes),
        }
    }

    /// Writes what TLS still holds.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Plain(_) => Ok(()),
            Self::Tls(stream) => stream.flush(),
        }
    }
}
