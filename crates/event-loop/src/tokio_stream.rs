//! Connections that begin on a task, and leave it for an event loop.

use std::io;
use std::os::fd::OwnedFd;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};
use tokio_rustls::server::TlsStream;

use crate::Socket;

/// A connection of a server on a task, with or without TLS.
pub trait TaskStream: AsyncRead + AsyncWrite + Unpin + Send {
    /// The certificates that the peer presented, leaf first, in DER; `None` if it presented none.
    fn peer_certificates(&self) -> Option<Vec<Vec<u8>>>;

    /// The connection without its runtime.
    ///
    /// # Errors
    /// The system does not let the runtime go.
    fn into_socket(self) -> io::Result<Socket>;
}

impl TaskStream for TcpStream {
    fn peer_certificates(&self) -> Option<Vec<Vec<u8>>> {
        None
    }

    fn into_socket(self) -> io::Result<Socket> {
        Ok(Socket::plain(mio::net::TcpStream::from_std(self.into_std()?)))
    }
}

impl TaskStream for UnixStream {
    fn peer_certificates(&self) -> Option<Vec<Vec<u8>>> {
        None
    }

    fn into_socket(self) -> io::Result<Socket> {
        // Reading, writing and closing are the same calls for the system, whatever kind of stream it is.
        let stream = std::net::TcpStream::from(OwnedFd::from(self.into_std()?));
        Ok(Socket::plain(mio::net::TcpStream::from_std(stream)))
    }
}

impl TaskStream for TlsStream<TcpStream> {
    fn peer_certificates(&self) -> Option<Vec<Vec<u8>>> {
        let (_, session) = self.get_ref();
        let shown = session.peer_certificates()?;
        (!shown.is_empty()).then(|| shown.iter().map(|certificate| certificate.to_vec()).collect())
    }

    fn into_socket(self) -> io::Result<Socket> {
        let (stream, session) = self.into_inner();
        let stream = mio::net::TcpStream::from_std(stream.into_std()?);
        Ok(Socket::tls(stream, session.into()))
    }
}
