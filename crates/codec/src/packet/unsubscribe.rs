//! UNSUBSCRIBE (MQTT 5 §3.10).

use std::fmt;

use crate::error::{DecodeErrorKind, MqttDecodeError, MqttEncodeError};
use crate::packet::PacketType;
use crate::packet::connect::{decode_properties, properties_len, put_properties};
use crate::properties::{AllowedProperties, MqttProperties};
use crate::version::{MqttProtocolVersion, PacketId};
use crate::wire::{PacketReader, check_string, put_binary, put_header, put_u16};

/// The filters of UNSUBSCRIBE, at least one; not empty, without U+0000, wildcards not validated.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct UnsubscribeFilters<'a> {
    raw: &'a [u8],
    count: u32,
}

impl<'a> UnsubscribeFilters<'a> {
    /// Returns how many filters there are.
    pub const fn len(&self) -> usize {
        self.count as usize
    }

    /// Whether there are none, which is possible only with an empty [`TopicFilterBuf`].
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Iterates over the filters in order, which is also the order of the codes in UNSUBACK.
    pub fn iter(&self) -> impl Iterator<Item = &'a str> + Clone + use<'a> {
        let mut reader = PacketReader::new(self.raw);
        // The bytes have been validated, so an error can only be their end.
        std::iter::from_fn(move || reader.string().ok())
    }

    fn decode(raw: &'a [u8]) -> Result<Self, MqttDecodeError> {
        let mut reader = PacketReader::new(raw);
        let mut count = 0;
        while !reader.is_empty() {
            if reader.string()?.is_empty() {
                return Err(MqttDecodeError::new(
                    DecodeErrorKind::TopicFilter,
                    "topic filter is empty",
                ));
            }
            count += 1;
        }
        if count == 0 {
            return Err(MqttDecodeError::protocol("UNSUBSCRIBE without a filter"));
        }
        Ok(Self { raw, count })
    }
}

impl fmt::Debug for UnsubscribeFilters<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

/// A reusable buffer for the filters of UNSUBSCRIBE.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TopicFilterBuf {
    raw: Vec<u8>,
    count: u32,
}

impl TopicFilterBuf {
    /// Makes an empty buffer.
    pub const fn new() -> Self {
        Self {
            raw: Vec::new(),
            count: 0,
        }
    }

    /// Appends a filter, unless it is empty or too long.
    pub fn push(&mut self, filter: &str) -> Result<&mut Self, MqttEncodeError> {
        if filter.is_empty() {
            return Err(MqttEncodeError::invalid("topic filter is empty"));
        }
        check_string(filter)?;
        put_binary(filter.as_bytes(), &mut self.raw);
        self.count += 1;
        Ok(self)
    }

    /// Removes all filters and keeps the memory.
    pub fn clear(&mut self) {
        self.raw.clear();
        self.count = 0;
    }

    /// Returns the filters for a packet.
    pub fn as_filters(&self) -> UnsubscribeFilters<'_> {
        UnsubscribeFilters {
            raw: &self.raw,
            count: self.count,
        }
    }
}

/// A client's request to end subscriptions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnsubscribePacket<'a> {
    /// The identifier of the expected UNSUBACK.
    pub packet_id: PacketId,
    /// The properties of MQTT 5.
    pub properties: MqttProperties<'a>,
    /// The filters of the subscriptions to end.
    pub filters: UnsubscribeFilters<'a>,
}

impl<'a> UnsubscribePacket<'a> {
    pub(crate) fn decode(body: &'a [u8], version: MqttProtocolVersion) -> Result<Self, MqttDecodeError> {
        let mut reader = PacketReader::new(body);
        Ok(Self {
            packet_id: reader.packet_id()?,
            properties: decode_properties(&mut reader, version, AllowedProperties::UNSUBSCRIBE)?,
            filters: UnsubscribeFilters::decode(reader.rest())?,
        })
    }

    /// Appends the packet to `out`.
    pub fn encode(&self, version: MqttProtocolVersion, out: &mut Vec<u8>) -> Result<(), MqttEncodeError> {
        self.properties.check(AllowedProperties::UNSUBSCRIBE)?;
        if self.filters.is_empty() {
            return Err(MqttEncodeError::invalid("UNSUBSCRIBE without a filter"));
        }
        let body_len = 2 + properties_len(&self.properties, version) + self.filters.raw.len();
        put_header(PacketType::Unsubscribe.first_byte(0x02), body_len, out)?;
        put_u16(self.packet_id.get(), out);
        put_properties(&self.properties, version, out);
        out.extend_from_slice(self.filters.raw);
        Ok(())
    }
}
