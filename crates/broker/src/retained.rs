//! Retained messages: the newest of each topic, found by filter.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::message::BrokerMessage;

/// Where a message is among all of them.
type Slot = u32;

#[derive(Debug, Default)]
struct RetainedNode {
    children: FxHashMap<Box<str>, RetainedNode>,
    message: Option<Slot>,
}

impl RetainedNode {
    fn is_empty(&self) -> bool {
        self.children.is_empty() && self.message.is_none()
    }

    fn remove(&mut self, topic: &str) -> Option<Slot> {
        let (level, below) = split(topic);
        let node = self.children.get_mut(level)?;
        let removed = match below {
            Some(below) => node.remove(below),
            None => node.message.take(),
        };
        if removed.is_some() && node.is_empty() {
            self.children.remove(level);
        }
        removed
    }

    fn collect(&self, filter: Option<&str>, is_first: bool, found: &mut dyn FnMut(Slot)) {
        let Some(filter) = filter else {
            if let Some(slot) = self.message {
                found(slot);
            }
            return;
        };
        let (level, below) = split(filter);
        // A wildcard in the first level matches no topic that starts with `$` (MQTT 5 §4.7.2).
        let is_open = |name: &str| !is_first || !name.starts_with('$');
        match level {
            "#" => {
                // `a/#` matches `a`, too.
                if let Some(slot) = self.message {
                    found(slot);
                }
                for (name, node) in &self.children {
                    if is_open(name) {
                        node.collect(Some("#"), false, found);
                    }
                }
            }
            "+" => {
                for (name, node) in &self.children {
                    if is_open(name) {
                        node.collect(below, false, found);
                    }
                }
            }
            name => {
                if let Some(node) = self.children.get(name) {
                    node.collect(below, false, found);
                }
            }
        }
    }
}

fn split(levels: &str) -> (&str, Option<&str>) {
    levels
        .split_once('/')
        .map_or((levels, None), |(level, below)| (level, Some(below)))
}

/// Whether only the broker itself publishes on a topic.
fn is_own(topic: &str) -> bool {
    topic.starts_with('$')
}

/// The retained messages.
#[derive(Debug, Default)]
pub(crate) struct RetainedMessages {
    root: RetainedNode,
    count: usize,
    /// Those among them that the broker publishes itself.
    own_count: usize,
    /// The messages, each in its place as long as its topic has one, so that a list can go on after a pause.
    messages: Vec<Option<Arc<BrokerMessage>>>,
    free: Vec<Slot>,
}

impl RetainedMessages {
    /// How many there are.
    pub(crate) const fn count(&self) -> usize {
        self.count
    }

    /// How many of them are of clients.
    pub(crate) const fn client_count(&self) -> usize {
        self.count - self.own_count
    }

    /// The message of a topic.
    pub(crate) fn get(&self, topic: &str) -> Option<&Arc<BrokerMessage>> {
        let mut node = &self.root;
        for level in topic.split('/') {
            node = node.children.get(level)?;
        }
        self.at(node.message?)
    }

    fn at(&self, slot: Slot) -> Option<&Arc<BrokerMessage>> {
        self.messages.get(slot as usize)?.as_ref()
    }

    /// The messages in some of the places from `start` on; `None` behind the last one.
    pub(crate) fn slice(&self, start: usize, length: usize) -> Option<Vec<Arc<BrokerMessage>>> {
        let rest = self.messages.get(start..).filter(|rest| !rest.is_empty())?;
        Some(rest.iter().take(length).flatten().cloned().collect())
    }

    /// Whether a topic has a message.
    pub(crate) fn contains(&self, topic: &str) -> bool {
        self.get(topic).is_some()
    }

