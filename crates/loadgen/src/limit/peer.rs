//! A connection of the limit server.

use std::io::{ErrorKind, Write as _};

use fieldline_codec::{
    AckPacket, ConnackPacket, MqttProtocolVersion, Packet, PacketId, QoS, ReasonCode, decode_frame,
    encode_pingresp, encode_puback,
};
use mio::net::TcpStream;

use super::commit::{GroupCommitter, UncommittedAck};

/// Largest accepted packet, bytes; a larger one ends the connection.
const MAX_PACKET: u32 = 1 << 20;
/// A peer with more unread answers than this is not read from either, bytes.
const MAX_UNSENT: usize = 64 << 10;

/// A connection.
pub(super) struct LimitPeer {
    pub(super) stream: TcpStream,
    pub(super) version: MqttProtocolVersion,
    slot: u32,
    /// Distinguishes connections that have used the same slot.
    pub(super) generation: u32,
    /// The beginning of an incomplete packet.
    partial_input: Vec<u8>,
    /// Output that the system has not accepted yet.
    out: Vec<u8>,
    /// Whether it was left unread because its peer does not read.
    pub(super) is_unread: bool,
    /// Whether it was left unread because too much waits for the disk.
    pub(super) is_held: bool,
}

impl LimitPeer {
    pub(super) fn new(stream: TcpStream, slot: u32, generation: u32) -> Self {
        Self {
            stream,
            version: MqttProtocolVersion::V311,
            slot,
            generation,
            partial_input: Vec::new(),
            out: Vec::new(),
            is_unread: false,
            is_held: false,
        }
    }

    /// Whether the peer must read its answers before more is read from it.
    pub(super) fn waits_to_write(&self) -> bool {
        self.out.len() > MAX_UNSENT
    }

    /// Bytes buffered for the peer.
    #[cfg(test)]
    pub(super) fn buffered_bytes(&self) -> usize {
        self.out.len() + self.partial_input.len()
    }

    /// Handles received packets, and appends answers to `out`. Returns whether the connection goes on.
    pub(super) fn handle_packets(
        &mut self,
        input: &[u8],
        out: &mut Vec<u8>,
        committer: Option<&mut GroupCommitter>,
    ) -> bool {
        let mut joined = std::mem::take(&mut self.partial_input);
        let whole = if joined.is_empty() {
            input
        } else {
            joined.extend_from_slice(input);
            joined.as_slice()
        };
        let Some(used) = self.take_packets(whole, out, committer) else {
            return false;
        };
        let rest = whole.get(used..).unwrap_or_default();
        if !rest.is_empty() {
            self.partial_input = rest.to_vec();
        }
        true
    }

    /// Handles the complete packets, and returns their length in bytes; `None` if the connection must be closed.
    fn take_packets(
        &mut self,
        input: &[u8],
        out: &mut Vec<u8>,
        mut committer: Option<&mut GroupCommitter>,
    ) -> Option<usize> {
        let mut used = 0;
        while let Some((packet, length)) =
            decode_frame(input.get(used..).unwrap_or_default(), MAX_PACKET, self.version).ok()?
        {
            used += length;
            match packet {
                Packet::Publish(publish) => match (&mut committer, publish.packet_id) {
                    (Some(committer), id) => {
                        let pending = id.map(|id| UncommittedAck {
                            slot: self.slot,
                            generation: self.generation,
                            id,
                            qos: publish.qos,
                        });
                        committer.append(publish.topic, publish.payload, pending);
                    }
                    (None, Some(id)) => put_acknowledgement(publish.qos, id, self.version, out),
                    (None, None) => {}
                },
                Packet::Connect(connect) => {
                    self.version = connect.version();
                    ConnackPacket::new(ReasonCode::Success, false)
                        .encode(self.version, out)
                        .ok()?;
                }
                Packet::Pubrel(ack) => Packet::Pubcomp(AckPacket::new(ack.packet_id, ReasonCode::Success))
                    .encode(self.version, out)
                    .ok()?,
                Packet::Pingreq => encode_pingresp(out),
                _ => return None,
            }
        }
        Some(used)
    }

    /// Writes what the system accepts, and keeps the rest. Returns whether the connection goes on.
    pub(super) fn write(&mut self, bytes: &[u8]) -> bool {
        if !self.out.is_empty() {
            self.out.extend_from_slice(bytes);
            return true;
        }
        let mut written = 0;
        while written < bytes.len() {
            match self.stream.write(bytes.get(written..).unwrap_or_default()) {
                Ok(0) => return false,
                Ok(count) => written += count,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    self.out
                        .extend_from_slice(bytes.get(written..).unwrap_or_default());
                    return true;
                }
                Err(_) => return false,
            }
        }
        true
    }

    /// Writes the output that was kept. Returns whether the connection goes on.
    pub(super) fn flush(&mut self) -> bool {
        let bytes = std::mem::take(&mut self.out);
        self.write(&bytes)
    }
}

/// Appends PUBACK, or PUBREC for QoS 2.
pub(super) fn put_acknowledgement(qos: QoS, id: PacketId, version: MqttProtocolVersion, out: &mut Vec<u8>) {
    if qos == QoS::ExactlyOnce {
        // Encoding a successful PUBREC cannot fail.
        let _ = Packet::Pubrec(AckPacket::new(id, ReasonCode::Success)).encode(version, out);
    } else {
        encode_puback(id, out);
    }
}
