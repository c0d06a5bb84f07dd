//! MQTT for simulated devices.

use fieldline_codec::{
    AckPacket, ConnectPacket, DisconnectPacket, MqttProtocolVersion, Packet, PacketId, PublishPacket, QoS,
    ReasonCode, decode_frame,
};

use super::ServerReply;
use super::client::packet_id;
use crate::error::LoadError;

/// Topic of telemetry.
pub(super) const TELEMETRY: &str = "v1/devices/me/telemetry";
/// Topic of attributes.
pub(super) const ATTRIBUTES: &str = "v1/devices/me/attributes";
const VERSION: MqttProtocolVersion = MqttProtocolVersion::V311;
/// Largest accepted packet, bytes: servers send only small packets to devices.
const MAX_PACKET: u32 = 64 << 10;

/// Appends CONNECT with the token as user name.
pub(super) fn put_connect(token: &str, keep_alive: u16, out: &mut Vec<u8>) -> Result<(), LoadError> {
    let connect = ConnectPacket {
        username: Some(token),
        keep_alive,
        ..ConnectPacket::new(VERSION, token)
    };
    connect
        .encode(out)
        .map_err(|error| LoadError::Engine(format!("CONNECT of {token}: {error}")))
}

/// Appends PUBLISH for the message with that number on its connection.
pub(super) fn put_message(
    topic: &str,
    qos: QoS,
    number: u64,
    payload: &[u8],
    out: &mut Vec<u8>,
) -> Result<(), LoadError> {
    let id = PacketId::new(packet_id(number)).unwrap_or(PacketId::MIN);
    let publish = PublishPacket {
        qos,
        packet_id: (qos != QoS::AtMostOnce).then_some(id),
        ..PublishPacket::new(topic, payload)
    };
    publish
        .encode(VERSION, out)
        .map_err(|error| LoadError::Engine(format!("PUBLISH: {error}")))
}

/// Appends DISCONNECT.
pub(super) fn put_disconnect(out: &mut Vec<u8>) {
    // A normal DISCONNECT of 3.1.1 is two fixed bytes and cannot fail.
    let _ = DisconnectPacket::default().encode(VERSION, out);
}

/// Parses the complete packets at the beginning of `input`, and returns their length in bytes. Appends answers to
/// `out`.
pub(super) fn parse_packets(
    input: &[u8],
    out: &mut Vec<u8>,
    mut heard: impl FnMut(ServerReply<'_>) -> Result<(), LoadError>,
) -> Result<usize, LoadError> {
    let mut used = 0;
    while let Some((packet, length)) =
        decode_frame(input.get(used..).unwrap_or_default(), MAX_PACKET, VERSION)
            .map_err(|error| LoadError::Engine(format!("the server sent no MQTT: {error}")))?
    {
        used += length;
        match packet {
            Packet::Puback(ack) | Packet::Pubcomp(ack) => {
                heard(ServerReply::Acknowledged(ack.packet_id.get()))?;
            }
            Packet::Pubrec(ack) => {
                // A PUBREL of 3.1.1 is four fixed bytes and cannot fail.
                let _ =
                    Packet::Pubrel(AckPacket::new(ack.packet_id, ReasonCode::Success)).encode(VERSION, out);
            }
            Packet::Connack(connack) if connack.code == ReasonCode::Success => heard(ServerReply::Accepted)?,
            Packet::Connack(connack) => heard(ServerReply::Refused(&format!("CONNACK {:?}", connack.code)))?,
            _ => {}
        }
    }
    Ok(used)
}
