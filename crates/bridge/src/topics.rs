//! Bridges to other brokers: a message keeps what it says, and gets another topic.

use fieldline_codec::{RetainHandling, SubscriptionOptions, topic};

use crate::carrier::{Side, Translation};
use crate::leg::OutgoingMessage;
use crate::options::BridgeTopic;

/// See the module.
pub(crate) struct TopicTranslation(Vec<CarriedTopic>);

struct CarriedTopic {
    topic: BridgeTopic,
    local: String,
    remote: String,
}

impl TopicTranslation {
    pub(crate) fn new(topics: &[BridgeTopic]) -> Self {
        Self(
            topics
                .iter()
                .map(|topic| CarriedTopic {
                    local: topic.local_filter(),
                    remote: topic.remote_filter(),
                    topic: topic.clone(),
                })
                .collect(),
        )
    }
}

impl CarriedTopic {
    fn comes_from(&self, side: Side) -> bool {
        match side {
            Side::Local => self.topic.goes_out(),
            Side::Remote => self.topic.comes_in(),
        }
    }

    fn filter(&self, side: Side) -> &str {
        match side {
            Side::Local => &self.local,
            Side::Remote => &self.remote,
        }
    }

    fn prefix(&self, side: Side) -> &str {
        match side {
            Side::Local => &self.topic.local_prefix,
            Side::Remote => &self.topic.remote_prefix,
        }
    }
}

impl Translation for TopicTranslation {
    fn filters(&self, side: Side) -> Vec<(String, SubscriptionOptions)> {
        let carried = self.0.iter().filter(|carried| carried.comes_from(side));
        carried
            .map(|carried| {
                let options = SubscriptionOptions {
                    // What has come from the other side does not go back.
                    no_local: true,
                    retain_as_published: true,
                    retain_handling: RetainHandling::SendIfNew,
                    ..SubscriptionOptions::new(carried.topic.qos())
                };
                (carried.filter(side).to_owned(), options)
            })
            .collect()
    }

    fn translate(&mut self, from: Side, message: &OutgoingMessage) -> Vec<(Side, OutgoingMessage)> {
        let to = from.other();
        let carried = self
            .0
            .iter()
            .find(|carried| carried.comes_from(from) && topic::matches(carried.filter(from), &message.topic));
        let translated = carried.and_then(|carried| {
            let rest = message.topic.strip_prefix(carried.prefix(from))?;
            let topic = format!("{}{rest}", carried.prefix(to));
            topic::is_valid_name(&topic).then_some(topic)
        });
        let message = translated.map(|topic| OutgoingMessage {
            topic,
            ..message.clone()
        });
        message.map(|message| (to, message)).into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::BridgeDirection;

    fn carried(direction: BridgeDirection, filter: &str, local: &str, remote: &str) -> BridgeTopic {
        BridgeTopic {
            filter: filter.to_owned(),
            direction,
            local_prefix: local.to_owned(),
            remote_prefix: remote.to_owned(),
            ..BridgeTopic::default()
        }
    }

    #[test]
    fn prefixes_change_on_the_way() {
        let mut translation = TopicTranslation::new(&[
            carried(BridgeDirection::Out, "a/#", "here/", "there/"),
            carried(BridgeDirection::In, "b/+", "", "there/"),
            carried(BridgeDirection::Both, "c", "here/", ""),
        ]);
        let filters = |side: Side, translation: &TopicTranslation| -> Vec<String> {
            translation
                .filters(side)
                .into_iter()
                .map(|(filter, _)| filter)
                .collect()
        };
        assert_eq!(filters(Side::Local, &translation), ["here/a/#", "here/c"]);
        assert_eq!(filters(Side::Remote, &translation), ["there/b/+", "c"]);
        let mut carry = |from: Side, topic: &str| {
            let message = OutgoingMessage {
                topic: topic.to_owned(),
                ..OutgoingMessage::default()
            };
            let sent = translation.translate(from, &message);
            sent.into_iter().map(|(_, message)| message.topic).next()
        };
        assert_eq!(carry(Side::Local, "here/a/1/2").as_deref(), Some("there/a/1/2"));
        assert_eq!(carry(Side::Remote, "there/b/1").as_deref(), Some("b/1"));
        assert_eq!(carry(Side::Local, "here/c").as_deref(), Some("c"));
        assert_eq!(carry(Side::Remote, "c").as_deref(), Some("here/c"));
        // What another session of the same client had asked for.
        assert_eq!(carry(Side::Remote, "there/a/1"), None);
        assert_eq!(carry(Side::Local, "other"), None);
    }
}
