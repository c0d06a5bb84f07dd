//! SUBSCRIBE (MQTT 5 §3.8).

use std::fmt;

use crate::error::{DecodeErrorKind, MqttDecodeError, MqttEncodeError};
use crate::packet::PacketType;
use crate::packet::connect::{decode_properties, properties_len, put_properties};
use crate::properties::{AllowedProperties, MqttProperties};
use crate::topic::{TopicFilter, TopicFilterError};
use crate::version::{MqttProtocolVersion, PacketId, QoS};
use crate::wire::{PacketReader, check_string, put_binary, put_header, put_u16};

const NO_LOCAL: u8 = 0x04;
const RETAIN_AS_PUBLISHED: u8 = 0x08;

/// The retained messages that a new subscription receives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[repr(u8)]
pub enum RetainHandling {
    /// All matching messages.
    #[default]
    Send = 0,
    /// All matching messages, unless the subscription already existed.
    SendIfNew = 1,
    /// None.
    DoNotSend = 2,
}

/// The options of one subscription; before MQTT 5 all except the quality of service have their defaults.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct SubscriptionOptions {
    /// The highest quality of service the client wants to receive.
    pub qos: QoS,
    /// Whether the subscription excludes the client's own messages.
    pub no_local: bool,
    /// Whether messages keep the retain flag with which they were published.
    pub retain_as_published: bool,
    /// The retained messages that the subscription receives.
    pub retain_handling: RetainHandling,
}

impl SubscriptionOptions {
    /// Makes options with this quality of service and defaults.
    pub const fn new(qos: QoS) -> Self {
        Self {
            qos,
            no_local: false,
            retain_as_published: false,
            retain_handling: RetainHandling::Send,
        }
    }

    const fn from_u8(bits: u8) -> Option<Self> {
        let retain_handling = match bits >> 4 {
            0 => RetainHandling::Send,
            1 => RetainHandling::SendIfNew,
            2 => RetainHandling::DoNotSend,
            _ => return None,
        };
        match QoS::from_u8(bits & 0x03) {
            Some(qos) => Some(Self {
                qos,
                no_local: bits & NO_LOCAL != 0,
                retain_as_published: bits & RETAIN_AS_PUBLISHED != 0,
                retain_handling,
            }),
            None => None,
        }
    }

    const fn to_u8(self) -> u8 {
        let mut bits = self.qos as u8 | (self.retain_handling as u8) << 4;
        if self.no_local {
            bits |= NO_LOCAL;
        }
        if self.retain_as_published {
            bits |= RETAIN_AS_PUBLISHED;
        }
        bits
    }
}

/// One entry of SUBSCRIBE.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SubscribeEntry<'a> {
    /// The filter as the client wrote it, not empty and without U+0000.
    ///
    /// Its wildcards are not validated, so that the server can refuse this entry alone; see [`Self::parse`].
    pub filter: &'a str,
    /// The options of the subscription.
    pub options: SubscriptionOptions,
}

impl<'a> SubscribeEntry<'a> {
    /// Splits off the share name and validates the wildcards; refuse the entry with 0x8F if this fails.
    pub fn parse(&self) -> Result<TopicFilter<'a>, TopicFilterError> {
        TopicFilter::parse(self.filter)
    }

    fn read(reader: &mut PacketReader<'a>) -> Result<Self, MqttDecodeError> {
        let filter = reader.string()?;
        let options = SubscriptionOptions::from_u8(reader.u8()?).ok_or(MqttDecodeError::malformed(
            "reserved bits of the subscription options are set",
        ))?;
        Ok(Self { filter, options })
    }

    const fn fault(&self) -> Option<(DecodeErrorKind, &'static str)> {
        if self.filter.is_empty() {
            return Some((DecodeErrorKind::TopicFilter, "topic filter is empty"));
        }
        if self.options.no_local
            && matches!(
                self.filter.as_bytes(),
                [b'$', b's', b'h', b'a', b'r', b'e', b'/', ..]
            )
        {
            return Some((DecodeErrorKind::Protocol, "no-local on a shared subscription"));
        }
        None
    }
}

/// The entries of SUBSCRIBE, at least one.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct SubscribeFilters<'a> {
    raw: &'a [u8],
    count: u32,
    /// The union of all option bytes, to check at once whether they fit the version.
    options: u8,
}

impl<'a> SubscribeFilters<'a> {
    /// Returns how many entries there are.
    pub const fn len(&self) -> usize {
        self.count as usize
    }

