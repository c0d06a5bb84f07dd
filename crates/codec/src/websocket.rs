//! WebSocket (RFC 6455) as a carrier of a byte stream, the server's side: the opening handshake and the frames.
//!
//! MQTT over WebSocket is a stream of bytes in binary messages, whose borders mean nothing (MQTT 5 §6). So there is no
//! need to collect messages: the payload of each piece of a frame is passed on as it comes.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha1::{Digest as _, Sha1};
use thiserror::Error;

/// Longest request of the opening handshake, bytes.
pub const MAX_REQUEST: usize = 8 << 10;
const MAX_HEADERS: usize = 64;
/// The text of RFC 6455 §1.3 that proves to a client that the server knows the protocol.
const ACCEPT: &str = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
/// Longest payload of a control frame (§5.5).
const MAX_CONTROL: u64 = 125;

const FIN: u8 = 0x80;
const RESERVED: u8 = 0x70;
const MASKED: u8 = 0x80;
const CONTINUATION: u8 = 0x0;
const BINARY: u8 = 0x2;
const CLOSE: u8 = 0x8;
const PING: u8 = 0x9;
const PONG: u8 = 0xA;

/// Why a peer is not talked to over WebSocket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum WebSocketError {
    /// The request is no HTTP, or too long.
    #[error("not an HTTP request, or one that is too long")]
    Request,
    /// The request does not ask for WebSocket, or for an unknown version.
    #[error("not a request for WebSocket of version 13")]
    Upgrade,
    /// The path is another one.
    #[error("no such path")]
    Path,
    /// The client speaks none of the subprotocols.
    #[error("no subprotocol in common")]
    Subprotocol,
    /// A frame violates the protocol; the text says how.
    #[error("{0}")]
    Frame(&'static str),
}

/// The answer to an opening handshake.
#[derive(Debug, PartialEq, Eq)]
pub struct WebSocketUpgrade {
    /// The response to send.
    pub response: String,
    /// Bytes of the input that the request takes.
    pub request_len: usize,
}

/// Answers the request at the start of `input`; `None` while it is incomplete.
///
/// # Errors
/// The request cannot be served; [`refusal`] makes a response of the error.
pub fn upgrade(
    input: &[u8],
    path: &str,
    subprotocols: &[&str],
) -> Result<Option<WebSocketUpgrade>, WebSocketError> {
    let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
    let mut request = httparse::Request::new(&mut headers);
    let request_len = match request.parse(input) {
        Ok(httparse::Status::Complete(length)) => length,
        Ok(httparse::Status::Partial) if input.len() < MAX_REQUEST => return Ok(None),
        _ => return Err(WebSocketError::Request),
    };
    let headers = &*request.headers;
    let has_token = |name, token: &str| tokens(headers, name).any(|one| one.eq_ignore_ascii_case(token));
    let key = tokens(headers, "Sec-WebSocket-Key").next();
    let is_version = has_token("Sec-WebSocket-Version", "13");
    let (Some(key), true, true, true) = (
        key,
        request.method == Some("GET") && is_version,
        has_token("Upgrade", "websocket"),
        has_token("Connection", "upgrade"),
    ) else {
        return Err(WebSocketError::Upgrade);
    };
    let asked = request.path.unwrap_or_default();
    if asked.split('?').next() != Some(path) {
        return Err(WebSocketError::Path);
    }
    let mut offered = tokens(headers, "Sec-WebSocket-Protocol");
    let Some(subprotocol) = offered.find(|one| subprotocols.contains(one)) else {
        return Err(WebSocketError::Subprotocol);
    };
    let proof = STANDARD.encode(Sha1::digest(format!("{key}{ACCEPT}")));
    Ok(Some(WebSocketUpgrade {
        response: format!(
            "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
             Sec-WebSocket-Accept: {proof}\r\nSec-WebSocket-Protocol: {subprotocol}\r\n\r\n"
        ),
        request_len,
    }))
}

