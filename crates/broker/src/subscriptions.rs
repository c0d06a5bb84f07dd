//! Who subscribes to what: a trie of filter levels (MQTT 5 §4.7), with the groups of shared subscriptions (§4.8).

use std::sync::atomic::{AtomicUsize, Ordering};

use fieldline_codec::SubscriptionOptions;
use fieldline_codec::topic::TopicFilter;
use rustc_hash::FxHashMap;

/// Most members of a group that a message waits for, beside the one whose turn it is.
const MOST_RIVALS: usize = 8;

/// How well a member of a group can take a message now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum MemberState {
    /// It is gone and keeps nothing.
    Gone,
    /// It is away, and its messages are kept.
    Away,
    /// It is connected, but its queue is crowded.
    Crowded,
    /// It is connected.
    Connected,
}

/// Someone who subscribes.
pub(crate) trait TrieMember: Clone {
    /// Tells members apart.
    fn number(&self) -> u64;
    /// How well it can take a message of a group now.
    fn state(&self) -> MemberState;
}

/// One subscription as the trie keeps it.
#[derive(Debug, Clone)]
pub(crate) struct Subscriber<M> {
    pub(crate) member: M,
    pub(crate) options: SubscriptionOptions,
    /// The subscription identifier; 0 if there is none.
    pub(crate) id: u32,
}

/// Members that share the messages of a filter.
#[derive(Debug)]
struct ShareGroup<M> {
    name: Box<str>,
    members: SubscriberSet<M>,
    /// Counts messages, to spread them over the members.
    next: AtomicUsize,
}

impl<M: TrieMember> ShareGroup<M> {
    /// The member whose turn it is: one that is connected, else one that keeps messages.
    fn choose(&self) -> Option<(&Subscriber<M>, MemberState)> {
        let members = &self.members.0;
        let start = self.next.fetch_add(1, Ordering::Relaxed) % members.len().max(1);
        let (before, from) = members.split_at_checked(start)?;
        let mut best: Option<(&Subscriber<M>, MemberState)> = None;
        for member in from.iter().chain(before) {
            let state = member.member.state();
            if state == MemberState::Connected {
                return Some((member, state));
            }
            if best.is_none_or(|(_, of_best)| state > of_best) {
                best = Some((member, state));
            }
        }
        best.filter(|(_, state)| *state != MemberState::Gone)
    }

    /// Members whose queues are crowded.
    fn crowded(&self) -> impl Iterator<Item = &Subscriber<M>> {
        let members = self.members.0.iter();
        members.filter(|one| one.member.state() == MemberState::Crowded)
    }
}

/// Subscribers of one filter, sorted by number.
#[derive(Debug)]
struct SubscriberSet<M>(Vec<Subscriber<M>>);

impl<M> Default for SubscriberSet<M> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<M: TrieMember> SubscriberSet<M> {
    fn place(&self, number: u64) -> Result<usize, usize> {
        self.0
            .binary_search_by_key(&number, |subscriber| subscriber.member.number())
    }

    /// Adds a subscriber or replaces it; returns whether it is new.
    fn insert(&mut self, subscriber: Subscriber<M>) -> bool {
        match self.place(subscriber.member.number()) {
            Ok(index) => {
                if let Some(place) = self.0.get_mut(index) {
                    *place = subscriber;
                }
                false
            }
            Err(index) => {
                self.0.insert(index, subscriber);
                true
            }
        }
    }

    fn remove(&mut self, number: u64) -> bool {
        let Ok(index) = self.place(number) else {
            return false;
        };
        self.0.remove(index);
        if self.0.is_empty() {
            self.0 = Vec::new();
        }
        true
    }
}

/// What ends at a node.
#[derive(Debug)]
struct FilterEnd<M> {
    subscribers: SubscriberSet<M>,
    groups: Vec<ShareGroup<M>>,
}

