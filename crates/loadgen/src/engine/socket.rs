//! One non-blocking connection, with or without TLS.

use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

use mio::net::TcpStream;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection};
use socket2::{Domain, Protocol, Socket, Type};

/// Connections per source address, below the usual number of ephemeral ports of an address.
const PER_SOURCE: usize = 20_000;

/// A connection to the server, with what the system has not accepted yet.
pub(crate) struct ClientSocket {
    stream: SocketStream,
    unwritten: Vec<u8>,
    /// Whether the system accepts nothing now; TLS may hold something even where nothing is unwritten here.
    is_blocked: bool,
}

enum SocketStream {
    /// TCP.
    Plain(TcpStream),
    /// TLS over TCP.
    Tls(Box<TlsSocket>),
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
        let socket = Socket::new(Domain::for_address(target), Type::STREAM, Some(Protocol::TCP))?;
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
        let stream = match tls {
            None => SocketStream::Plain(stream),
            Some(tls) => {
                let session =
                    ClientConnection::new(tls.config.clone(), tls.name.clone()).map_err(io::Error::other)?;
                SocketStream::Tls(Box::new(TlsSocket { session, stream }))
            }
        };
        Ok(Self {
            stream,
            unwritten: Vec::new(),
            is_blocked: false,
        })
    }

    /// The socket that the event loop watches.
    pub(crate) fn socket(&mut self) -> &mut TcpStream {
        match &mut self.stream {
            SocketStream::Plain(stream) => stream,
            SocketStream::Tls(link) => &mut link.stream,
        }
    }

    /// Whether events say little about readable data: TLS may read in order to write, and write in order to read.
    pub(crate) fn is_tls(&self) -> bool {
        matches!(self.stream, SocketStream::Tls(_))
    }

    /// Reads available bytes; 0 at the end of the connection.
    pub(crate) fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match &mut self.stream {
            SocketStream::Plain(stream) => stream.read(buffer),
            SocketStream::Tls(link) => link.read(buffer),
        }
    }

    /// Writes what the system accepts, and keeps the rest.
    pub(crate) fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        if !self.unwritten.is_empty() {
            self.unwritten.extend_from_slice(bytes);
            return Ok(());
        }
        let mut rest = bytes;
        while !rest.is_empty() {
            match self.stream.write(rest) {
                Ok(count) => rest = rest.get(count..).unwrap_or_default(),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    self.unwritten.extend_from_slice(rest);
                    self.is_blocked = true;
                    return Ok(());
                }
                Err(error) => return Err(error),
            }
        }
        self.is_blocked = match self.stream.flush() {
            Ok(()) => false,
            Err(error) if error.kind() == ErrorKind::WouldBlock => true,
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

impl SocketStream {
    /// Writes what the system accepts now, at least one byte.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = match self {
            Self::Plain(stream) => stream.write(bytes),
            Self::Tls(link) => link.write(bytes),
        };
        match written {
            Ok(0) => Err(ErrorKind::WriteZero.into()),
            other => other,
        }
    }

    /// Writes what TLS has buffered; [`ErrorKind::WouldBlock`] if the system does not accept all of it.
    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Plain(_) => Ok(()),
            Self::Tls(link) => link.flush(),
        }
    }
}

/// TLS over a socket with edge-triggered events. A read never waits for a write: otherwise a server that does not read
/// before it has written would deadlock with this side.
struct TlsSocket {
    session: ClientConnection,
    stream: TcpStream,
}

impl TlsSocket {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            // Data decrypted earlier comes first: no event would announce it.
            match self.session.reader().read(buffer) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                result => return result,
            }
            match self.session.read_tls(&mut self.stream) {
                // The reader decides whether this is an orderly end.
                Ok(0) => return self.session.reader().read(buffer).or_else(ended),
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            }
            if let Err(error) = self.session.process_new_packets() {
                // The alert tells the server why, if it can be sent.
                let _ = self.flush();
                return Err(io::Error::new(ErrorKind::InvalidData, error));
            }
        }
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.flush()?;
        if self.session.is_handshaking() {
            // The server's answer arrives as an event of its own.
            return Err(ErrorKind::WouldBlock.into());
        }
        let written = self.session.writer().write(bytes)?;
        match self.flush() {
            Err(error) if error.kind() != ErrorKind::WouldBlock => Err(error),
            _ => Ok(written),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        while self.session.wants_write() {
            match self.session.write_tls(&mut self.stream) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// Turns "no data yet" into the end of the stream: nothing can follow on a closed connection.
fn ended(error: io::Error) -> io::Result<usize> {
    match error.kind() {
        ErrorKind::WouldBlock => Ok(0),
        _ => Err(error),
    }
}