/// The texts of a header that are separated by commas.
fn tokens<'h>(headers: &'h [httparse::Header<'h>], name: &'h str) -> impl Iterator<Item = &'h str> {
    headers
        .iter()
        .filter(move |header| header.name.eq_ignore_ascii_case(name))
        .filter_map(|header| std::str::from_utf8(header.value).ok())
        .flat_map(|value| value.split(',').map(str::trim))
}

/// The response to a request that cannot be served.
pub fn refusal(error: WebSocketError) -> String {
    let status = match error {
        WebSocketError::Path => "404 Not Found",
        WebSocketError::Upgrade => "426 Upgrade Required",
        _ => "400 Bad Request",
    };
    let text = error.to_string();
    format!(
        "HTTP/1.1 {status}\r\nConnection: close\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
         Content-Type: text/plain\r\nContent-Length: {}\r\n\r\n{text}",
        text.len()
    )
}

/// Takes the frames of a client apart, however they are cut.
#[derive(Debug, Default)]
pub struct WebSocketDecoder {
    header: [u8; 14],
    /// Bytes of the header that have arrived.
    arrived: u8,
    /// Bytes of the payload that have not arrived.
    missing: u64,
    mask: [u8; 4],
    /// Which byte of the mask is next.
    mask_at: u8,
    opcode: u8,
    /// Whether a message is not complete.
    is_open: bool,
    /// The payload of a control frame.
    control: Vec<u8>,
    is_closed: bool,
}

impl WebSocketDecoder {
    /// Whether the client has closed the connection.
    pub const fn is_closed(&self) -> bool {
        self.is_closed
    }

    /// Replaces frames by their payloads, in place, and returns how many bytes these take. Answers to control frames are
    /// appended to `replies`.
    ///
    /// # Errors
    /// A frame violates the protocol; close the connection.
    pub fn decode(&mut self, bytes: &mut [u8], replies: &mut Vec<u8>) -> Result<usize, WebSocketError> {
        let (mut read, mut written) = (0, 0);
        while read < bytes.len() && !self.is_closed {
            if self.missing == 0 {
                read += self.read_header(bytes.get(read..).unwrap_or_default(), replies)?;
                continue;
            }
            let length = (bytes.len() - read).min(usize::try_from(self.missing).unwrap_or(usize::MAX));
            for offset in 0..length {
                let byte = bytes.get(read + offset).copied().unwrap_or_default() ^ self.next_mask();
                if self.opcode >= CLOSE {
                    self.control.push(byte);
                } else if let Some(place) = bytes.get_mut(written) {
                    *place = byte;
                    written += 1;
                }
            }
            read += length;
            self.missing -= length as u64;
            if self.missing == 0 && self.opcode >= CLOSE {
                self.on_control(replies);
            }
        }
        Ok(written)
    }

    fn next_mask(&mut self) -> u8 {
        let byte = self
            .mask
            .get(usize::from(self.mask_at))
            .copied()
            .unwrap_or_default();
        self.mask_at = (self.mask_at + 1) % 4;
        byte
    }

    /// Reads what belongs to the header of a frame; returns how many bytes that are.
    fn read_header(&mut self, bytes: &[u8], replies: &mut Vec<u8>) -> Result<usize, WebSocketError> {
        for (index, byte) in bytes.iter().enumerate() {
            if let Some(place) = self.header.get_mut(usize::from(self.arrived)) {
                *place = *byte;
                self.arrived += 1;
            }
            if usize::from(self.arrived) == self.header_len()? {
                self.begin_frame()?;
                if self.missing == 0 && self.opcode >= CLOSE {
                    self.on_control(replies);
                }
                return Ok(index + 1);
            }
        }
        Ok(bytes.len())
    }