impl<M> Default for FilterEnd<M> {
    fn default() -> Self {
        Self {
            subscribers: SubscriberSet::default(),
            groups: Vec::new(),
        }
    }
}

impl<M: TrieMember> FilterEnd<M> {
    const fn is_empty(&self) -> bool {
        self.subscribers.0.is_empty() && self.groups.is_empty()
    }

    fn insert(&mut self, share_name: Option<&str>, subscriber: Subscriber<M>) -> bool {
        let Some(name) = share_name else {
            return self.subscribers.insert(subscriber);
        };
        if let Some(group) = self.groups.iter_mut().find(|group| &*group.name == name) {
            return group.members.insert(subscriber);
        }
        let mut group = ShareGroup {
            name: name.into(),
            members: SubscriberSet::default(),
            next: AtomicUsize::new(0),
        };
        group.members.insert(subscriber);
        self.groups.push(group);
        true
    }

    fn remove(&mut self, share_name: Option<&str>, number: u64) -> bool {
        let Some(name) = share_name else {
            return self.subscribers.remove(number);
        };
        let Some(index) = self.groups.iter().position(|group| &*group.name == name) else {
            return false;
        };
        let Some(group) = self.groups.get_mut(index) else {
            return false;
        };
        let removed = group.members.remove(number);
        if group.members.0.is_empty() {
            self.groups.swap_remove(index);
        }
        removed
    }
}

#[derive(Debug)]
struct TrieNode<M> {
    children: FxHashMap<Box<str>, TrieNode<M>>,
    /// The level `+`.
    any: Option<Box<TrieNode<M>>>,
    /// Filters that end here.
    end: FilterEnd<M>,
    /// Filters that end here with `#`.
    rest: FilterEnd<M>,
}

impl<M> Default for TrieNode<M> {
    fn default() -> Self {
        Self {
            children: FxHashMap::default(),
            any: None,
            end: FilterEnd::default(),
            rest: FilterEnd::default(),
        }
    }
}

impl<M: TrieMember> TrieNode<M> {
    fn is_empty(&self) -> bool {
        self.children.is_empty() && self.any.is_none() && self.end.is_empty() && self.rest.is_empty()
    }

    fn end_of(&mut self, filter: &str) -> &mut FilterEnd<M> {
        let mut node = self;
        for level in filter.split('/') {
            node = match level {
                "#" => return &mut node.rest,
                "+" => node.any.get_or_insert_default(),
                name => {
                    if !node.children.contains_key(name) {
                        node.children.insert(name.into(), Self::default());
                    }
                    let Some(child) = node.children.get_mut(name) else {
                        unreachable!("it has just been inserted")
                    };
                    child
                }
            };
        }
        &mut node.end
    }

    /// Removes a subscription below this node, and the nodes that are empty then.
    fn remove(&mut self, filter: &str, share_name: Option<&str>, number: u64) -> bool {
        let (level, below) = match filter.split_once('/') {
            Some((level, below)) => (level, Some(below)),
            None => (filter, None),
        };
        if level == "#" {
            return self.rest.remove(share_name, number);
        }
        let node = match level {
            "+" => self.any.as_deref_mut(),
            name => self.children.get_mut(name),
        };
        let Some(node) = node else {
            return false;
        };
        let removed = match below {
            Some(below) => node.remove(below, share_name, number),
            None => node.end.remove(share_name, number),
        };
        if removed && node.is_empty() {
            match level {
                "+" => self.any = None,
                name => drop(self.children.remove(name)),
            }
        }
        removed
    }

    fn collect(&self, level: &str, below: Option<&str>, is_first: bool, found: &mut TopicMatches<M>) {
        // A wildcard in the first level matches no topic that starts with `$` (§4.7.2).
        let wildcards = !is_first || !level.starts_with('$');
        if wildcards {
            found.add(&self.rest);
        }
        let named = self.children.get(level);
        let any = self.any.as_deref().filter(|_| wildcards);
        for node in [named, any].into_iter().flatten() {
            match below.map(|below| below.split_once('/').map_or((below, None), |(l, b)| (l, Some(b)))) {
                Some((level, below)) => node.collect(level, below, false, found),
                None => {
                    found.add(&node.end);
                    // `a/#` matches `a`, too.
                    found.add(&node.rest);
                }
            }
        }
    }
}

