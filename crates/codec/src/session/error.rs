//! Errors of a session.

use thiserror::Error;

use crate::error::MqttEncodeError;
use crate::reason::ReasonCode;

/// The fault of the peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SessionErrorKind {
    /// It sent something before CONNECT or after the end; close without an answer.
    NotConnected,
    /// It sent a packet that is not allowed in this state or direction.
    Protocol,
    /// It sent more unacknowledged messages than allowed.
    ReceiveMaximum,
    /// It used a topic alias that is out of range or unknown.
    TopicAlias,
    /// The topics of its aliases take too many bytes.
    Quota,
    /// It has been silent for too long.
    KeepAlive,
}

/// The reason why a session must end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("{what}")]
pub struct SessionError {
    kind: SessionErrorKind,
    what: &'static str,
}

impl SessionError {
    #[inline]
    pub(super) const fn new(kind: SessionErrorKind, what: &'static str) -> Self {
        Self { kind, what }
    }

    #[inline]
    pub(super) const fn protocol(what: &'static str) -> Self {
        Self::new(SessionErrorKind::Protocol, what)
    }

    /// Returns the fault of the peer.
    pub const fn kind(&self) -> SessionErrorKind {
        self.kind
    }

    /// Returns the reason code for DISCONNECT.
    pub const fn reason_code(&self) -> ReasonCode {
        match self.kind {
            SessionErrorKind::NotConnected | SessionErrorKind::Protocol => ReasonCode::ProtocolError,
            SessionErrorKind::ReceiveMaximum => ReasonCode::ReceiveMaximumExceeded,
            SessionErrorKind::TopicAlias => ReasonCode::TopicAliasInvalid,
            SessionErrorKind::Quota => ReasonCode::QuotaExceeded,
            SessionErrorKind::KeepAlive => ReasonCode::KeepAliveTimeout,
        }
    }
}

/// The reason why a packet was not sent; nothing has been appended to the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum SessionSendError {
    /// There is no connection to send on.
    #[error("not connected")]
    NotConnected,
    /// The peer or the limits allow no more messages in flight; wait for an acknowledgement.
    #[error("too many messages in flight")]
    WindowFull,
    /// The packet exceeds the maximum packet size of the peer.
    #[error("packet exceeds the peer's maximum packet size")]
    PacketTooLarge,
    /// The server does not support this quality of service, or retained messages.
    #[error("the server supports no such QoS or no retained messages")]
    NotSupported,
    /// The packet cannot be expressed.
    #[error(transparent)]
    Encode(#[from] MqttEncodeError),
}
