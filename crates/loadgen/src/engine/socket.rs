//! One non-blocking connection, with or without TLS.

use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

use fieldline_event_loop::Socket;
use mio::net::TcpStream;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection};
use socket2::{Domain, Protocol, Type};

/// Connections per source address, below the usual number of ephemeral ports of an address.
const PER_SOURCE: usize = 20_000;

/// A connection to the server, with what the system has not accepted yet.
pub(crate) struct ClientSocket {
    socket: Socket,
    unwritten: Vec<u8>,
    /// Whether the system accepts nothing now; TLS may hold something even where nothing is unwritten here.
    is_blocked: bool,
}

/// The TLS configuration of the connections.
#[derive(Clone)]
pub struct ClientTls {
    /// The client configuration, for example the trusted certificates.
    pub config: Arc<ClientConfig>,
    /// The name that the server's certificate must have.
    pub name: ServerName<'static>,
}

impl ClientSocket {
    /// Begins to connect. Connections to this machine beyond the first 20,000 use further loopback addresses as source,
    /// since an address has only some 28,000 ports.
    pub(crate) fn open(target: SocketAddr, index: usize, tls: Option<&ClientTls>) -> io::Result<Self> {
        let socket = socket2::Socket::new(Domain::for_address(target), Type::STREAM, Some(Protocol::TCP))?;
        socket.set_nonblocking(true)?;
        socket.set_tcp_nodelay(true)?;
        let further = index / PER_SOURCE;
        if further > 0 && target.ip() == IpAddr::V4(Ipv4Addr::LOCALHOST) {
            let last = u8::try_from(further + 1).map_err(|_| ErrorKind::AddrNotAvailable)?;
            socket.bind(&SocketAddr::from((Ipv4Addr::new(127, 0, 0, last), 0)).into())?;
        }
        match socket.connect(&target.into()) {
            Ok(()) => {}
            Err(error) if error.raw_os_error() == Some(libc::EINPROGRESS) => {}
            Err(error) => return Err(error),
        }
        let stream = TcpStream::from_std(socket.into());
        let socket = match tls {
            None => Socket::plain(stream),
            Some(tls) => {
                let session =
                    ClientConnection::new(tls.config.clone(), tls.name.clone()).map_err(io::Error::other)?;
                Socket::tls(stream, session.into())
            }
        };
        Ok(Self {
            socket,
            unwritten: Vec::new(),
            is_blocked: false,
        })
    }

    /// The socket that the event loop watches.
    pub(crate) fn socket(&mut self) -> &mut TcpStream {
        self.socket.stream()
    }

    /// Whether events say little about readable data: TLS may read in order to write, and write in order to read.
    pub(crate) fn is_tls(&self) -> bool {
        self.socket.is_layered()
    }

    /// Reads available bytes; 0 at the end of the connection.
    pub(crate) fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.socket.read(buffer)
    }

    /// Writes what the system accepts, and keeps the rest.
    pub(crate) fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        if !self.unwritten.is_empty() {
            self.unwritten.extend_from_slice(bytes);
            return Ok(());
        }
        let mut written = 0;
        self.is_blocked = match self.socket.write_all(bytes, &mut written) {
            Ok(()) => false,
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                self.unwritten
                    .extend_from_slice(bytes.get(written..).unwrap_or_default());
                true
            }
            Err(error) => return Err(error),
        };
        Ok(())
    }

    /// Writes what was kept, now that the system accepts something again.
    pub(crate) fn resume(&mut self) -> io::Result<()> {
        let bytes = std::mem::take(&mut self.unwritten);
        self.send(&bytes)
    }

    /// Whether the system has not accepted all that was sent.
    pub(crate) fn has_unwritten(&self) -> bool {
        self.is_blocked
    }
}
