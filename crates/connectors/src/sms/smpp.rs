//! Short Message Peer-to-Peer 3.4, as far as sending needs it.

use std::io;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout};

use super::config::{SmppBindType, SmppConfig, SmppVersion};
use crate::backoff::Backoff;
use crate::egress::Egress;

const BIND_RECEIVER: u32 = 0x01;
const BIND_TRANSMITTER: u32 = 0x02;
const SUBMIT_SM: u32 = 0x04;
const DELIVER_SM: u32 = 0x05;
const UNBIND: u32 = 0x06;
const BIND_TRANSCEIVER: u32 = 0x09;
const RESPONSE: u32 = 0x8000_0000;
const GENERIC_NACK: u32 = 0x8000_0000;
const HEADER: usize = 16;
/// No answer to what is sent here is longer.
const MAX_PDU: usize = 64 * 1024;
const TIMEOUT: Duration = Duration::from_secs(20);
/// The longest message that fits into one PDU.
const MAX_SHORT_MESSAGE: usize = 254;
const INTERNATIONAL: u8 = 1;

/// Sends messages over one connection, which is made with the first message and again when it is lost.
#[derive(Debug)]
pub(super) struct SmppClient {
    config: SmppConfig,
    egress: Egress,
    connection: Mutex<SmppConnection>,
}

#[derive(Debug)]
struct SmppConnection {
    stream: Option<TcpStream>,
    sequence: u32,
    backoff: Backoff,
    failed: Option<(Instant, String)>,
}

struct PduHeader {
    command: u32,
    status: u32,
    sequence: u32,
}

impl SmppClient {
    pub(super) fn new(config: &SmppConfig, egress: &Egress) -> Self {
        Self {
            config: config.clone(),
            egress: egress.clone(),
            connection: Mutex::new(SmppConnection {
                stream: None,
                sequence: 0,
                backoff: Backoff::new(Duration::from_secs(1), Duration::from_secs(60)),
                failed: None,
            }),
        }
    }

    /// Sends a message and waits until the message centre has taken it.
    pub(super) async fn send(&self, number: &str, message: &str) -> Result<(), String> {
        let body = self.submit_sm(number, message)?;
        let mut link = self.connection.lock().await;
        // A connection may have ended since the last message: that shows when it is used.
        for attempt in 0..2 {
            let was_open = link.stream.is_some();
            self.open(&mut link).await?;
            match link.request(SUBMIT_SM, &body).await {
                Ok(answer) if answer.status == 0 => return Ok(()),
                Ok(answer) => return Err(format!("message centre answered with status {}", answer.status)),
                Err(error) => {
                    link.stream = None;
                    if !was_open || attempt > 0 || error.kind() == io::ErrorKind::TimedOut {
                        return Err(error.to_string());
                    }
                }
            }
        }
        Err("connection to the message centre was lost".to_owned())
    }

    async fn open(&self, link: &mut SmppConnection) -> Result<(), String> {
        if link.stream.is_some() {
            return Ok(());
        }
        if let Some((until, reason)) = &link.failed
            && Instant::now() < *until
        {
            return Err(format!("not connected: {reason}"));
        }
        match self.bind(link).await {
            Ok(()) => {
                link.backoff.reset();
                link.failed = None;
                Ok(())
            }
            Err(error) => {
                link.stream = None;
                link.failed = Some((Instant::now() + link.backoff.pause(), error.clone()));
                Err(format!("Failed to establish SMPP session: {error}"))
            }
        }
    }

    async fn bind(&self, link: &mut SmppConnection) -> Result<(), String> {
        let config = &self.config;
        let stream = timeout(TIMEOUT, self.egress.connect(&config.host, config.port))
            .await
            .map_err(|_| "no connection in time".to_owned())?
            .map_err(|error| error.to_string())?;
        link.stream = Some(stream);
        let command = match config.bind_type {
            SmppBindType::Transmitter => BIND_TRANSMITTER,
            SmppBindType::Receiver => BIND_RECEIVER,
            SmppBindType::Transceiver => BIND_TRANSCEIVER,
        };
        let mut body = Vec::new();
        put_text(&mut body, &config.system_id);
        put_text(&mut body, config.password.expose());
        put_text(&mut body, &config.system_type);
        body.push(match config.protocol_version {
            SmppVersion::V33 => 0x33,
            SmppVersion::V34 => 0x34,
        });
        if config.address_range.is_empty() {
            body.extend([0, 0]);
        } else {
            body.extend([config.destination_ton, config.destination_npi]);
        }
        put_text(&mut body, &config.address_range);
        let answer = link
            .request(command, &body)
            .await
            .map_err(|error| error.to_string())?;
        match answer.status {
            0 => Ok(()),
            status => Err(format!("Error status when binding: {status}")),
        }
    }

