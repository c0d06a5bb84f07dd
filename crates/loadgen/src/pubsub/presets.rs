//! Loads with a name.

use super::config::{
    MOST_CLIENTS, PersistentClientType, PersistentSessionInfo, PubSubConfig, PubSubMode, PublisherGroup,
    SubscriberGroup,
};
use crate::cli::PointToPointArgs;

/// A load with a name.
pub(super) struct PubSubPreset {
    pub(super) name: &'static str,
    pub(super) what: &'static str,
    load: fn() -> PubSubConfig,
}

/// All loads with a name.
pub(super) const PRESETS: [PubSubPreset; 6] = [
    PubSubPreset {
        name: "p2p",
        what: "100 pairs of a publisher and a subscriber, as tb-mqtt-perf-tests without a file: QoS 0, 1 message/s each",
        load: p2p,
    },
    PubSubPreset {
        name: "fan-in",
        what: "1,000 publishers to one subscriber, QoS 1, 10 messages/s each",
        load: || many(1_000, 1, 10.0),
    },
    PubSubPreset {
        name: "fan-out",
        what: "one publisher to 1,000 subscribers, QoS 1, 50 messages/s",
        load: || many(1, 1_000, 50.0),
    },
    PubSubPreset {
        name: "tbmq-1m",
        what: "TBMQ's published load, 16,700 messages/s over a million sessions of 10 groups, scaled to 15,000 publishers and 10 applications, QoS 1",
        load: tbmq_1m,
    },
    PubSubPreset {
        name: "retained",
        what: "100 publishers retain 100 messages each, then 10 subscribers ask for all of them",
        load: retained,
    },
    PubSubPreset {
        name: "offline",
        what: "100 pairs with persistent sessions, QoS 1, whose subscribers are away while 10 messages/s each are published",
        load: offline,
    },
];

/// The load of a name, with its clients scaled.
pub(super) fn find(name: &str, scale: f64, p2p: &PointToPointArgs) -> Option<PubSubConfig> {
    let preset = PRESETS.iter().find(|preset| preset.name == name)?;
    let mut load = (preset.load)();
    if name == "p2p" {
        adapt(&mut load, p2p);
    }
    let scaled = |count: u32| match count {
        0 | 1 => count,
        count => (f64::from(count) * scale).round().clamp(1.0, f64::from(u32::MAX)) as u32,
    };
    // Groups of one client stand for the number of groups.
    let groups = load.publisher_groups.len() as u32;
    if groups > 1 && load.publisher_groups.iter().all(|group| group.publishers == 1) {
        let kept = scaled(groups) as usize;
        load = pairs_like(&load, kept);
    }
    for group in &mut load.publisher_groups {
        group.publishers = scaled(group.publishers);
    }
    for group in &mut load.subscriber_groups {
        group.subscribers = scaled(group.subscribers);
    }
    load.dummy_clients = scaled(load.dummy_clients);
    Some(load)
}

/// The load of `p2p` with other numbers, where some are named.
fn adapt(load: &mut PubSubConfig, with: &PointToPointArgs) {
    if let Some(pairs) = with.pairs {
        *load = pairs_like(load, pairs as usize);
    }
    set(&mut load.seconds_to_run, with.default_seconds);
    set(&mut load.additional_seconds_to_wait, with.default_wait);
    set(&mut load.dummy_clients, with.default_dummies);
    set(&mut load.rate, with.default_rate);
    set(&mut load.publisher_qos, with.default_publisher_qos);
    set(&mut load.subscriber_qos, with.default_subscriber_qos);
    set(&mut load.min_payload_size, with.default_payload);
    set(&mut load.opening, with.default_opening);
}

/// Sets a value where another one is named.
pub(super) fn set<T>(value: &mut T, other: Option<T>) {
    if let Some(other) = other {
        *value = other;
    }
}

fn base() -> PubSubConfig {
    PubSubConfig {
        publisher_groups: Vec::new(),
        subscriber_groups: Vec::new(),
        dummy_clients: 0,
        seconds_to_run: 30.0,
        additional_seconds_to_wait: 10.0,
        rate: 1.0,
        publisher_qos: 1,
        subscriber_qos: 1,
        min_payload_size: 256,
        telemetry_keys: None,
        opening: 1_000,
        mode: PubSubMode::Live,
    }
}

fn publishers(id: i32, publishers: u32, topic_prefix: String) -> PublisherGroup {
    PublisherGroup {
        id,
        publishers,
        topic_prefix,
        client_id_prefix: None,
        is_debug_enabled: None,
    }
}

