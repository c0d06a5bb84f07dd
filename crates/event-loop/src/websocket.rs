//! WebSocket of a server on a task: the opening handshake, and the stream of bytes in its messages.

use std::io::{self, ErrorKind};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use fieldline_codec::websocket::{self, WebSocketDecoder};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, ReadBuf};

use crate::{Socket, TaskStream};

/// Bytes of one read while the request arrives.
const READ: usize = 1 << 10;
/// Output from which on nothing is added before it is written, bytes.
const OUT: usize = 64 << 10;

/// A connection whose bytes travel in the messages of a WebSocket.
pub struct WebSocketStream<S> {
    stream: S,
    decoder: WebSocketDecoder,
    /// Payload that came with the request, not read yet.
    input: Vec<u8>,
    /// Frames that are not written yet.
    frames: Vec<u8>,
    written: usize,
}

impl<S: TaskStream> WebSocketStream<S> {
    /// Answers the opening handshake. A request that cannot be served is answered, too.
    ///
    /// # Errors
    /// Those of the stream; [`ErrorKind::InvalidData`] if the request cannot be served.
    pub async fn accept(mut stream: S, path: &str, subprotocols: &[&str]) -> io::Result<Self> {
        let mut input = Vec::with_capacity(READ);
        let upgrade = loop {
            if stream.read_buf(&mut input).await? == 0 {
                return Err(ErrorKind::UnexpectedEof.into());
            }
            match websocket::upgrade(&input, path, subprotocols) {
                Ok(Some(upgrade)) => break upgrade,
                Ok(None) => {}
                Err(error) => {
                    stream.write_all(websocket::refusal(error).as_bytes()).await?;
                    stream.shutdown().await?;
                    return Err(io::Error::new(ErrorKind::InvalidData, error));
                }
            }
        };
        stream.write_all(upgrade.response.as_bytes()).await?;
        stream.flush().await?;
        input.drain(..upgrade.request_len);
        let (mut decoder, mut frames) = (WebSocketDecoder::default(), Vec::new());
        let payload = decoder.decode(&mut input, &mut frames).map_err(invalid)?;
        input.truncate(payload);
        Ok(Self {
            stream,
            decoder,
            input,
            frames,
            written: 0,
        })
    }

    fn poll_frames(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        while let Some(rest) = self.frames.get(self.written..).filter(|rest| !rest.is_empty()) {
            let written = ready!(Pin::new(&mut self.stream).poll_write(context, rest))?;
            if written == 0 {
                return Poll::Ready(Err(ErrorKind::WriteZero.into()));
            }
            self.written += written;
        }
        self.frames.clear();
        self.written = 0;
        Poll::Ready(Ok(()))
    }
}

fn invalid(error: websocket::WebSocketError) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, error)
}

impl<S: TaskStream> AsyncRead for WebSocketStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        if !this.input.is_empty() {
            let length = this.input.len().min(buffer.remaining());
            buffer.put_slice(this.input.get(..length).unwrap_or_default());
            this.input.drain(..length);
            return Poll::Ready(Ok(()));
        }
        loop {
            // Answers to pings go out as far as they can.
            if let Poll::Ready(Err(error)) = this.poll_frames(context) {
                return Poll::Ready(Err(error));
            }
            if this.decoder.is_closed() {
                return Poll::Ready(Ok(()));
            }
            let start = buffer.filled().len();
            ready!(Pin::new(&mut this.stream).poll_read(context, buffer))?;
            let Some(bytes) = buffer.filled_mut().get_mut(start..) else {
                return Poll::Ready(Ok(()));
            };
            if bytes.is_empty() {
                return Poll::Ready(Ok(()));
            }
            let payload = this.decoder.decode(bytes, &mut this.frames).map_err(invalid)?;
            if this.frames.len() - this.written > OUT {
                let unread = io::Error::new(ErrorKind::InvalidData, "answers to pings are not read");
                return Poll::Ready(Err(unread));
            }
            buffer.set_filled(start + payload);
            if payload > 0 {
                return Poll::Ready(Ok(()));
            }
        }
    }
}

impl<S: TaskStream> AsyncWrite for WebSocketStream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = &mut *self;
        if this.frames.len() >= OUT {
            ready!(this.poll_frames(context))?;
        }
        websocket::put_message(bytes, &mut this.frames);
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_frames(context))?;
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if !self.decoder.is_closed() && self.frames.is_empty() {
            websocket::put_close(&mut self.frames);
        }
        ready!(self.poll_frames(context))?;
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

impl<S: TaskStream> TaskStream for WebSocketStream<S> {
    fn peer_certificates(&self) -> Option<Vec<Vec<u8>>> {
        self.stream.peer_certificates()
    }

    fn into_socket(self) -> io::Result<Socket> {
        let mut frames = self.frames;
        frames.drain(..self.written);
        Ok(Socket::websocket(
            self.stream.into_socket()?,
            self.decoder,
            self.input,
            frames,
        ))
    }
}
