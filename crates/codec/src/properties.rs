//! Properties of MQTT 5 (§2.2.2): a validated view of their bytes, and a buffer to build them.
//!
//! The view keeps a bit set of the identifiers in the section. It makes three checks a single operation: whether a
//! property is present, whether one came twice, and whether all are allowed in their packet.

use std::fmt;

use crate::error::{DecodeErrorKind, MqttDecodeError, MqttEncodeError};
use crate::topic;
use crate::version::QoS;
use crate::wire::{
    MAX_VARINT, PacketReader, check_len, check_string, put_binary, put_u16, put_varint, varint_len,
};

/// Marks in the bit set a second subscription identifier, which only PUBLISH may carry.
const SECOND_SUBSCRIPTION_ID: u64 = 1;

/// The properties that may appear in one kind of packet, by identifier.
#[derive(Clone, Copy)]
pub(crate) struct AllowedProperties(u64);

impl AllowedProperties {
    const fn of(ids: &[u8]) -> Self {
        let mut set = 0;
        let mut rest = ids;
        while let [id, tail @ ..] = rest {
            set |= 1 << *id;
            rest = tail;
        }
        Self(set)
    }

    pub(crate) const CONNECT: Self = Self::of(&[17, 21, 22, 23, 25, 33, 34, 38, 39]);
    pub(crate) const WILL: Self = Self::of(&[1, 2, 3, 8, 9, 24, 38]);
    pub(crate) const CONNACK: Self =
        Self::of(&[17, 18, 19, 21, 22, 26, 28, 31, 33, 34, 36, 37, 38, 39, 40, 41, 42]);
    pub(crate) const PUBLISH: Self = Self(Self::of(&[1, 2, 3, 8, 9, 11, 35, 38]).0 | SECOND_SUBSCRIPTION_ID);
    /// PUBACK, PUBREC, PUBREL, PUBCOMP, SUBACK and UNSUBACK.
    pub(crate) const ACK: Self = Self::of(&[31, 38]);
    pub(crate) const SUBSCRIBE: Self = Self::of(&[11, 38]);
    pub(crate) const UNSUBSCRIBE: Self = Self::of(&[38]);
    pub(crate) const DISCONNECT: Self = Self::of(&[17, 28, 31, 38]);
    pub(crate) const AUTH: Self = Self::of(&[21, 22, 31, 38]);
}

