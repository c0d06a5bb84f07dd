//! The clients that a load consists of.

use std::collections::HashMap;
use std::ops::Range;

use super::client::{ClientRole, PubSubClient};
use super::config::PubSubConfig;
use super::receipts::ReceiptLedger;

/// The clients of a load, subscribers first, then publishers, then those that do nothing; and the ledgers of the
/// subscribers.
pub(super) fn clients_of(config: &PubSubConfig) -> (Vec<PubSubClient>, Vec<ReceiptLedger>) {
    let mut clients = Vec::with_capacity(config.clients() as usize);
    let mut ledgers = Vec::new();
    let mut first = 0;
    let numbers: HashMap<i32, Range<u32>> = config
        .publisher_groups
        .iter()
        .map(|group| {
            let range = first..first + group.publishers;
            first = range.end;
            (group.id, range)
        })
        .collect();
    // Whoever shares a subscription receives together, in whatever group it is.
    let mut shared: HashMap<&str, u32> = HashMap::new();
    for group in &config.subscriber_groups {
        let expected = || {
            let ids = group.expected_publisher_groups.iter();
            ids.filter_map(|id| numbers.get(id).cloned())
        };
        for index in 0..group.subscribers {
            let mut add = || {
                ledgers.push(ReceiptLedger::new(expected()));
                ledgers.len() as u32 - 1
            };
            let ledger = match group.is_shared() {
                true => *shared.entry(&group.topic_filter).or_insert_with(add),
                false => add(),
            };
            let role = ClientRole::Subscriber {
                ledger,
                is_persistent: group.persistent_session_info.is_some(),
            };
            let id = group.client_id(index);
            let filter = group.topic_filter.clone();
            clients.push(PubSubClient::new(role, id, filter, !group.are_applications()));
        }
    }
    let mut publisher = 0;
    for group in &config.publisher_groups {
        for index in 0..group.publishers {
            let role = ClientRole::Publisher(publisher);
            publisher += 1;
            clients.push(PubSubClient::new(
                role,
                group.client_id(index),
                group.topic(index),
                true,
            ));
        }
    }
    for index in 0..config.dummy_clients {
        let id = format!("test_dummy_client_{index}");
        clients.push(PubSubClient::new(ClientRole::Dummy, id, String::new(), true));
    }
    (clients, ledgers)
}
