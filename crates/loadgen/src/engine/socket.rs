//! One non-blocking connection, with or without TLS.

use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

use mio::net::TcpStream;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection};
use socket2::{Domain, Protocol, Socket, Type};

/// Connections from one source address, below what the ephemeral ports of an address usually allow.
const PER_SOURCE: usize = 20_000;

/// A connection to the server.
pub(super) enum ClientSocket {
    /// TCP.
    Plain(TcpStream),
    /// TLS over TCP.
    Tls(Box<TlsSocket>),
}

/// TLS as the connections use it.
#[derive(Clone)]
pub struct ClientTls {
    /// Certificates that are trusted and the like.
    pub config: Arc<ClientConfig>,
    /// The name that the server's certificate must have.
    pub name: ServerName<'static>,
}

impl ClientSocket {
    /// Begins to connect. Connections to this machine beyond the first 20,000 come from further loopback addresses, since an
    /// address has ports for some 28,000 only.
    pub(super) fn open(target: SocketAddr, index: usize, tls: Option<&ClientTls>) -> io::Result<Self> {
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
        Ok(match tls {
            None => Self::Plain(stream),
            Some(tls) => {
                let session =
                    ClientConnection::new(tls.config.clone(), tls.name.clone()).map_err(io::Error::other)?;
                Self::Tls(Box::new(TlsSocket { session, stream }))
            }
        })
    }

    /// What the event loop watches.
    pub(super) fn socket(&mut self) -> &mut TcpStream {
        match self {
            Self::Plain(stream) => stream,
            Self::Tls(link) => &mut link.stream,
        }
    }

    /// Whether events say little about what can be read: TLS reads to write and writes to read.
    pub(super) fn is_tls(&self) -> bool {
        matches!(self, Self::Tls(_))
    }

    /// Reads what there is; nothing at the end of the connection.
    pub(super) fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(stream) => stream.read(buffer),
            Self::Tls(link) => link.read(buffer),
        }
    }

    /// Writes what the system takes now, at least a byte.
    pub(super) fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = match self {
            Self::Plain(stream) => stream.write(bytes),
            Self::Tls(link) => link.write(bytes),
        };
        match written {
            Ok(0) => Err(ErrorKind::WriteZero.into()),
            other => other,
        }
    }

    /// Writes what TLS still holds; [`ErrorKind::WouldBlock`] where the system does not take all of it.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Plain(_) => Ok(()),
            Self::Tls(link) => link.flush(),
        }
    }
}

/// TLS over a socket that is watched for edges. Reading never waits for writing, or a server that does not read before it has
/// written would wait for this side for ever.
pub(super) struct TlsSocket {
    session: ClientConnection,
    stream: TcpStream,
}

impl TlsSocket {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            // What was decrypted before comes first: no event would tell of it.
            match self.session.reader().read(buffer) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                result => return result,
            }
            match self.session.read_tls(&mut self.stream) {
                // Whether that is an orderly end is decided by the reader.
                Ok(0) => return self.session.reader().read(buffer).or_else(ended),
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            }
            if let Err(error) = self.session.process_new_packets() {
                // The server is told why, if it can be.
                let _ = self.flush();
                return Err(io::Error::new(ErrorKind::InvalidData, error));
            }
        }
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.flush()?;
        if self.session.is_handshaking() {
            // The answer of the server is an event of its own.
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

/// A connection that has ended holds nothing that could still come.
fn ended(error: io::Error) -> io::Result<usize> {
    match error.kind() {
        ErrorKind::WouldBlock => Ok(0),
        _ => Err(error),
    }
}