    /// Keeps a message as that of its topic; one without payload clears the topic.
    pub(crate) fn put(&mut self, message: &Arc<BrokerMessage>) {
        if message.payload.is_empty() {
            self.remove(&message.topic);
            return;
        }
        let mut node = &mut self.root;
        for level in message.topic.split('/') {
            if !node.children.contains_key(level) {
                node.children.insert(level.into(), RetainedNode::default());
            }
            let Some(child) = node.children.get_mut(level) else {
                return;
            };
            node = child;
        }
        let slot = match node.message {
            Some(slot) => slot,
            None => {
                let slot = self.free.pop().unwrap_or_else(|| {
                    self.messages.push(None);
                    (self.messages.len() - 1) as Slot
                });
                node.message = Some(slot);
                self.count += 1;
                self.own_count += usize::from(is_own(&message.topic));
                slot
            }
        };
        if let Some(place) = self.messages.get_mut(slot as usize) {
            *place = Some(message.clone());
        }
    }

    /// Clears a topic.
    pub(crate) fn remove(&mut self, topic: &str) -> Option<Arc<BrokerMessage>> {
        let slot = self.root.remove(topic)?;
        self.count -= 1;
        self.own_count -= usize::from(is_own(topic));
        let removed = self.messages.get_mut(slot as usize).and_then(Option::take);
        self.free.push(slot);
        if self.count == 0 {
            self.messages = Vec::new();
            self.free = Vec::new();
        }
        removed
    }

    /// Adds the messages whose topics match a filter.
    pub(crate) fn collect(&self, filter: &str, found: &mut Vec<Arc<BrokerMessage>>) {
        let mut find = |slot| found.extend(self.at(slot).cloned());
        self.root.collect(Some(filter), true, &mut find);
    }
}

#[cfg(test)]
mod tests {
    use fieldline_codec::{PublishPacket, topic};

    use super::*;

    fn message(topic: &str, payload: &[u8]) -> Arc<BrokerMessage> {
        Arc::new(BrokerMessage::of(&PublishPacket::new(topic, payload), topic, 0))
    }

    #[test]
    fn messages_are_found_as_the_definition_of_a_match_says() {
        let topics = ["a", "a/b", "a/b/c", "a//c", "/", "", "$SYS/a", "a/$b", "b"];
        let mut retained = RetainedMessages::default();
        for topic in topics {
            retained.put(&message(topic, b"1"));
            retained.put(&message(topic, b"2"));
        }
        assert_eq!(retained.count(), topics.len());
        assert_eq!(retained.client_count(), topics.len() - 1);
        for filter in [
            "#", "a/#", "+", "+/+", "a/+/c", "$SYS/#", "a/b", "+/b/#", "/+", "b/#",
        ] {
            let mut found = Vec::new();
            retained.collect(filter, &mut found);
            let mut found: Vec<_> = found.iter().map(|one| &*one.topic).collect();
            let mut expected: Vec<_> = topics
                .into_iter()
                .filter(|name| topic::matches(filter, name))
                .collect();
            found.sort_unstable();
            expected.sort_unstable();
            assert_eq!(found, expected, "{filter}");
        }
        let listed = |retained: &RetainedMessages, length: usize| {
            let mut listed = Vec::new();
            let mut start = 0;
            while let Some(slice) = retained.slice(start, length) {
                listed.extend(slice.iter().map(|one| String::from(&*one.topic)));
                start += length;
            }
            listed.sort_unstable();
            listed
        };
        retained.put(&message("a/b", b""));
        retained.put(&message("new", b"1"));
        let others = topics.into_iter().filter(|topic| *topic != "a/b");
        let mut expected: Vec<String> = others.chain(["new"]).map(str::to_owned).collect();
        expected.sort_unstable();
        for length in [1, 4, 100] {
            assert_eq!(listed(&retained, length), expected);
        }
        retained.put(&message("new", b""));
        for topic in topics {
            retained.put(&message(topic, b""));
        }
        assert_eq!((retained.count(), retained.client_count()), (0, 0));
        assert!(listed(&retained, 4).is_empty());
        assert!(retained.root.is_empty());
    }
}