fn subscribers(
    id: i32,
    subscribers: u32,
    topic_filter: String,
    client_type: Option<PersistentClientType>,
) -> SubscriberGroup {
    SubscriberGroup {
        id,
        subscribers,
        topic_filter,
        expected_publisher_groups: vec![id],
        persistent_session_info: client_type.map(|client_type| PersistentSessionInfo { client_type }),
        client_id_prefix: None,
        is_debug_enabled: None,
    }
}

/// So many pairs, each a publisher of one group and a subscriber of another; of too many as many as are refused.
fn pairs(count: usize) -> PubSubConfig {
    let ids = 0..count.min(MOST_CLIENTS as usize) as i32;
    PubSubConfig {
        publisher_groups: ids
            .clone()
            .map(|id| publishers(id, 1, format!("europe/ua/kyiv/{id}/")))
            .collect(),
        subscriber_groups: ids
            .map(|id| {
                let filter = format!("europe/ua/kyiv/{id}/+");
                subscribers(id, 1, filter, Some(PersistentClientType::Device))
            })
            .collect(),
        ..base()
    }
}

/// A load of another number of pairs.
fn pairs_like(load: &PubSubConfig, count: usize) -> PubSubConfig {
    PubSubConfig {
        publisher_groups: Vec::new(),
        subscriber_groups: Vec::new(),
        ..load.clone()
    }
    .with_groups_of(pairs(count))
}

impl PubSubConfig {
    fn with_groups_of(self, other: Self) -> Self {
        Self {
            publisher_groups: other.publisher_groups,
            subscriber_groups: other.subscriber_groups,
            ..self
        }
    }
}

fn p2p() -> PubSubConfig {
    PubSubConfig {
        publisher_qos: 0,
        subscriber_qos: 0,
        ..pairs(100)
    }
}

fn many(from: u32, to: u32, rate: f64) -> PubSubConfig {
    PubSubConfig {
        publisher_groups: vec![publishers(1, from, "bench/".to_owned())],
        subscriber_groups: vec![subscribers(1, to, "bench/+".to_owned(), None)],
        rate,
        ..base()
    }
}

fn tbmq_1m() -> PubSubConfig {
    PubSubConfig {
        publisher_groups: (1..=10)
            .map(|id| publishers(id, 1_500, format!("cities/{id}/")))
            .collect(),
        subscriber_groups: (1..=10)
            .map(|id| {
                let filter = format!("cities/{id}/+");
                subscribers(id, 1, filter, Some(PersistentClientType::Application))
            })
            .collect(),
        rate: 16_700.0 / 15_000.0,
        min_payload_size: 66,
        ..base()
    }
}

fn retained() -> PubSubConfig {
    PubSubConfig {
        publisher_groups: vec![publishers(1, 100, "retained/".to_owned())],
        subscriber_groups: vec![subscribers(1, 10, "retained/#".to_owned(), None)],
        mode: PubSubMode::Retained(100),
        rate: 100.0,
        ..base()
    }
}

fn offline() -> PubSubConfig {
    PubSubConfig {
        mode: PubSubMode::Offline,
        rate: 10.0,
        ..pairs(100)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn no_pairs() -> PointToPointArgs {
        PointToPointArgs {
            pairs: None,
            default_seconds: None,
            default_wait: None,
            default_dummies: None,
            default_rate: None,
            default_publisher_qos: None,
            default_subscriber_qos: None,
            default_payload: None,
            default_opening: None,
        }
    }

    #[test]
    fn every_preset_can_be_run_and_scaled() {
        for preset in PRESETS {
            let load = find(preset.name, 1.0, &no_pairs()).unwrap();
            load.check().expect(preset.name);
            let tenth = find(preset.name, 0.1, &no_pairs()).unwrap();
            tenth.check().expect(preset.name);
            let most = load.publishers().max(load.subscribers());
            assert_eq!(
                tenth.publishers().max(tenth.subscribers()),
                most / 10,
                "{}",
                preset.name
            );
        }
        assert!(find("none", 1.0, &no_pairs()).is_none());
    }

    #[test]
    fn the_environment_changes_point_to_point_only() {
        let named = PointToPointArgs {
            pairs: Some(7),
            default_rate: Some(3.0),
            default_publisher_qos: Some(2),
            ..no_pairs()
        };
        let load = find("p2p", 1.0, &named).unwrap();
        assert_eq!(
            (
                load.publishers(),
                load.rate,
                load.publisher_qos,
                load.subscriber_qos
            ),
            (7, 3.0, 2, 0)
        );
        assert_eq!(find("offline", 1.0, &named).unwrap().publishers(), 100);
    }
}
