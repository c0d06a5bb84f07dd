//! Non-blocking TCP sockets, with or without TLS and WebSocket.

use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::Shutdown;

use fieldline_codec::websocket::{self, WebSocketDecoder};
use mio::net::TcpStream;
use rustls::Connection;

/// Most bytes of a message that is written.
const MESSAGE_BYTES: usize = 16 << 10;
/// Most bytes of frames without payload that are read in a row.
const MOST_WITHOUT_PAYLOAD: usize = 256 << 10;
/// Most bytes of answers to pings that a client may leave unread.
const MOST_REPLIES: usize = 64 << 10;

/// A connection that never blocks: what the system does not take or have now is [`ErrorKind::WouldBlock`].
pub struct Socket(SocketKind);

enum SocketKind {
    Plain(TcpStream),
    Tls(Box<TlsSocket>),
    WebSocket(Box<WebSocket>),
}

/// A stream of bytes in the messages of a WebSocket.
struct WebSocket {
    socket: Socket,
    decoder: WebSocketDecoder,
    /// Payload that was read before the loop had the connection.
    input: Vec<u8>,
    /// Frames that the system has not taken yet.
    frames: Vec<u8>,
    written: usize,
    /// Bytes of the message among them.
    message: usize,
}

impl Socket {
    /// A connection without TLS.
    pub const fn plain(stream: TcpStream) -> Self {
        Self(SocketKind::Plain(stream))
    }

    /// A connection with TLS, of either side.
    pub fn tls(stream: TcpStream, session: Connection) -> Self {
        Self(SocketKind::Tls(Box::new(TlsSocket { session, stream })))
    }

    /// A connection whose bytes travel in the messages of a WebSocket, with what its task has left: the state of the
    /// decoder, payload to read, and frames to send.
    pub(crate) fn websocket(
        socket: Self,
        decoder: WebSocketDecoder,
        input: Vec<u8>,
        frames: Vec<u8>,
    ) -> Self {
        Self(SocketKind::WebSocket(Box::new(WebSocket {
            socket,
            decoder,
            input,
            frames,
            written: 0,
            message: 0,
        })))
    }

    /// The socket that a loop watches.
    pub fn stream(&mut self) -> &mut TcpStream {
        match &mut self.0 {
            SocketKind::WebSocket(websocket) => websocket.socket.stream(),
            SocketKind::Plain(stream) => stream,
            SocketKind::Tls(tls) => &mut tls.stream,
        }
    }

    /// Whether events and short reads say little about readable data: TLS may read in order to write, and write in
    /// order to read; and frames hold less than was read.
    pub const fn is_layered(&self) -> bool {
        !matches!(self.0, SocketKind::Plain(_))
    }

    /// Reads available bytes; 0 at the end of the connection.
    ///
    /// # Errors
    /// Those of the system; [`ErrorKind::InvalidData`] if the peer violates TLS.
    pub fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let read = match &mut self.0 {
                SocketKind::Plain(stream) => stream.read(buffer),
                SocketKind::Tls(tls) => tls.read(buffer),
                SocketKind::WebSocket(websocket) => websocket.read(buffer),
            };
            match read {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                read => return read,
            }
        }
    }

    /// Writes the bytes from `written` on, as far as the system takes them, and counts them there. `Ok` says that the
    /// system has taken everything.
    ///
    /// # Errors
    /// Those of the system. After [`ErrorKind::WouldBlock`], call it again with the same bytes.
    pub fn write_all(&mut self, bytes: &[u8], written: &mut usize) -> io::Result<()> {
        if let SocketKind::WebSocket(websocket) = &mut self.0 {
            return websocket.write_all(bytes, written);
        }
        while let Some(rest) = bytes.get(*written..).filter(|rest| !rest.is_empty()) {
            let taken = match &mut self.0 {
                SocketKind::Plain(stream) => stream.write(rest),
                SocketKind::Tls(tls) => tls.write(rest),
                SocketKind::WebSocket(_) => return Err(ErrorKind::Unsupported.into()),
            };
            match taken {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(count) => *written += count,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        match &mut self.0 {
            SocketKind::Plain(_) | SocketKind::WebSocket(_) => Ok(()),
            SocketKind::Tls(tls) => tls.flush(),
        }
    }

    /// Tells the peer that nothing follows, as far as the system takes it now.
    pub fn shut_down(&mut self) {
        match &mut self.0 {
            SocketKind::Plain(_) => {}
            SocketKind::Tls(tls) => {
                tls.session.send_close_notify();
                let _ = tls.flush();
            }
            SocketKind::WebSocket(websocket) => {
                if !websocket.decoder.is_closed() {
                    websocket::put_close(&mut websocket.frames);
                }
                let _ = websocket.flush();
                return websocket.socket.shut_down();
            }
        }
        let _ = self.stream().shutdown(Shutdown::Write);
    }
}

impl WebSocket {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if !self.input.is_empty() {
            let length = self.input.len().min(buffer.len());
            for (place, byte) in buffer.iter_mut().zip(self.input.drain(..length)) {
                *place = byte;
            }
            return Ok(length);
        }
        let mut without_payload = 0;
        loop {
            if self.decoder.is_closed() {
                // The answer tells the client that it was understood, if it can be sent.
                let _ = self.flush();
                return Ok(0);
            }
            let length = self.socket.read(buffer)?;
            if length == 0 {
                return Ok(0);
            }
            let bytes = buffer.get_mut(..length).unwrap_or_default();
            let decoded = self.decoder.decode(bytes, &mut self.frames);
            let payload = decoded.map_err(|error| io::Error::new(ErrorKind::InvalidData, error))?;
            if self.frames.len() - self.written > MOST_REPLIES {
                return Err(io::Error::new(
                    ErrorKind::InvalidData,
                    "answers to pings are not read",
                ));
            }
            // A client that does not read yet gets its answers with the next output.
            if let Err(error) = self.flush()
                && error.kind() != ErrorKind::WouldBlock
            {
                return Err(error);
            }
            if payload > 0 {
                return Ok(payload);
            }
            // Others must have their turn, too.
            without_payload += length;
            if without_payload > MOST_WITHOUT_PAYLOAD {
                return Err(io::Error::new(
                    ErrorKind::InvalidData,
                    "nothing but control frames",
                ));
            }
        }
    }

    fn write_all(&mut self, bytes: &[u8], written: &mut usize) -> io::Result<()> {
        loop {
            self.flush()?;
            // Counted once the system has it: whoever watches the progress of the peer sees it.
            *written += std::mem::take(&mut self.message);
            let rest = bytes.get(*written..).unwrap_or_default();
            if rest.is_empty() {
                return Ok(());
            }
            let message = rest.get(..MESSAGE_BYTES).unwrap_or(rest);
            websocket::put_message(message, &mut self.frames);
            self.message = message.len();
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.frames.is_empty() {
            return Ok(());
        }
        self.socket.write_all(&self.frames, &mut self.written)?;
        self.frames = Vec::new();
        self.written = 0;
        Ok(())
    }
}

/// TLS over a socket with edge-triggered events. A read never waits for a write: otherwise a peer that does not read
/// before it has written would deadlock with this side.
struct TlsSocket {
    session: Connection,
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
                // The alert tells the peer why, if it can be sent.
                let _ = self.flush();
                return Err(io::Error::new(ErrorKind::InvalidData, error));
            }
        }
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.flush()?;
        if self.session.is_handshaking() {
            // The peer's answer arrives as an event of its own.
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
