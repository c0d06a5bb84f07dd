//! Errors of received bytes, and of packets to send.

use thiserror::Error;

use crate::reason::ReasonCode;

/// The class of a decoding error, which determines the answer to the peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DecodeErrorKind {
    /// The bytes do not follow the packet format.
    Malformed,
    /// The packet is well-formed but not allowed.
    Protocol,
    /// CONNECT names a protocol or level that could not be read.
    UnsupportedVersion,
    /// A topic name is empty or holds a wildcard.
    TopicName,
    /// A topic filter is empty or breaks the wildcard rules.
    TopicFilter,
    /// A topic alias of zero.
    TopicAlias,
    /// The fixed header announces more bytes than the receiver accepts.
    PacketTooLarge,
}

/// The reason why a frame was refused; the connection cannot continue after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("{what}")]
pub struct MqttDecodeError {
    kind: DecodeErrorKind,
    what: &'static str,
}

impl MqttDecodeError {
    #[inline]
    pub(crate) const fn new(kind: DecodeErrorKind, what: &'static str) -> Self {
        Self { kind, what }
    }

    #[inline]
    pub(crate) const fn malformed(what: &'static str) -> Self {
        Self::new(DecodeErrorKind::Malformed, what)
    }

    #[inline]
    pub(crate) const fn protocol(what: &'static str) -> Self {
        Self::new(DecodeErrorKind::Protocol, what)
    }

    /// Returns the class of the error.
    pub const fn kind(&self) -> DecodeErrorKind {
        self.kind
    }

    /// Returns the reason code for the CONNACK or DISCONNECT that answers it.
    pub const fn reason_code(&self) -> ReasonCode {
        self.kind.reason_code()
    }
}

impl DecodeErrorKind {
    /// Returns the reason code for the CONNACK or DISCONNECT that answers it.
    ///
    /// [`ReasonCode::UnsupportedProtocolVersion`], [`ReasonCode::TopicFilterInvalid`] and
    /// [`ReasonCode::TopicAliasInvalid`] can only arise where the specification allows them.
    pub const fn reason_code(self) -> ReasonCode {
        match self {
            Self::Malformed => ReasonCode::MalformedPacket,
            Self::Protocol => ReasonCode::ProtocolError,
            Self::UnsupportedVersion => ReasonCode::UnsupportedProtocolVersion,
            Self::TopicName => ReasonCode::TopicNameInvalid,
            Self::TopicFilter => ReasonCode::TopicFilterInvalid,
            Self::TopicAlias => ReasonCode::TopicAliasInvalid,
            Self::PacketTooLarge => ReasonCode::PacketTooLarge,
        }
    }
}

/// The class of an encoding error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EncodeErrorKind {
    /// A string, binary field or the whole packet exceeds what the format can express.
    TooLong,
    /// The protocol version has no such packet, option or field.
    WrongVersion,
    /// A field contradicts the specification or another field.
    InvalidField,
}

/// The reason why a packet could not be written; nothing has been appended to the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("{what}")]
pub struct MqttEncodeError {
    kind: EncodeErrorKind,
    what: &'static str,
}

impl MqttEncodeError {
    #[inline]
    pub(crate) const fn invalid(what: &'static str) -> Self {
        Self {
            kind: EncodeErrorKind::InvalidField,
            what,
        }
    }

    #[inline]
    pub(crate) const fn too_long(what: &'static str) -> Self {
        Self {
            kind: EncodeErrorKind::TooLong,
            what,
        }
    }

    #[inline]
    pub(crate) const fn version(what: &'static str) -> Self {
        Self {
            kind: EncodeErrorKind::WrongVersion,
            what,
        }
    }

    /// Returns the class of the error.
    pub const fn kind(&self) -> EncodeErrorKind {
        self.kind
    }
}