    /// The length of the header, as far as it is known.
    fn header_len(&self) -> Result<usize, WebSocketError> {
        let [_, second, ..] = self.header;
        if self.arrived < 2 {
            return Ok(2);
        }
        if second & MASKED == 0 {
            return Err(WebSocketError::Frame("a client must mask its frames"));
        }
        Ok(match second & !MASKED {
            126 => 8,
            127 => 14,
            _ => 6,
        })
    }

    fn begin_frame(&mut self) -> Result<(), WebSocketError> {
        let [first, second, rest @ ..] = self.header;
        let (length, mask_at) = match second & !MASKED {
            126 => (u64::from(u16::from_be_bytes([rest[0], rest[1]])), 2),
            127 => {
                let [a, b, c, d, e, f, g, h, ..] = rest;
                (u64::from_be_bytes([a, b, c, d, e, f, g, h]), 8)
            }
            length => (u64::from(length), 0),
        };
        if let Some(mask) = rest.get(mask_at..mask_at + 4) {
            self.mask.copy_from_slice(mask);
        }
        self.mask_at = 0;
        self.arrived = 0;
        self.missing = length;
        self.opcode = first & 0x0F;
        if first & RESERVED != 0 {
            return Err(WebSocketError::Frame("reserved bits are set"));
        }
        let is_last = first & FIN != 0;
        match self.opcode {
            CONTINUATION if self.is_open => self.is_open = !is_last,
            BINARY if !self.is_open => self.is_open = !is_last,
            CONTINUATION | BINARY => {
                return Err(WebSocketError::Frame(
                    "a message begins or goes on at the wrong time",
                ));
            }
            CLOSE | PING | PONG if is_last && length <= MAX_CONTROL => self.control.clear(),
            CLOSE | PING | PONG => return Err(WebSocketError::Frame("a control frame is too long or cut")),
            _ => return Err(WebSocketError::Frame("MQTT needs binary messages")),
        }
        Ok(())
    }

    fn on_control(&mut self, replies: &mut Vec<u8>) {
        let control = std::mem::take(&mut self.control);
        match self.opcode {
            PING => put_frame(PONG, &control, replies),
            CLOSE => {
                self.is_closed = true;
                // The status code goes back.
                put_frame(CLOSE, control.get(..2).unwrap_or_default(), replies);
            }
            _ => {}
        }
    }
}

/// Appends a binary message of the server.
pub fn put_message(payload: &[u8], out: &mut Vec<u8>) {
    put_frame(BINARY, payload, out);
}

/// Appends the frame that closes the connection, with status 1000.
pub fn put_close(out: &mut Vec<u8>) {
    put_frame(CLOSE, &1_000_u16.to_be_bytes(), out);
}

