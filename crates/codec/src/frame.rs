//! Splits a stream of bytes into packets: the fixed header (MQTT 5 §2.1) and the frame it announces.

use crate::error::{DecodeErrorKind, MqttDecodeError};
use crate::packet::{Packet, PacketType};
use crate::version::{ConnectProtocol, MqttProtocolVersion, ProtocolName};
use crate::wire::{OVERLONG, PacketReader, varint};

/// A complete fixed header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameHeader {
    /// The packet it introduces.
    pub packet_type: PacketType,
    /// The lower four bits of the first byte, valid for the packet type.
    pub flags: u8,
    /// Length of the fixed header itself, two to five bytes.
    pub header_len: usize,
    /// Length of the body after the fixed header.
    pub body_len: usize,
}

impl FrameHeader {
    /// Returns the length of the whole packet.
    pub const fn frame_len(&self) -> usize {
        self.header_len + self.body_len
    }
}

/// Reads the fixed header at the start of `input`; `None` until it is complete.
///
/// Wrong packet types and flags are reported from the first byte on.
#[inline]
pub fn decode_header(
    input: &[u8],
    version: MqttProtocolVersion,
) -> Result<Option<FrameHeader>, MqttDecodeError> {
    let Some((&first, rest)) = input.split_first() else {
        return Ok(None);
    };
    let flags = first & 0x0F;
    let Some(packet_type) = PacketType::from_u8(first >> 4) else {
        return Err(MqttDecodeError::malformed("packet type 0 is reserved"));
    };
    check_flags(packet_type, flags, version)?;
    let Some((body_len, used)) = varint(rest)? else {
        return Ok(None);
    };
    // 3.1 and 3.1.1 do not require the shortest form.
    if used > 1 && version.is_v5() && rest.get(used - 1) == Some(&0) {
        return Err(OVERLONG);
    }
    Ok(Some(FrameHeader {
        packet_type,
        flags,
        header_len: used + 1,
        body_len: body_len as usize,
    }))
}

#[inline]
fn check_flags(
    packet_type: PacketType,
    flags: u8,
    version: MqttProtocolVersion,
) -> Result<(), MqttDecodeError> {
    let valid = match packet_type {
        PacketType::Publish => return check_publish_flags(flags, version),
        // 3.1 sets DUP when it repeats one of these packets (3.1 §2.1).
        PacketType::Pubrel | PacketType::Subscribe | PacketType::Unsubscribe
            if version == MqttProtocolVersion::V31 =>
        {
            flags & !0x08 == 0x02
        }
        PacketType::Pubrel | PacketType::Subscribe | PacketType::Unsubscribe => flags == 0x02,
        PacketType::Auth if !version.is_v5() => {
            return Err(MqttDecodeError::malformed(
                "packet type 15 is reserved before MQTT 5",
            ));
        }
        _ => flags == 0,
    };
    if valid {
        Ok(())
    } else {
        Err(MqttDecodeError::malformed(
            "reserved flags of the fixed header are wrong",
        ))
    }
}

#[inline]
fn check_publish_flags(flags: u8, version: MqttProtocolVersion) -> Result<(), MqttDecodeError> {
    match (flags >> 1) & 0x03 {
        3 => Err(MqttDecodeError::malformed("PUBLISH with QoS 3")),
        // 3.1 leaves the flag open for QoS 0.
        0 if flags & 0x08 != 0 && version != MqttProtocolVersion::V31 => {
            Err(MqttDecodeError::malformed("PUBLISH with DUP at QoS 0"))
        }
        _ => Ok(()),
    }
}

/// Returns the length of the packet at the start of `input`, once its fixed header is complete.
///
/// A caller with fewer bytes thus knows how much room the rest needs; `max_packet_size` bounds it.
#[inline]
pub fn frame_len(
    input: &[u8],
    max_packet_size: u32,
    version: MqttProtocolVersion,
) -> Result<Option<usize>, MqttDecodeError> {
    match decode_header(input, version)? {
        Some(header) => check_frame_len(&header, max_packet_size).map(Some),
        None => Ok(None),
    }
}

#[inline]
fn check_frame_len(header: &FrameHeader, max_packet_size: u32) -> Result<usize, MqttDecodeError> {
    let frame_len = header.frame_len();
    if frame_len > max_packet_size as usize {
        return Err(MqttDecodeError::new(
            DecodeErrorKind::PacketTooLarge,
            "packet exceeds the maximum packet size",
        ));
    }
    Ok(frame_len)
}

/// Decodes the packet at the start of `input` and returns it with its length; `None` while it is incomplete.
///
/// A packet larger than `max_packet_size`, fixed header included, is refused as soon as its fixed header is read.
/// CONNECT names its own version; before it, pass [`MqttProtocolVersion::V311`].
#[inline]
pub fn decode_frame(
    input: &[u8],
    max_packet_size: u32,
    version: MqttProtocolVersion,
) -> Result<Option<(Packet<'_>, usize)>, MqttDecodeError> {
    let Some(header) = decode_header(input, version)? else {
        return Ok(None);
    };
    let frame_len = check_frame_len(&header, max_packet_size)?;
    let Some(body) = input.get(header.header_len..frame_len) else {
        return Ok(None);
    };
    let packet = Packet::decode(header.packet_type, header.flags, body, version)?;
    Ok(Some((packet, frame_len)))
}

/// Reads only the protocol of a CONNECT, which may be incomplete or malformed after that.
///
/// It tells a server which version to use when it refuses a CONNECT that could not be decoded.
pub fn peek_protocol(input: &[u8]) -> Option<ConnectProtocol> {
    let header = decode_header(input, MqttProtocolVersion::V311).ok()??;
    if header.packet_type != PacketType::Connect {
        return None;
    }
    let mut body = PacketReader::new(input.get(header.header_len..)?);
    let name = ProtocolName::from_bytes(body.binary().ok()?)?;
    Some(ConnectProtocol {
        name,
        level: body.u8().ok()?,
    })
}
