//! What a load of publishers and subscribers consists of, in the JSON of ThingsBoard's `tb-mqtt-perf-tests`.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use fieldline_codec::QoS;
use fieldline_codec::topic::{TopicFilter, is_valid_name};
use serde::{Deserialize, Serialize};

use crate::error::{LoadError, LoadResult};

/// Publishers of a group have so many topics; further ones begin with the first topic again.
const MOST_TOPICS: u32 = 25_000;
/// Most clients of a load.
pub(super) const MOST_CLIENTS: u64 = 1_000_000;
/// Most pairs of a subscriber and a publisher that it expects messages of.
const MOST_PAIRS: u64 = 5_000_000;
/// Most messages that a subscriber can be expected to receive from a publisher.
const MOST_MESSAGES: f64 = 16_000_000.0;
/// Largest payload, bytes.
const LARGEST_PAYLOAD: usize = 64 << 20;
/// Longest load, seconds.
const LONGEST: f64 = 604_800.0;
/// Longest telemetry keys of a payload together, and longest topic, bytes.
const LONGEST_TEXT: usize = 60_000;

/// A load of publishers and subscribers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct PubSubConfig {
    /// Those who publish.
    pub(super) publisher_groups: Vec<PublisherGroup>,
    /// Those who subscribe.
    pub(super) subscriber_groups: Vec<SubscriberGroup>,
    /// Connections that do nothing.
    #[serde(default)]
    pub(super) dummy_clients: u32,
    /// For how long messages are published.
    pub(super) seconds_to_run: f64,
    /// How long nothing may arrive before messages that have not arrived count as lost, seconds.
    #[serde(default)]
    pub(super) additional_seconds_to_wait: f64,
    /// Messages a second of each publisher.
    #[serde(rename = "maxMsgsPerPublisherPerSecond")]
    pub(super) rate: f64,
    /// QoS of what is published.
    #[serde(rename = "publisherQosValue")]
    pub(super) publisher_qos: u8,
    /// QoS of the subscriptions.
    #[serde(rename = "subscriberQosValue")]
    pub(super) subscriber_qos: u8,
    /// Least bytes of a payload.
    pub(super) min_payload_size: usize,
    /// Keys that a payload begins with, each with a number.
    #[serde(default)]
    pub(super) telemetry_keys: Option<Vec<String>>,
    /// Clients that are connected at a time.
    #[serde(rename = "maxConcurrentOperations")]
    pub(super) opening: usize,
    /// When subscribers are there.
    #[serde(skip)]
    pub(super) mode: PubSubMode,
}

/// When subscribers are there.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum PubSubMode {
    /// While messages are published.
    #[default]
    Live,
    /// Before and after messages are published: they are kept for their sessions.
    Offline,
    /// After messages are published, each to a topic of its own, which retains it. A publisher publishes this many.
    Retained(u32),
}

/// Clients that publish, each to a topic of its own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct PublisherGroup {
    /// Number by which subscribers name the group.
    pub(super) id: i32,
    /// How many they are.
    pub(super) publishers: u32,
    /// What the topics begin with; the number of the publisher follows.
    pub(super) topic_prefix: String,
    /// What the client identifiers begin with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) client_id_prefix: Option<String>,
    /// Read and without effect: figures of single clients are not told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) is_debug_enabled: Option<bool>,
}

/// Clients with the same subscription.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct SubscriberGroup {
    /// Number of the group.
    pub(super) id: i32,
    /// How many they are.
    pub(super) subscribers: u32,
    /// Their topic filter. Those with a shared one get each message once together.
    pub(super) topic_filter: String,
    /// The groups of publishers whose messages they have to receive.
    pub(super) expected_publisher_groups: Vec<i32>,
    /// Their persistent session, if they have one.
    #[serde(default)]
    pub(super) persistent_session_info: Option<PersistentSessionInfo>,
    /// What the client identifiers begin with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) client_id_prefix: Option<String>,
    /// Read and without effect: figures of single clients are not told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) is_debug_enabled: Option<bool>,
}

/// A session that outlives its connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct PersistentSessionInfo {
    /// What TBMQ takes the client for.
    pub(super) client_type: PersistentClientType,
}

/// What TBMQ takes a client with a persistent session for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub(super) enum PersistentClientType {
    /// One of many, with few messages.
    Device,
    /// One of few, with many messages.
    Application,
}

impl PublisherGroup {
    /// The identifier of one of the clients.
    pub(super) fn client_id(&self, index: u32) -> String {
        match &self.client_id_prefix {
            Some(prefix) => format!("{prefix}{index}"),
            None => format!("test_pub_client_{}_{index}", self.id),
        }
    }