fn put_frame(opcode: u8, payload: &[u8], out: &mut Vec<u8>) {
    out.push(FIN | opcode);
    match payload.len() {
        length @ 0..=125 => out.push(length as u8),
        length @ 126..=0xFFFF => {
            out.push(126);
            out.extend_from_slice(&(length as u16).to_be_bytes());
        }
        length => {
            out.push(127);
            out.extend_from_slice(&(length as u64).to_be_bytes());
        }
    }
    out.extend_from_slice(payload);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn client_frame(first: u8, payload: &[u8], mask: [u8; 4]) -> Vec<u8> {
        let mut frame = Vec::new();
        put_frame(0, payload, &mut frame);
        frame[0] = first;
        frame[1] |= MASKED;
        let at = frame.len() - payload.len();
        let masked: Vec<u8> = payload
            .iter()
            .zip(mask.iter().cycle())
            .map(|(byte, mask)| byte ^ mask)
            .collect();
        frame.splice(at.., mask.into_iter().chain(masked));
        frame
    }

    #[test]
    fn the_handshake_of_the_rfc_is_answered() {
        let request = "GET /mqtt HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: keep-alive, Upgrade\r\n\
                       Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Protocol: chat, mqtt\r\n\
                       Sec-WebSocket-Version: 13\r\n\r\nrest";
        let upgraded = upgrade(request.as_bytes(), "/mqtt", &["mqtt"])
            .expect("a request")
            .expect("whole");
        assert!(
            upgraded
                .response
                .contains("Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n")
        );
        assert!(upgraded.response.contains("Sec-WebSocket-Protocol: mqtt\r\n"));
        assert_eq!(upgraded.request_len, request.len() - 4);
        for (from, to, error) in [
            ("mqtt HTTP", "other HTTP", WebSocketError::Path),
            ("chat, mqtt", "chat", WebSocketError::Subprotocol),
            ("Version: 13", "Version: 8", WebSocketError::Upgrade),
            ("GET", "POST", WebSocketError::Upgrade),
            ("GET /", "\0", WebSocketError::Request),
        ] {
            let request = request.replacen(from, to, 1);
            assert_eq!(upgrade(request.as_bytes(), "/mqtt", &["mqtt"]), Err(error));
            assert!(refusal(error).starts_with("HTTP/1.1 4"));
        }
        assert_eq!(upgrade(b"GET /mqtt HT", "/mqtt", &["mqtt"]), Ok(None));
    }

    #[test]
    fn what_a_client_must_not_send_is_refused() {
        let refused = [
            client_frame(FIN | 0x1, b"text", [0; 4]),
            client_frame(FIN, b"goes on", [0; 4]),
            client_frame(FIN | 0x40 | BINARY, b"reserved", [0; 4]),
            client_frame(PING, b"cut", [0; 4]),
            client_frame(FIN | PING, &[0; 126], [0; 4]),
            [
                client_frame(BINARY, b"a", [0; 4]),
                client_frame(FIN | BINARY, b"b", [0; 4]),
            ]
            .concat(),
            vec![FIN | BINARY, 0],
        ];
        for mut bytes in refused {
            let decoded = WebSocketDecoder::default().decode(&mut bytes, &mut Vec::new());
            assert!(decoded.is_err(), "{bytes:?}");
        }
    }

    proptest! {
        #[test]
        fn payloads_are_the_same_however_the_bytes_are_cut(
            messages in prop::collection::vec((prop::collection::vec(any::<u8>(), 0..300), any::<[u8; 4]>(), any::<bool>()), 1..8),
            cuts in prop::collection::vec(1..40_usize, 1..20),
        ) {
            let (mut input, mut expected, mut pongs) = (Vec::new(), Vec::new(), Vec::new());
            for (payload, mask, is_cut) in &messages {
                let half = payload.len() / 2;
                if *is_cut {
                    input.extend(client_frame(BINARY, &payload[..half], *mask));
                    input.extend(client_frame(FIN | PING, &payload[..half.min(125)], *mask));
                    put_frame(PONG, &payload[..half.min(125)], &mut pongs);
                    input.extend(client_frame(FIN, &payload[half..], *mask));
                } else {
                    input.extend(client_frame(FIN | BINARY, payload, *mask));
                }
                expected.extend_from_slice(payload);
            }
            input.extend(client_frame(FIN | CLOSE, &1_001_u16.to_be_bytes(), [1, 2, 3, 4]));
            put_frame(CLOSE, &1_001_u16.to_be_bytes(), &mut pongs);
            let (mut decoder, mut decoded, mut replies) = (WebSocketDecoder::default(), Vec::new(), Vec::new());
            let mut rest = &mut input[..];
            for cut in cuts.iter().cycle() {
                if rest.is_empty() {
                    break;
                }
                let (now, later) = rest.split_at_mut((*cut).min(rest.len()));
                let length = decoder.decode(now, &mut replies).expect("valid");
                decoded.extend_from_slice(&now[..length]);
                rest = later;
            }
            prop_assert_eq!(decoded, expected);
            prop_assert_eq!(replies, pongs);
            prop_assert!(decoder.is_closed());
        }
    }
}