/// The subscriptions that match a topic.
#[derive(Debug)]
pub(crate) struct TopicMatches<M> {
    /// Of those who have subscribed for themselves; somebody with several filters that match is there several times.
    pub(crate) own: Vec<Subscriber<M>>,
    /// Of the groups, for each the member whose turn it is.
    pub(crate) shared: Vec<Subscriber<M>>,
    /// Further members of groups of which nobody has room: it may be their turn as soon as they have.
    pub(crate) rivals: Vec<Subscriber<M>>,
}

impl<M> Default for TopicMatches<M> {
    fn default() -> Self {
        Self {
            own: Vec::new(),
            shared: Vec::new(),
            rivals: Vec::new(),
        }
    }
}

impl<M: TrieMember> TopicMatches<M> {
    pub(crate) fn clear(&mut self) {
        self.own.clear();
        self.shared.clear();
        self.rivals.clear();
    }

    fn add(&mut self, end: &FilterEnd<M>) {
        self.own.extend_from_slice(&end.subscribers.0);
        for group in &end.groups {
            let Some((member, state)) = group.choose() else {
                continue;
            };
            self.shared.push(member.clone());
            if state == MemberState::Crowded {
                let number = member.member.number();
                let others = group.crowded().filter(|one| one.member.number() != number);
                self.rivals.extend(others.take(MOST_RIVALS).cloned());
            }
        }
    }
}

/// All subscriptions.
#[derive(Debug)]
pub(crate) struct SubscriptionTrie<M> {
    root: TrieNode<M>,
    count: usize,
}

impl<M> Default for SubscriptionTrie<M> {
    fn default() -> Self {
        Self {
            root: TrieNode::default(),
            count: 0,
        }
    }
}

impl<M: TrieMember> SubscriptionTrie<M> {
    /// How many subscriptions there are.
    pub(crate) const fn count(&self) -> usize {
        self.count
    }

    /// Adds a subscription, or replaces the one that the member has for the filter.
    pub(crate) fn insert(&mut self, filter: TopicFilter<'_>, subscriber: Subscriber<M>) {
        let end = self.root.end_of(filter.filter);
        self.count += usize::from(end.insert(filter.share_name, subscriber));
    }

    /// Removes a subscription; returns whether there was one.
    pub(crate) fn remove(&mut self, filter: TopicFilter<'_>, number: u64) -> bool {
        let removed = self.root.remove(filter.filter, filter.share_name, number);
        self.count -= usize::from(removed);
        removed
    }

    /// Adds the subscriptions that match a topic.
    pub(crate) fn collect(&self, topic: &str, found: &mut TopicMatches<M>) {
        let (level, below) = topic
            .split_once('/')
            .map_or((topic, None), |(level, below)| (level, Some(below)));
        self.root.collect(level, below, true, found);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use fieldline_codec::{QoS, topic};
    use proptest::prelude::*;

    use super::*;

    #[derive(Debug, Clone, Copy)]
    struct Member(u64, MemberState);

    impl TrieMember for Member {
        fn number(&self) -> u64 {
            self.0
        }
        fn state(&self) -> MemberState {
            self.1
        }
    }

    fn filter(text: &str) -> TopicFilter<'_> {
        TopicFilter::parse(text).expect("a filter")
    }

    fn subscriber(number: u64, state: MemberState) -> Subscriber<Member> {
        Subscriber {
            member: Member(number, state),
            options: SubscriptionOptions::new(QoS::AtLeastOnce),
            id: 0,
        }
    }