    /// The topic of one of the clients.
    pub(super) fn topic(&self, index: u32) -> String {
        format!("{}{}", self.topic_prefix, index % MOST_TOPICS)
    }
}

impl SubscriberGroup {
    /// The identifier of one of the clients.
    pub(super) fn client_id(&self, index: u32) -> String {
        match &self.client_id_prefix {
            Some(prefix) => format!("{prefix}{index}"),
            None => format!("test_sub_client_{}_{index}", self.id),
        }
    }

    /// Whether they receive each message once together.
    pub(super) fn is_shared(&self) -> bool {
        self.topic_filter.starts_with("$share/")
    }

    /// Whether TBMQ takes them for applications.
    pub(super) fn are_applications(&self) -> bool {
        self.persistent_session_info
            .is_some_and(|info| info.client_type == PersistentClientType::Application)
    }
}

impl PubSubConfig {
    /// Reads a file of `tb-mqtt-perf-tests`.
    ///
    /// # Errors
    /// The file cannot be read, or is no such load.
    pub(super) fn read(path: &Path) -> LoadResult<Self> {
        let text = std::fs::read(path).map_err(|error| LoadError::Io {
            path: path.to_owned(),
            error,
        })?;
        serde_json::from_slice(&text)
            .map_err(|error| LoadError::InvalidOption(format!("--config {}: {error}", path.display())))
    }

    /// How many clients publish.
    pub(super) fn publishers(&self) -> u64 {
        self.publisher_groups
            .iter()
            .map(|group| u64::from(group.publishers))
            .sum()
    }

    /// How many clients subscribe.
    pub(super) fn subscribers(&self) -> u64 {
        self.subscriber_groups
            .iter()
            .map(|group| u64::from(group.subscribers))
            .sum()
    }

    /// All clients.
    pub(super) fn clients(&self) -> u64 {
        self.publishers() + self.subscribers() + u64::from(self.dummy_clients)
    }

    /// The QoS of what is published and of the subscriptions.
    pub(super) fn qos(&self) -> (QoS, QoS) {
        let of = |value| QoS::from_u8(value).unwrap_or(QoS::ExactlyOnce);
        (of(self.publisher_qos), of(self.subscriber_qos))
    }

    /// Checks that the load is one that can be run.
    ///
    /// # Errors
    /// It says what is wrong.
    pub(super) fn check(&self) -> LoadResult<()> {
        let fails = |what: String| Err(LoadError::InvalidOption(what));
        if self.publishers() == 0 {
            return fails("there is no publisher".to_owned());
        }
        if self.clients() > MOST_CLIENTS {
            return fails(format!("{} clients are more than {MOST_CLIENTS}", self.clients()));
        }
        if !(self.seconds_to_run > 0.0 && self.seconds_to_run <= LONGEST) {
            return fails(format!("a load of {} s cannot be run", self.seconds_to_run));
        }
        if !(0.0..=LONGEST).contains(&self.additional_seconds_to_wait) {
            return fails(format!("cannot wait for {} s", self.additional_seconds_to_wait));
        }
        if !(self.rate > 0.0 && self.rate * self.seconds_to_run <= MOST_MESSAGES) {
            return fails(format!(
                "{} messages a second of each publisher are none, or too many to be counted one by one",
                self.rate
            ));
        }
        if self.publisher_qos > 2 || self.subscriber_qos > 2 {
            return fails("a QoS is 0, 1 or 2".to_owned());
        }
        if self.min_payload_size > LARGEST_PAYLOAD {
            return fails(format!("payloads are at most {LARGEST_PAYLOAD} bytes"));
        }
        let keys = self.telemetry_keys.iter().flatten().map(String::len);
        if keys.sum::<usize>() > LONGEST_TEXT {
            return fails(format!(
                "telemetry keys are at most {LONGEST_TEXT} bytes together"
            ));
        }
        self.check_groups()
    }

