//! MQTT 3.1, 3.1.1 and 5.0 without I/O: bytes to packets, packets to bytes, and the state of a session; CoAP in its own
//! module [`coap`]; [`websocket`] as a carrier of MQTT; and the identification of the peer by [`proxy`] headers and
//! ranges of [`address`]es.
//!
//! Decoding borrows from the input and allocates nothing; the contents of a [`Packet`] are validated. Encoding appends
//! to the caller's buffer. The [`session`] state machines read no clock and own no socket. Device server, broker and
//! load generator therefore share them, and a test can run them byte by byte.
//!
//! ```
//! use fieldline_codec::{Packet, MqttProtocolVersion, decode_frame, encode_puback};
//!
//! let input = [0x32, 0x08, 0x00, 0x03, b'a', b'/', b'b', 0x00, 0x0A, b'!'];
//! let mut output = Vec::new();
//! let (packet, used) = decode_frame(&input, 1024, MqttProtocolVersion::V311)?.expect("a whole frame");
//! if let Packet::Publish(publish) = packet {
//!     assert_eq!((publish.topic, publish.payload), ("a/b", &b"!"[..]));
//!     if let Some(id) = publish.packet_id {
//!         encode_puback(id, &mut output);
//!     }
//! }
//! assert_eq!((used, output), (input.len(), vec![0x40, 0x02, 0x00, 0x0A]));
//! # Ok::<(), fieldline_codec::MqttDecodeError>(())
//! ```

pub mod address;
pub mod coap;
mod error;
mod frame;
mod packet;
mod properties;
pub mod proxy;
mod reason;
pub mod session;
pub mod topic;
mod version;
pub mod websocket;
mod wire;

pub use error::{DecodeErrorKind, EncodeErrorKind, MqttDecodeError, MqttEncodeError};
pub use frame::{FrameHeader, decode_frame, decode_header, frame_len, peek_protocol};
pub use packet::{
    AckPacket, AuthPacket, ConnackPacket, ConnectPacket, DisconnectPacket, LastWill, Packet, PacketType,
    PublishPacket, PublishTemplate, ReasonCodes, RetainHandling, SubackPacket, SubscribeEntry,
    SubscribeFilters, SubscribePacket, SubscriptionBuf, SubscriptionOptions, TopicFilterBuf, UnsubackPacket,
    UnsubscribeFilters, UnsubscribePacket, encode_pingreq, encode_pingresp, encode_puback,
};
pub use properties::{MqttProperties, MqttPropertiesIter, MqttProperty, MqttPropertyBuf};
pub use reason::ReasonCode;
pub use version::{ConnectProtocol, MqttProtocolVersion, PacketId, ProtocolName, QoS};
pub use wire::MAX_PACKET_SIZE;