    fn found(trie: &SubscriptionTrie<Member>, topic: &str) -> (Vec<u64>, Vec<u64>) {
        let mut found = TopicMatches::default();
        trie.collect(topic, &mut found);
        let numbers = |all: Vec<Subscriber<Member>>| {
            let mut numbers: Vec<_> = all.iter().map(|one| one.member.0).collect();
            numbers.sort_unstable();
            numbers
        };
        (numbers(found.own), numbers(found.shared))
    }

    #[test]
    fn a_group_gives_each_message_to_one_member_and_to_one_that_is_there() {
        let mut trie = SubscriptionTrie::default();
        for (number, state) in [
            (1, MemberState::Connected),
            (2, MemberState::Away),
            (3, MemberState::Connected),
            (4, MemberState::Gone),
        ] {
            trie.insert(filter("$share/g/a/+"), subscriber(number, state));
        }
        let chosen: Vec<_> = (0..8).flat_map(|_| found(&trie, "a/b").1).collect();
        assert_eq!(chosen.len(), 8);
        assert!(chosen.contains(&1) && chosen.contains(&3) && !chosen.contains(&2));
        for number in [1, 3] {
            assert!(trie.remove(filter("$share/g/a/+"), number));
        }
        assert_eq!(found(&trie, "a/b").1, [2]);
        assert!(trie.remove(filter("$share/g/a/+"), 2));
        assert_eq!(found(&trie, "a/b"), (vec![], vec![]));
    }

    #[test]
    fn a_group_gives_nothing_to_a_member_that_is_crowded_while_another_has_room() {
        let mut trie = SubscriptionTrie::default();
        let mut insert = |number, state| trie.insert(filter("$share/g/a"), subscriber(number, state));
        insert(1, MemberState::Crowded);
        insert(2, MemberState::Crowded);
        insert(3, MemberState::Away);
        insert(4, MemberState::Connected);
        let rivals = |trie: &SubscriptionTrie<Member>| {
            let mut found = TopicMatches::default();
            trie.collect("a", &mut found);
            let both = found.shared.iter().chain(&found.rivals).map(|one| one.member.0);
            both.collect::<BTreeSet<_>>()
        };
        for _ in 0..8 {
            assert_eq!(rivals(&trie), BTreeSet::from([4]));
        }
        assert!(trie.remove(filter("$share/g/a"), 4));
        assert_eq!(rivals(&trie), BTreeSet::from([1, 2]), "whoever has room first");
    }

    fn texts(levels: &'static [&'static str]) -> impl Strategy<Value = String> {
        prop::collection::vec(prop::sample::select(levels), 1..5).prop_map(|levels| levels.join("/"))
    }

    proptest! {
        #[test]
        fn the_trie_finds_what_the_definition_of_a_match_says(
            filters in prop::collection::vec(texts(&["a", "b", "", "+", "$s", "#"]), 1..20),
            gone in prop::collection::vec(any::<bool>(), 20),
            topics in prop::collection::vec(texts(&["a", "b", "", "$s", "c"]), 1..20),
        ) {
            let mut trie = SubscriptionTrie::default();
            let mut kept = Vec::new();
            for (number, text) in filters.iter().enumerate() {
                if let Ok(filter) = TopicFilter::parse(text) {
                    trie.insert(filter, subscriber(number as u64, MemberState::Connected));
                    kept.push((number as u64, text.as_str()));
                }
            }
            kept.retain(|(number, text)| {
                let goes = gone.get(*number as usize).copied().unwrap_or(false);
                assert!(!goes || trie.remove(filter(text), *number));
                !goes
            });
            for name in &topics {
                let expected: Vec<u64> = kept
                    .iter()
                    .filter(|(_, filter)| topic::matches(filter, name))
                    .map(|(number, _)| *number)
                    .collect();
                prop_assert_eq!(found(&trie, name).0, expected);
            }
            for (number, text) in kept {
                assert!(trie.remove(filter(text), number));
            }
            prop_assert!(trie.root.is_empty());
            prop_assert_eq!(trie.count(), 0);
        }
    }
}