    /// Whether there are none, which is possible only with an empty [`SubscriptionBuf`].
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Iterates over the entries in order, which is also the order of the codes in SUBACK.
    pub fn iter(&self) -> impl Iterator<Item = SubscribeEntry<'a>> + Clone + use<'a> {
        let mut reader = PacketReader::new(self.raw);
        // The bytes have been validated, so an error can only be their end.
        std::iter::from_fn(move || SubscribeEntry::read(&mut reader).ok())
    }

    fn decode(raw: &'a [u8], version: MqttProtocolVersion) -> Result<Self, MqttDecodeError> {
        let mut reader = PacketReader::new(raw);
        let mut filters = Self {
            raw,
            count: 0,
            options: 0,
        };
        while !reader.is_empty() {
            let entry = SubscribeEntry::read(&mut reader)?;
            if let Some((kind, what)) = entry.fault() {
                return Err(MqttDecodeError::new(kind, what));
            }
            filters.count += 1;
            filters.options |= entry.options.to_u8();
        }
        if filters.count == 0 {
            return Err(MqttDecodeError::protocol("SUBSCRIBE without a filter"));
        }
        if filters.options > 0x03 && !version.is_v5() {
            return Err(MqttDecodeError::malformed(
                "reserved bits of the requested QoS are set",
            ));
        }
        Ok(filters)
    }
}

impl fmt::Debug for SubscribeFilters<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

/// A reusable buffer for the entries of SUBSCRIBE.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SubscriptionBuf {
    raw: Vec<u8>,
    count: u32,
    options: u8,
}

impl SubscriptionBuf {
    /// Makes an empty buffer.
    pub const fn new() -> Self {
        Self {
            raw: Vec::new(),
            count: 0,
            options: 0,
        }
    }

    /// Appends an entry, unless its filter is invalid.
    pub fn push(&mut self, filter: &str, options: SubscriptionOptions) -> Result<&mut Self, MqttEncodeError> {
        if let Some((_, what)) = (SubscribeEntry { filter, options }).fault() {
            return Err(MqttEncodeError::invalid(what));
        }
        check_string(filter)?;
        put_binary(filter.as_bytes(), &mut self.raw);
        self.raw.push(options.to_u8());
        self.count += 1;
        self.options |= options.to_u8();
        Ok(self)
    }

    /// Removes all entries and keeps the memory.
    pub fn clear(&mut self) {
        self.raw.clear();
        self.count = 0;
        self.options = 0;
    }

    /// Returns the entries for a packet.
    pub fn as_filters(&self) -> SubscribeFilters<'_> {
        SubscribeFilters {
            raw: &self.raw,
            count: self.count,
            options: self.options,
        }
    }
}

/// A client's request for subscriptions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SubscribePacket<'a> {
    /// The identifier of the expected SUBACK.
    pub packet_id: PacketId,
    /// The properties of MQTT 5.
    pub properties: MqttProperties<'a>,
    /// The subscriptions.
    pub filters: SubscribeFilters<'a>,
}

impl<'a> SubscribePacket<'a> {
    pub(crate) fn decode(body: &'a [u8], version: MqttProtocolVersion) -> Result<Self, MqttDecodeError> {
        let mut reader = PacketReader::new(body);
        Ok(Self {
            packet_id: reader.packet_id()?,
            properties: decode_properties(&mut reader, version, AllowedProperties::SUBSCRIBE)?,
            filters: SubscribeFilters::decode(reader.rest(), version)?,
        })
    }

    /// Appends the packet to `out`.
    pub fn encode(&self, version: MqttProtocolVersion, out: &mut Vec<u8>) -> Result<(), MqttEncodeError> {
        self.properties.check(AllowedProperties::SUBSCRIBE)?;
        if self.filters.is_empty() {
            return Err(MqttEncodeError::invalid("SUBSCRIBE without a filter"));
        }
        if self.filters.options > 0x03 && !version.is_v5() {
            return Err(MqttEncodeError::version("subscription options before MQTT 5"));
        }
        let body_len = 2 + properties_len(&self.properties, version) + self.filters.raw.len();
        put_header(PacketType::Subscribe.first_byte(0x02), body_len, out)?;
        put_u16(self.packet_id.get(), out);
        put_properties(&self.properties, version, out);
        out.extend_from_slice(self.filters.raw);
        Ok(())
    }
}
