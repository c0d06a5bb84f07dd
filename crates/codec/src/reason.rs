//! Reason codes (MQTT 5 §2.4), and the return codes of 3.1.1 as a subset of them.

use crate::packet::PacketType;

/// Declares the codes with their value, name and the packets they may appear in.
macro_rules! reason_codes {
    ($($variant:ident = $value:literal, $name:literal, [$($packet:ident)+];)+) => {
        /// The reason why a packet was accepted or refused; 0x80 and above are refusals.
        ///
        /// CONNACK and SUBACK of 3.1 and 3.1.1 use the same type: their return codes are translated when read and
        /// written.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum ReasonCode {
            $(#[doc = $name] $variant = $value,)+
        }

        impl ReasonCode {
            /// All codes in the order of their values.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// Returns the code with this value, if the specification defines it.
            pub const fn from_u8(value: u8) -> Option<Self> {
                match value {
                    $($value => Some(Self::$variant),)+
                    _ => None,
                }
            }

            /// Returns its name in the specification.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)+
                }
            }

            /// Returns the packets that may carry it, one bit for each [`PacketType`].
            const fn packets(self) -> u16 {
                match self {
                    $(Self::$variant => $(1 << PacketType::$packet as u8)|+,)+
                }
            }
        }
    };
}

reason_codes! {
    Success = 0x00, "Success", [Connack Puback Pubrec Pubrel Pubcomp Suback Unsuback Disconnect Auth];
    GrantedQos1 = 0x01, "Granted QoS 1", [Suback];
    GrantedQos2 = 0x02, "Granted QoS 2", [Suback];
    DisconnectWithWill = 0x04, "Disconnect with Will Message", [Disconnect];
    NoMatchingSubscribers = 0x10, "No matching subscribers", [Puback Pubrec];
    NoSubscriptionExisted = 0x11, "No subscription existed", [Unsuback];
    ContinueAuthentication = 0x18, "Continue authentication", [Auth];
    ReAuthenticate = 0x19, "Re-authenticate", [Auth];
    UnspecifiedError = 0x80, "Unspecified error", [Connack Puback Pubrec Suback Unsuback Disconnect];
    MalformedPacket = 0x81, "Malformed Packet", [Connack Disconnect];
    ProtocolError = 0x82, "Protocol Error", [Connack Disconnect];
    ImplementationSpecificError = 0x83, "Implementation specific error", [Connack Puback Pubrec Suback Unsuback Disconnect];
    UnsupportedProtocolVersion = 0x84, "Unsupported Protocol Version", [Connack];
    ClientIdentifierNotValid = 0x85, "Client Identifier not valid", [Connack];
    BadUserNameOrPassword = 0x86, "Bad User Name or Password", [Connack];
    NotAuthorized = 0x87, "Not authorized", [Connack Puback Pubrec Suback Unsuback Disconnect];
    ServerUnavailable = 0x88, "Server unavailable", [Connack];
    ServerBusy = 0x89, "Server busy", [Connack Disconnect];
    Banned = 0x8A, "Banned", [Connack];
    ServerShuttingDown = 0x8B, "Server shutting down", [Disconnect];
    BadAuthenticationMethod = 0x8C, "Bad authentication method", [Connack Disconnect];
    KeepAliveTimeout = 0x8D, "Keep Alive timeout", [Disconnect];
    SessionTakenOver = 0x8E, "Session taken over", [Disconnect];
    TopicFilterInvalid = 0x8F, "Topic Filter invalid", [Suback Unsuback Disconnect];
    TopicNameInvalid = 0x90, "Topic Name invalid", [Connack Puback Pubrec Disconnect];
    PacketIdentifierInUse = 0x91, "Packet Identifier in use", [Puback Pubrec Suback Unsuback];
    PacketIdentifierNotFound = 0x92, "Packet Identifier not found", [Pubrel Pubcomp];
    ReceiveMaximumExceeded = 0x93, "Receive Maximum exceeded", [Disconnect];
    TopicAliasInvalid = 0x94, "Topic Alias invalid", [Disconnect];
    PacketTooLarge = 0x95, "Packet too large", [Connack Disconnect];
    MessageRateTooHigh = 0x96, "Message rate too high", [Disconnect];
    QuotaExceeded = 0x97, "Quota exceeded", [Connack Puback Pubrec Suback Disconnect];
    AdministrativeAction = 0x98, "Administrative action", [Disconnect];
    PayloadFormatInvalid = 0x99, "Payload format invalid", [Connack Puback Pubrec Disconnect];
    RetainNotSupported = 0x9A, "Retain not supported", [Connack Disconnect];
    QosNotSupported = 0x9B, "QoS not supported", [Connack Disconnect];
    UseAnotherServer = 0x9C, "Use another server", [Connack Disconnect];
    ServerMoved = 0x9D, "Server moved", [Connack Disconnect];
    SharedSubscriptionsNotSupported = 0x9E, "Shared Subscriptions not supported", [Suback Disconnect];
    ConnectionRateExceeded = 0x9F, "Connection rate exceeded", [Connack Disconnect];
    MaximumConnectTime = 0xA0, "Maximum connect time", [Disconnect];
    SubscriptionIdentifiersNotSupported = 0xA1, "Subscription Identifiers not supported", [Suback Disconnect];
    WildcardSubscriptionsNotSupported = 0xA2, "Wildcard Subscriptions not supported", [Suback Disconnect];
}

impl ReasonCode {
    /// Returns the value on the wire.
    #[inline]
    pub const fn value(self) -> u8 {
        self as u8
    }

    /// Returns whether the code is a refusal.
    #[inline]
    pub const fn is_error(self) -> bool {
        self.value() >= 0x80
    }

    /// Returns whether MQTT 5 allows the code in this packet.
    #[inline]
    pub const fn is_valid_in(self, packet: PacketType) -> bool {
        self.packets() & (1 << packet as u8) != 0
    }

    /// Returns the code by which SUBACK grants this quality of service.
    pub const fn granted(qos: crate::QoS) -> Self {
        match qos {
            crate::QoS::AtMostOnce => Self::Success,
            crate::QoS::AtLeastOnce => Self::GrantedQos1,
            crate::QoS::ExactlyOnce => Self::GrantedQos2,
        }
    }

    /// Returns the closest CONNACK return code of 3.1.1 (§3.2.2.3).
    pub const fn to_connect_return_code(self) -> u8 {
        match self {
            Self::Success => 0,
            Self::UnsupportedProtocolVersion => 1,
            Self::ClientIdentifierNotValid => 2,
            Self::BadUserNameOrPassword => 4,
            Self::NotAuthorized | Self::Banned | Self::BadAuthenticationMethod => 5,
            _ => 3,
        }
    }

    /// Returns the code that corresponds to a CONNACK return code of 3.1.1.
    pub const fn from_connect_return_code(code: u8) -> Option<Self> {
        match code {
            0 => Some(Self::Success),
            1 => Some(Self::UnsupportedProtocolVersion),
            2 => Some(Self::ClientIdentifierNotValid),
            3 => Some(Self::ServerUnavailable),
            4 => Some(Self::BadUserNameOrPassword),
            5 => Some(Self::NotAuthorized),
            _ => None,
        }
    }
}

#[allow(clippy::derivable_impls, reason = "the macro has no place for #[default]")]
impl Default for ReasonCode {
    fn default() -> Self {
        Self::Success
    }
}

impl std::fmt::Display for ReasonCode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}
