//! The way to a mail server: directly or through an HTTP proxy, encrypted or not.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use lettre::transport::smtp::client::AsyncTokioStream;
use rustls_pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::config::SmtpConfig;
use crate::egress::Egress;
use crate::http;

/// The longest answer of a proxy that is read.
const MAX_PROXY_ANSWER: usize = 16 * 1024;

/// Connects to the server, through the proxy if there is one.
pub(super) async fn dial(config: &SmtpConfig, egress: &Egress) -> io::Result<TcpStream> {
    let host = config.smtp_host.trim();
    if !config.enable_proxy {
        return egress.connect(host, config.smtp_port).await;
    }
    egress.check_behind_proxy(host, config.smtp_port).await?;
    let mut stream = egress.connect(&config.proxy_host, config.proxy_port).await?;
    let target = format!("{host}:{}", config.smtp_port);
    let mut request = format!("CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n");
    if !config.proxy_user.is_empty() {
        let authorization = http::basic(&config.proxy_user, config.proxy_password.expose());
        request.push_str(&format!("Proxy-Authorization: {authorization}\r\n"));
    }
    request.push_str("\r\n");
    stream.write_all(request.as_bytes()).await?;
    // Byte by byte, since what follows the answer belongs to the server.
    let mut answer = Vec::new();
    while !answer.ends_with(b"\r\n\r\n") {
        if answer.len() >= MAX_PROXY_ANSWER {
            return Err(io::Error::other("proxy sends no end of its answer"));
        }
        answer.push(stream.read_u8().await?);
    }
    let answer = String::from_utf8_lossy(&answer);
    let line = answer.lines().next().unwrap_or_default();
    if line
        .split(' ')
        .nth(1)
        .is_some_and(|status| status.starts_with('2'))
    {
        Ok(stream)
    } else {
        Err(io::Error::other(format!("proxy refuses: {line}")))
    }
}

/// Encrypts a connection from its beginning.
pub(super) async fn encrypt(
    tls: &Arc<rustls::ClientConfig>,
    host: &str,
    stream: TcpStream,
) -> io::Result<SmtpTlsStream> {
    let peer = stream.peer_addr()?;
    let name = ServerName::try_from(host.trim().to_owned()).map_err(io::Error::other)?;
    let stream = TlsConnector::from(Arc::clone(tls)).connect(name, stream).await?;
    Ok(SmtpTlsStream { stream, peer })
}

/// An encrypted connection to a mail server.
pub(super) struct SmtpTlsStream {
    stream: TlsStream<TcpStream>,
    peer: SocketAddr,
}

impl fmt::Debug for SmtpTlsStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SmtpTlsStream")
            .field("peer", &self.peer)
            .finish_non_exhaustive()
    }
}

impl AsyncTokioStream for SmtpTlsStream {
    fn peer_addr(&self) -> io::Result<SocketAddr> {
        Ok(self.peer)
    }
}

impl AsyncRead for SmtpTlsStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buf)
    }
}

impl AsyncWrite for SmtpTlsStream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
