//! Topic aliases of MQTT 5 (§3.3.2.3.4), both directions, bounded in number and in bytes.

use std::collections::HashMap;

use super::error::{SessionError, SessionErrorKind};

/// Most bytes of topic names that one direction of a connection may keep.
const MAX_BYTES: usize = 128 * 1024;

/// A shorter topic gains nothing from an alias, which itself takes three bytes.
const MIN_TOPIC_LEN: usize = 4;

/// The aliases of a connection; they end with the connection.
#[derive(Debug, Default)]
pub(super) struct TopicAliases {
    pub(super) inbound: InboundAliases,
    pub(super) outbound: OutboundAliases,
}

/// The topics of the peer's aliases.
#[derive(Debug, Default)]
pub(super) struct InboundAliases {
    topics: Vec<Option<Box<str>>>,
    bytes: usize,
}

impl InboundAliases {
    pub(super) fn get(&self, alias: u16) -> Option<&str> {
        self.topics.get(usize::from(alias).checked_sub(1)?)?.as_deref()
    }

    /// Assigns `topic` to `alias`, which the caller has checked against its maximum.
    pub(super) fn set(&mut self, alias: u16, topic: &str) -> Result<(), SessionError> {
        let alias = usize::from(alias);
        if self.topics.len() < alias {
            self.topics.resize(alias, None);
        }
        let Some(slot) = alias.checked_sub(1).and_then(|index| self.topics.get_mut(index)) else {
            return Err(SessionError::new(
                SessionErrorKind::TopicAlias,
                "topic alias is zero",
            ));
        };
        let freed = slot.as_deref().map_or(0, str::len);
        let bytes = self.bytes - freed + topic.len();
        if bytes > MAX_BYTES {
            return Err(SessionError::new(
                SessionErrorKind::Quota,
                "topic aliases take too much memory",
            ));
        }
        if slot.as_deref() != Some(topic) {
            *slot = Some(topic.into());
        }
        self.bytes = bytes;
        Ok(())
    }
}

/// The form in which a topic is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OutboundAlias {
    /// The peer knows the alias, which replaces the topic.
    Known(u16),
    /// Alias and topic are sent together; call [`OutboundAliases::commit`] afterwards.
    New(u16),
    /// Only the topic is sent.
    None,
}

/// The aliases known to the peer; the first topics get one each, until none is left.
#[derive(Debug, Default)]
pub(super) struct OutboundAliases {
    topics: HashMap<Box<str>, u16>,
    bytes: usize,
}

impl OutboundAliases {
    pub(super) fn plan(&self, topic: &str, maximum: u16) -> OutboundAlias {
        if topic.len() < MIN_TOPIC_LEN {
            return OutboundAlias::None;
        }
        if let Some(&alias) = self.topics.get(topic) {
            return OutboundAlias::Known(alias);
        }
        if self.topics.len() >= usize::from(maximum) || self.bytes + topic.len() > MAX_BYTES {
            return OutboundAlias::None;
        }
        OutboundAlias::New(self.topics.len() as u16 + 1)
    }

    pub(super) fn commit(&mut self, topic: &str, alias: u16) {
        self.bytes += topic.len();
        self.topics.insert(topic.into(), alias);
    }
}