/// One property with its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MqttProperty<'a> {
    /// Whether the payload is UTF-8 text.
    PayloadFormatIndicator(bool),
    /// Seconds until the message expires.
    MessageExpiryInterval(u32),
    /// The payload's content type.
    ContentType(&'a str),
    /// The topic for a response.
    ResponseTopic(&'a str),
    /// The data by which the requester recognises the response.
    CorrelationData(&'a [u8]),
    /// The identifier of the subscription, 1 to 268,435,455.
    SubscriptionIdentifier(u32),
    /// Seconds for which the session outlives its connection; the largest value means for ever.
    SessionExpiryInterval(u32),
    /// The client identifier the server chose.
    AssignedClientIdentifier(&'a str),
    /// The keep-alive in seconds that the server imposes.
    ServerKeepAlive(u16),
    /// The name of the enhanced authentication method.
    AuthenticationMethod(&'a str),
    /// Data of the enhanced authentication.
    AuthenticationData(&'a [u8]),
    /// Whether the server may send reason strings and user properties with every packet.
    RequestProblemInformation(bool),
    /// Seconds between the end of the connection and the will.
    WillDelayInterval(u32),
    /// Whether the client asks for response information.
    RequestResponseInformation(bool),
    /// The basis for response topics.
    ResponseInformation(&'a str),
    /// Another server to use.
    ServerReference(&'a str),
    /// A human-readable reason.
    ReasonString(&'a str),
    /// Most unacknowledged QoS 1 and 2 messages that the sender of this accepts; never 0.
    ReceiveMaximum(u16),
    /// The highest topic alias that the sender of this accepts.
    TopicAliasMaximum(u16),
    /// The alias of the topic; never 0.
    TopicAlias(u16),
    /// The highest quality of service the server supports: 0 or 1.
    MaximumQos(QoS),
    /// Whether the server supports retained messages.
    RetainAvailable(bool),
    /// A name and a value defined by the application.
    UserProperty(&'a str, &'a str),
    /// The largest packet that the sender of this accepts; never 0.
    MaximumPacketSize(u32),
    /// Whether the server supports wildcards in filters.
    WildcardSubscriptionAvailable(bool),
    /// Whether the server supports subscription identifiers.
    SubscriptionIdentifierAvailable(bool),
    /// Whether the server supports shared subscriptions.
    SharedSubscriptionAvailable(bool),
}

impl<'a> MqttProperty<'a> {
    const fn id(&self) -> u8 {
        match self {
            Self::PayloadFormatIndicator(_) => 1,
            Self::MessageExpiryInterval(_) => 2,
            Self::ContentType(_) => 3,
            Self::ResponseTopic(_) => 8,
            Self::CorrelationData(_) => 9,
            Self::SubscriptionIdentifier(_) => 11,
            Self::SessionExpiryInterval(_) => 17,
            Self::AssignedClientIdentifier(_) => 18,
            Self::ServerKeepAlive(_) => 19,
            Self::AuthenticationMethod(_) => 21,
            Self::AuthenticationData(_) => 22,
            Self::RequestProblemInformation(_) => 23,
            Self::WillDelayInterval(_) => 24,
            Self::RequestResponseInformation(_) => 25,
            Self::ResponseInformation(_) => 26,
            Self::ServerReference(_) => 28,
            Self::ReasonString(_) => 31,
            Self::ReceiveMaximum(_) => 33,
            Self::TopicAliasMaximum(_) => 34,
            Self::TopicAlias(_) => 35,
            Self::MaximumQos(_) => 36,
            Self::RetainAvailable(_) => 37,
            Self::UserProperty(..) => 38,
            Self::MaximumPacketSize(_) => 39,
            Self::WildcardSubscriptionAvailable(_) => 40,
            Self::SubscriptionIdentifierAvailable(_) => 41,
            Self::SharedSubscriptionAvailable(_) => 42,
        }
    }

    /// Reads one property and checks its value.
    fn read(reader: &mut PacketReader<'a>) -> Result<Self, MqttDecodeError> {
        let property = match reader.varint()? {
            1 => Self::PayloadFormatIndicator(read_bool(reader)?),
            2 => Self::MessageExpiryInterval(reader.u32()?),
            3 => Self::ContentType(reader.string()?),
            8 => Self::ResponseTopic(reader.string()?),
            9 => Self::CorrelationData(reader.binary()?),
            11 => Self::SubscriptionIdentifier(reader.varint()?),
            17 => Self::SessionExpiryInterval(reader.u32()?),
            18 => Self::AssignedClientIdentifier(reader.string()?),
            19 => Self::ServerKeepAlive(reader.u16()?),
            21 => Self::AuthenticationMethod(reader.string()?),
            22 => Self::AuthenticationData(reader.binary()?),
            23 => Self::RequestProblemInformation(read_bool(reader)?),
            24 => Self::WillDelayInterval(reader.u32()?),
            25 => Self::RequestResponseInformation(read_bool(reader)?),
            26 => Self::ResponseInformation(reader.string()?),
            28 => Self::ServerReference(reader.string()?),
            31 => Self::ReasonString(reader.string()?),
            33 => Self::ReceiveMaximum(reader.u16()?),
            34 => Self::TopicAliasMaximum(reader.u16()?),
            35 => Self::TopicAlias(reader.u16()?),
            36 => Self::MaximumQos(if read_bool(reader)? {
                QoS::AtLeastOnce
            } else {
                QoS::AtMostOnce
            }),
            37 => Self::RetainAvailable(read_bool(reader)?),
            38 => Self::UserProperty(reader.string()?, reader.string()?),
            39 => Self::MaximumPacketSize(reader.u32()?),
            40 => Self::WildcardSubscriptionAvailable(read_bool(reader)?),
            41 => Self::SubscriptionIdentifierAvailable(read_bool(reader)?),
            42 => Self::SharedSubscriptionAvailable(read_bool(reader)?),
            _ => return Err(MqttDecodeError::malformed("unknown property")),
        };
        match property.value_fault() {
            None => Ok(property),
            Some((kind, what)) => Err(MqttDecodeError::new(kind, what)),
        }
    }

    /// Describes the fault of an invalid value, for properties whose type allows one.
    fn value_fault(&self) -> Option<(DecodeErrorKind, &'static str)> {
        match *self {
            Self::ReceiveMaximum(0) => Some((DecodeErrorKind::Protocol, "receive maximum is zero")),
            Self::MaximumPacketSize(0) => Some((DecodeErrorKind::Protocol, "maximum packet size is zero")),
            Self::TopicAlias(0) => Some((DecodeErrorKind::TopicAlias, "topic alias is zero")),
            Self::SubscriptionIdentifier(0) => {
                Some((DecodeErrorKind::Protocol, "subscription identifier is zero"))
            }
            Self::ResponseTopic(name) if !topic::is_valid_name(name) => Some((
                DecodeErrorKind::Protocol,
                "response topic is empty or has a wildcard",
            )),
            _ => None,
        }
    }

    /// Checks a property for [`MqttPropertyBuf::push`].
    fn check(&self) -> Result<(), MqttEncodeError> {
        if let Some((_, what)) = self.value_fault() {
            return Err(MqttEncodeError::invalid(what));
        }
        match *self {
            Self::SubscriptionIdentifier(id) if id > MAX_VARINT => Err(MqttEncodeError::invalid(
                "subscription identifier exceeds 268,435,455",
            )),
            Self::MaximumQos(QoS::ExactlyOnce) => Err(MqttEncodeError::invalid(
                "maximum QoS 2 is expressed by leaving it out",
            )),
            Self::CorrelationData(bytes) | Self::AuthenticationData(bytes) => check_len(bytes),
            Self::ContentType(text)
            | Self::ResponseTopic(text)
            | Self::AssignedClientIdentifier(text)
            | Self::AuthenticationMethod(text)
            | Self::ResponseInformation(text)
            | Self::ServerReference(text)
            | Self::ReasonString(text) => check_string(text),
            Self::UserProperty(name, value) => check_string(name).and_then(|()| check_string(value)),
            _ => Ok(()),
        }
    }

    fn write(&self, out: &mut Vec<u8>) {
        out.push(self.id());
        match *self {
            Self::PayloadFormatIndicator(flag)
            | Self::RequestProblemInformation(flag)
            | Self::RequestResponseInformation(flag)
            | Self::RetainAvailable(flag)
            | Self::WildcardSubscriptionAvailable(flag)
            | Self::SubscriptionIdentifierAvailable(flag)
            | Self::SharedSubscriptionAvailable(flag) => out.push(u8::from(flag)),
            Self::MaximumQos(qos) => out.push(qos as u8),
            Self::ServerKeepAlive(value)
            | Self::ReceiveMaximum(value)
            | Self::TopicAliasMaximum(value)
            | Self::TopicAlias(value) => put_u16(value, out),
            Self::MessageExpiryInterval(value)
            | Self::SessionExpiryInterval(value)
            | Self::WillDelayInterval(value)
            | Self::MaximumPacketSize(value) => out.extend_from_slice(&value.to_be_bytes()),
            Self::SubscriptionIdentifier(value) => put_varint(value as usize, out),
            Self::CorrelationData(bytes) | Self::AuthenticationData(bytes) => put_binary(bytes, out),
            Self::ContentType(text)
            | Self::ResponseTopic(text)
            | Self::AssignedClientIdentifier(text)
            | Self::AuthenticationMethod(text)
            | Self::ResponseInformation(text)
            | Self::ServerReference(text)
            | Self::ReasonString(text) => put_binary(text.as_bytes(), out),
            Self::UserProperty(name, value) => {
                put_binary(name.as_bytes(), out);
                put_binary(value.as_bytes(), out);
            }
        }
    }

    /// Adds the property to the set of those seen; `false` if it may not be repeated.
    fn mark_seen(&self, seen: &mut u64) -> bool {
        let bit = 1 << self.id();
        if *seen & bit != 0 {
            match self {
                Self::UserProperty(..) => {}
                Self::SubscriptionIdentifier(_) => *seen |= SECOND_SUBSCRIPTION_ID,
                _ => return false,
            }
        }
        *seen |= bit;
        true
    }
}

fn read_bool(reader: &mut PacketReader<'_>) -> Result<bool, MqttDecodeError> {
    match reader.u8()? {
        0 => Ok(false),
        1 => Ok(true),
        _ => Err(MqttDecodeError::protocol("property is neither 0 nor 1")),
    }
}

/// The validated properties of one packet; empty for 3.1 and 3.1.1.
///
/// Lookups and iteration decode the bytes again and allocate nothing.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct MqttProperties<'a> {
    raw: &'a [u8],
    seen: u64,
}

/// Defines a lookup for each property that comes at most once.
macro_rules! lookups {
    ($($(#[$doc:meta])+ $name:ident: $variant:ident($id:literal) -> $type:ty;)+) => {
        impl<'a> MqttProperties<'a> {
            $($(#[$doc])+
            #[inline]
            pub fn $name(&self) -> Option<$type> {
                if self.seen & (1 << $id) == 0 {
                    return None;
                }
                self.iter().find_map(|property| match property {
                    MqttProperty::$variant(value) => Some(value),
                    _ => None,
                })
            })+
        }
    };
}

lookups! {
    /// Returns whether the payload is UTF-8 text.
    payload_format_indicator: PayloadFormatIndicator(1) -> bool;
    /// Returns the seconds until the message expires.
    message_expiry_interval: MessageExpiryInterval(2) -> u32;
    /// Returns the payload's content type.
    content_type: ContentType(3) -> &'a str;
    /// Returns the topic for a response.
    response_topic: ResponseTopic(8) -> &'a str;
    /// Returns the data by which the requester recognises the response.
    correlation_data: CorrelationData(9) -> &'a [u8];
    /// Returns the first subscription identifier.
    subscription_identifier: SubscriptionIdentifier(11) -> u32;
    /// Returns the seconds for which the session outlives its connection.
    session_expiry_interval: SessionExpiryInterval(17) -> u32;
    /// Returns the client identifier the server chose.
    assigned_client_identifier: AssignedClientIdentifier(18) -> &'a str;
    /// Returns the keep-alive in seconds that the server imposes.
    server_keep_alive: ServerKeepAlive(19) -> u16;
    /// Returns the name of the enhanced authentication method.
    authentication_method: AuthenticationMethod(21) -> &'a str;
    /// Returns the data of the enhanced authentication.
    authentication_data: AuthenticationData(22) -> &'a [u8];
    /// Returns whether the server may send reason strings and user properties with every packet.
    request_problem_information: RequestProblemInformation(23) -> bool;
    /// Returns the seconds between the end of the connection and the will.
    will_delay_interval: WillDelayInterval(24) -> u32;
    /// Returns whether the client asks for response information.
    request_response_information: RequestResponseInformation(25) -> bool;
    /// Returns the basis for response topics.
    response_information: ResponseInformation(26) -> &'a str;
    /// Returns another server to use.
    server_reference: ServerReference(28) -> &'a str;
    /// Returns the human-readable reason.
    reason_string: ReasonString(31) -> &'a str;
    /// Returns the most unacknowledged messages that the sender accepts.
    receive_maximum: ReceiveMaximum(33) -> u16;
    /// Returns the highest topic alias that the sender accepts.
    topic_alias_maximum: TopicAliasMaximum(34) -> u16;
    /// Returns the alias of the topic.
    topic_alias: TopicAlias(35) -> u16;
    /// Returns the highest quality of service the server supports.
    maximum_qos: MaximumQos(36) -> QoS;
    /// Returns whether the server supports retained messages.
    retain_available: RetainAvailable(37) -> bool;
    /// Returns the largest packet that the sender accepts.
    maximum_packet_size: MaximumPacketSize(39) -> u32;
    /// Returns whether the server supports wildcards in filters.
    wildcard_subscription_available: WildcardSubscriptionAvailable(40) -> bool;
    /// Returns whether the server supports subscription identifiers.
    subscription_identifier_available: SubscriptionIdentifierAvailable(41) -> bool;
    /// Returns whether the server supports shared subscriptions.
    shared_subscription_available: SharedSubscriptionAvailable(42) -> bool;
}

impl<'a> MqttProperties<'a> {
    /// No properties.
    pub const EMPTY: Self = Self { raw: &[], seen: 0 };

    /// Whether there are none.
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.raw.is_empty()
    }

    /// Iterates over all properties in the order received.
    pub const fn iter(&self) -> MqttPropertiesIter<'a> {
        MqttPropertiesIter {
            reader: PacketReader::new(self.raw),
        }
    }

    /// Iterates over the user properties in the order received.
    pub fn user_properties(&self) -> impl Iterator<Item = (&'a str, &'a str)> + use<'a> {
        let raw = if self.seen & (1 << 38) == 0 { &[] } else { self.raw };
        MqttPropertiesIter {
            reader: PacketReader::new(raw),
        }
        .filter_map(|property| match property {
            MqttProperty::UserProperty(name, value) => Some((name, value)),
            _ => None,
        })
    }

    /// Iterates over the subscription identifiers of a PUBLISH.
    pub fn subscription_identifiers(&self) -> impl Iterator<Item = u32> + use<'a> {
        let raw = if self.has_subscription_identifier() {
            self.raw
        } else {
            &[]
        };
        MqttPropertiesIter {
            reader: PacketReader::new(raw),
        }
        .filter_map(|property| match property {
            MqttProperty::SubscriptionIdentifier(id) => Some(id),
            _ => None,
        })
    }

    pub(crate) const fn has_subscription_identifier(&self) -> bool {
        self.seen & (1 << 11) != 0
    }

    pub(crate) const fn has_topic_alias(&self) -> bool {
        self.seen & (1 << 35) != 0
    }

    pub(crate) const fn has_authentication_method(&self) -> bool {
        self.seen & (1 << 21) != 0
    }

    /// Returns whether authentication data came without its method, which both CONNECT and CONNACK forbid.
    pub(crate) const fn has_stray_authentication_data(&self) -> bool {
        self.seen & (1 << 22) != 0 && !self.has_authentication_method()
    }

    /// Reads the length and the properties at the reader's position.
    #[inline]
    pub(crate) fn decode(
        reader: &mut PacketReader<'a>,
        allowed: AllowedProperties,
    ) -> Result<Self, MqttDecodeError> {
        let len = reader.varint()?;
        if len == 0 {
            return Ok(Self::EMPTY);
        }
        Self::validate(reader.take(len as usize)?, allowed)
    }

    fn validate(raw: &'a [u8], allowed: AllowedProperties) -> Result<Self, MqttDecodeError> {
        let mut reader = PacketReader::new(raw);
        let mut seen = 0;
        while !reader.is_empty() {
            let property = MqttProperty::read(&mut reader)?;
            if allowed.0 & (1 << property.id()) == 0 {
                return Err(MqttDecodeError::malformed(
                    "property does not belong to this packet",
                ));
            }
            if !property.mark_seen(&mut seen) || seen & !allowed.0 != 0 {
                return Err(MqttDecodeError::protocol("property comes twice"));
            }
        }
        Ok(Self { raw, seen })
    }

    pub(crate) const fn check(&self, allowed: AllowedProperties) -> Result<(), MqttEncodeError> {
        if self.seen & !allowed.0 == 0 {
            Ok(())
        } else {
            Err(MqttEncodeError::invalid(
                "property does not belong to this packet",
            ))
        }
    }

    /// Returns the number of bytes that [`Self::encode`] writes.
    #[inline]
    pub(crate) const fn encoded_len(&self) -> usize {
        varint_len(self.raw.len()) + self.raw.len()
    }

    #[inline]
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        put_varint(self.raw.len(), out);
        out.extend_from_slice(self.raw);
    }

    pub(crate) const fn raw(&self) -> &'a [u8] {
        self.raw
    }
}

impl<'a> IntoIterator for &MqttProperties<'a> {
    type Item = MqttProperty<'a>;
    type IntoIter = MqttPropertiesIter<'a>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl fmt::Debug for MqttProperties<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

/// An iterator over [`MqttProperties`].
#[derive(Clone)]
pub struct MqttPropertiesIter<'a> {
    reader: PacketReader<'a>,
}

impl<'a> Iterator for MqttPropertiesIter<'a> {
    type Item = MqttProperty<'a>;

    fn next(&mut self) -> Option<MqttProperty<'a>> {
        // The bytes have been validated, so an error can only be their end.
        MqttProperty::read(&mut self.reader).ok()
    }
}

/// A reusable buffer to build [`MqttProperties`].
///
/// It allocates with the first property, and keeps its memory when cleared.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MqttPropertyBuf {
    raw: Vec<u8>,
    seen: u64,
}

impl MqttPropertyBuf {
    /// Makes an empty buffer.
    pub const fn new() -> Self {
        Self {
            raw: Vec::new(),
            seen: 0,
        }
    }

    /// Appends a property, unless its value is invalid or it may not be repeated.
    ///
    /// The encoder of the packet checks whether the property is allowed in it.
    pub fn push(&mut self, property: MqttProperty<'_>) -> Result<&mut Self, MqttEncodeError> {
        property.check()?;
        if !property.mark_seen(&mut self.seen) {
            return Err(MqttEncodeError::invalid("property comes twice"));
        }
        property.write(&mut self.raw);
        Ok(self)
    }

    /// Reads the properties of a PUBLISH from the bytes that [`Self::as_bytes`] returned.
    pub fn from_publish_bytes(raw: &[u8]) -> Result<Self, MqttDecodeError> {
        let properties = MqttProperties::validate(raw, AllowedProperties::PUBLISH)?;
        Ok(Self {
            raw: raw.to_vec(),
            seen: properties.seen,
        })
    }

    /// Returns the encoded properties, without their length.
    pub fn as_bytes(&self) -> &[u8] {
        &self.raw
    }

    /// Removes all properties and keeps the memory.
    pub fn clear(&mut self) {
        self.raw.clear();
        self.seen = 0;
    }

    /// Returns the properties for a packet.
    pub fn as_properties(&self) -> MqttProperties<'_> {
        MqttProperties {
            raw: &self.raw,
            seen: self.seen,
        }
    }
}