    fn check_groups(&self) -> LoadResult<()> {
        let fails = |what: String| Err(LoadError::InvalidOption(what));
        let mut publishers = HashMap::new();
        for group in &self.publisher_groups {
            if publishers.insert(group.id, group).is_some() {
                return fails(format!("publisher group {} is there twice", group.id));
            }
            if !is_valid_name(&group.topic(0)) || group.topic_prefix.len() > LONGEST_TEXT {
                return fails(format!(
                    "publisher group {}: '{}' is no topic",
                    group.id,
                    group.topic(0)
                ));
            }
        }
        let mut ids = HashSet::new();
        let mut pairs = 0;
        for group in &self.subscriber_groups {
            if !ids.insert(group.id) {
                return fails(format!("subscriber group {} is there twice", group.id));
            }
            let filter = TopicFilter::parse(&group.topic_filter).map_err(|error| {
                LoadError::InvalidOption(format!("subscriber group {}: {error}", group.id))
            })?;
            for id in &group.expected_publisher_groups {
                let Some(expected) = publishers.get(id) else {
                    return fails(format!(
                        "subscriber group {} expects publisher group {id}, which is not there",
                        group.id
                    ));
                };
                let topic = match self.mode {
                    PubSubMode::Retained(_) => format!("{}/0", expected.topic(0)),
                    PubSubMode::Live | PubSubMode::Offline => expected.topic(0),
                };
                if !filter.matches(&topic) {
                    return fails(format!(
                        "subscriber group {} expects publisher group {id}, whose topics its filter '{}' does not match",
                        group.id, group.topic_filter
                    ));
                }
                let receivers = if group.is_shared() { 1 } else { group.subscribers };
                pairs += u64::from(receivers) * u64::from(expected.publishers);
            }
        }
        if pairs > MOST_PAIRS {
            return fails(format!(
                "{pairs} pairs of a subscriber and a publisher that it expects are more than {MOST_PAIRS}"
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The shape of the tool's own files.
    const FILE: &str = r#"{
        "publisherGroups": [{"id": 1, "publishers": 20, "topicPrefix": "a/1/", "clientIdPrefix": null}],
        "subscriberGroups": [
            {"id": 1, "subscribers": 2, "topicFilter": "a/+/#", "expectedPublisherGroups": [1],
             "persistentSessionInfo": {"clientType": "APPLICATION"}, "clientIdPrefix": "s", "isDebugEnabled": false},
            {"id": 2, "subscribers": 1, "topicFilter": "$share/g/a/1/+", "expectedPublisherGroups": [1],
             "persistentSessionInfo": null}
        ],
        "dummyClients": 3, "secondsToRun": 30, "additionalSecondsToWait": 10, "maxMsgsPerPublisherPerSecond": 5,
        "publisherQosValue": 1, "subscriberQosValue": 1, "minPayloadSize": 256, "telemetryKeys": ["lat", "long"],
        "maxConcurrentOperations": 100
    }"#;

    fn load() -> PubSubConfig {
        serde_json::from_str(FILE).unwrap()
    }

    #[test]
    fn a_file_of_the_tool_is_read() {
        let load = load();
        load.check().unwrap();
        assert_eq!(
            (load.publishers(), load.subscribers(), load.clients()),
            (20, 3, 26)
        );
        let [own, shared] = load.subscriber_groups.as_slice() else {
            panic!("two groups")
        };
        assert_eq!((own.client_id(1), own.is_shared()), ("s1".to_owned(), false));
        assert!(own.are_applications() && shared.is_shared());
        let publishers = load.publisher_groups.first().unwrap();
        assert_eq!(publishers.client_id(0), "test_pub_client_1_0");
        assert_eq!(
            [publishers.topic(7), publishers.topic(25_001)],
            ["a/1/7", "a/1/1"]
        );
        let unknown = FILE.replace("dummyClients", "dummies");
        assert!(serde_json::from_str::<PubSubConfig>(&unknown).is_err());
    }

    #[test]
    fn a_load_that_cannot_be_run_says_why() {
        let refused = |change: fn(&mut PubSubConfig), why: &str| {
            let mut load = load();
            change(&mut load);
            let error = load.check().unwrap_err().to_string();
            assert!(error.contains(why), "{error}");
        };
        refused(|load| load.publisher_groups.clear(), "no publisher");
        refused(|load| load.rate = 0.0, "are none");
        refused(|load| load.seconds_to_run = f64::NAN, "cannot be run");
        refused(|load| load.publisher_qos = 3, "0, 1 or 2");
        refused(|load| load.dummy_clients = 2_000_000, "more than 1000000");
        refused(
            |load| load.subscriber_groups[0].topic_filter = "a/#/b".to_owned(),
            "subscriber group 1",
        );
        refused(
            |load| load.subscriber_groups[1].expected_publisher_groups = vec![7],
            "expects publisher group 7",
        );
        refused(
            |load| load.subscriber_groups[1].topic_filter = "b/#".to_owned(),
            "does not match",
        );
        refused(
            |load| load.subscriber_groups[1].id = 1,
            "subscriber group 1 is there twice",
        );
        refused(
            |load| load.subscriber_groups[0].subscribers = 900_000,
            "more than 5000000",
        );
    }
}