    fn submit_sm(&self, number: &str, message: &str) -> Result<Vec<u8>, String> {
        let config = &self.config;
        let number = match number.strip_prefix('+') {
            Some(digits) if config.destination_ton == INTERNATIONAL => digits,
            _ => number,
        };
        if number.is_empty() || number.len() > 20 || !number.is_ascii() || number.contains('\0') {
            return Err("phone number must have between 1 and 20 characters".to_owned());
        }
        let text = encode_message(config.coding_scheme, message);
        let mut body = Vec::with_capacity(64 + text.len());
        put_text(&mut body, &config.service_type);
        if config.source_address.is_empty() {
            body.extend([0, 0]);
        } else {
            body.extend([config.source_ton, config.source_npi]);
        }
        put_text(&mut body, &config.source_address);
        body.extend([config.destination_ton, config.destination_npi]);
        put_text(&mut body, number);
        // No class, protocol or priority; at once and for as long as the centre keeps it; no receipt, no replacement.
        body.extend([0; 7]);
        body.push(config.coding_scheme);
        body.push(0);
        let Some(length) = u8::try_from(text.len())
            .ok()
            .filter(|length| usize::from(*length) <= MAX_SHORT_MESSAGE)
        else {
            return Err(format!(
                "message has {} bytes, more than the {MAX_SHORT_MESSAGE} of a short message",
                text.len()
            ));
        };
        body.push(length);
        body.extend(text);
        Ok(body)
    }
}

/// Writes a text in the alphabet of a message; what it lacks becomes a question mark.
fn encode_message(coding_scheme: u8, message: &str) -> Vec<u8> {
    let up_to = |last: u32| -> Vec<u8> {
        let byte = |character: char| {
            let code = u32::from(character);
            u8::try_from(code).ok().filter(|_| code <= last).unwrap_or(b'?')
        };
        message.chars().map(byte).collect()
    };
    match coding_scheme {
        0 | 1 => up_to(0x7F),
        3 => up_to(0xFF),
        8 => message.encode_utf16().flat_map(u16::to_be_bytes).collect(),
        _ => message.as_bytes().to_vec(),
    }
}

fn put_text(out: &mut Vec<u8>, text: &str) {
    out.extend_from_slice(text.as_bytes());
    out.push(0);
}

impl SmppConnection {
    async fn request(&mut self, command: u32, body: &[u8]) -> io::Result<PduHeader> {
        // Numbers begin with 1 and end before the highest bit.
        self.sequence = self.sequence % 0x7FFF_FFFF + 1;
        let sequence = self.sequence;
        // Taken out, so that a caller who gives up half-way leaves no half of a message behind.
        let mut stream = self.stream.take().ok_or(io::ErrorKind::NotConnected)?;
        let exchange = async {
            stream.write_all(&frame(command, 0, sequence, body)).await?;
            loop {
                let pdu = read(&mut stream).await?;
                if pdu.command == GENERIC_NACK {
                    return Err(io::Error::other(format!(
                        "message centre refuses with status {}",
                        pdu.status
                    )));
                }
                if pdu.sequence == sequence && pdu.command == command | RESPONSE {
                    return Ok(pdu);
                }
                if pdu.command == UNBIND {
                    return Err(io::ErrorKind::ConnectionReset.into());
                }
                if pdu.command & RESPONSE == 0 {
                    // What the centre asks by itself, as enquire_link, is answered with yes.
                    let body: &[u8] = if pdu.command == DELIVER_SM { &[0] } else { &[] };
                    let answer = frame(pdu.command | RESPONSE, 0, pdu.sequence, body);
                    stream.write_all(&answer).await?;
                }
            }
        };
        let answer = timeout(TIMEOUT, exchange)
            .await
            .unwrap_or_else(|_| Err(io::Error::new(io::ErrorKind::TimedOut, "no answer in time")))?;
        self.stream = Some(stream);
        Ok(answer)
    }
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "bodies are bounded by their fields"
)]
fn frame(command: u32, status: u32, sequence: u32, body: &[u8]) -> Vec<u8> {
    let mut pdu = Vec::with_capacity(HEADER + body.len());
    for word in [(HEADER + body.len()) as u32, command, status, sequence] {
        pdu.extend(word.to_be_bytes());
    }
    pdu.extend_from_slice(body);
    pdu
}

async fn read(stream: &mut TcpStream) -> io::Result<PduHeader> {
    let length = stream.read_u32().await? as usize;
    let command = stream.read_u32().await?;
    let status = stream.read_u32().await?;
    let sequence = stream.read_u32().await?;
    if !(HEADER..=MAX_PDU).contains(&length) {
        return Err(io::Error::other("message centre sent no SMPP"));
    }
    let mut body = vec![0; length - HEADER];
    stream.read_exact(&mut body).await?;
    Ok(PduHeader {
        command,
        status,
        sequence,
    })
}
