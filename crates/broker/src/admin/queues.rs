//! The queues of the broker as topics with consumers, under the names that TBMQ gives those of its Kafka.

use std::sync::Arc;

use async_trait::async_trait;
use fieldline_core::ports::{
    BrokerAdminError, BrokerAdminResult, BrokerClientType, BrokerConsumerGroup, BrokerNode, BrokerQueueAdmin,
    BrokerQueueTopic, BrokerTable, StoreError,
};
use fieldline_model::page::{PageData, PageLink};

use super::lists::{KnownOrder, each_session, sought};
use super::{BrokerAdministration, queued, wrong_filter};
use crate::broker::Broker;
use crate::options::BrokerAccess;
use crate::paging::{PageBuilder, RowOrder, has};
use crate::queue::row_key;
use crate::server::QUEUE;
use crate::session::BrokerSession;

/// Begins the names of the queues of clients.
const TOPIC_PREFIX: &str = "tbmq.msg.app.";
/// Begins the names of clients as consumers of their queues.
const GROUP_PREFIX: &str = "application-persisted-msg-consumer-group-";
/// Stored messages of a queue that are measured, and bytes of them; further ones are taken for as large. A queue may have
/// millions, and while they are read, nothing is written.
const MAX_MEASURED: u64 = 100;
const MAX_MEASURED_BYTES: u64 = 1 << 20;
/// Bytes that are read for one list.
const MAX_LIST_BYTES: u64 = 64 << 20;

/// A queue, and the session that it belongs to if it is not the journal.
type TopicRow = (BrokerQueueTopic, Option<Arc<BrokerSession>>);

fn unavailable(error: StoreError) -> BrokerAdminError {
    BrokerAdminError::Unavailable(error.to_string())
}

/// Whether the queue of a session is one of those that TBMQ keeps in Kafka.
fn has_topic(session: &BrokerSession) -> bool {
    let client_type = session.lock().client_type;
    client_type == BrokerClientType::Application && session.is_persistent()
}

/// Bytes of what is in the queue of a session; `budget` says how many more may be read.
fn queue_bytes(broker: &Broker, session: &BrokerSession, budget: &mut u64) -> BrokerAdminResult<u64> {
    let (present, range, count) = {
        let inner = session.lock();
        let present = inner.queue.waiting_bytes() + inner.queue.sent_bytes() + inner.direct_bytes;
        let (range, count) = inner.queue.stored();
        (present as u64, range.clone(), count)
    };
    if count == 0 {
        return Ok(present);
    }
    let first = row_key(session.number, range.start);
    let end = row_key(session.number, range.end);
    let (mut rows, mut bytes) = (0_u64, 0_u64);
    let mut measure = |_: &[u8], row: &[u8]| {
        rows += 1;
        bytes += row.len() as u64;
        rows < MAX_MEASURED && bytes < MAX_MEASURED_BYTES
    };
    let keys = first.as_slice()..end.as_slice();
    let scanned = broker.store.scan(BrokerTable::Queued, keys, &mut measure);
    scanned.map_err(unavailable)?;
    *budget = budget.checked_sub(bytes).ok_or_else(|| {
        BrokerAdminError::Invalid(
            "Too much to measure: ask for smaller pages, in another order than by size".to_owned(),
        )
    })?;
    if rows == MAX_MEASURED || bytes >= MAX_MEASURED_BYTES {
        bytes = bytes.saturating_mul(count.max(rows)) / rows;
    }
    Ok(present + bytes)
}

fn group_of(session: &BrokerSession) -> BrokerConsumerGroup {
    let inner = session.lock();
    BrokerConsumerGroup {
        name: format!("{GROUP_PREFIX}{}", session.client_id),
        members: u32::from(inner.link.is_some()),
        lag: queued(&inner),
    }
}

/// What stores the records of the journal: those that it has yet to store wait for it.
fn journal_group(broker: &Broker) -> BrokerAdminResult<BrokerConsumerGroup> {
    let stored = broker.store.position().map_err(unavailable)?;
    let end = broker.journal.end(broker.partition);
    Ok(BrokerConsumerGroup {
        name: QUEUE.to_owned(),
        members: 1,
        lag: broker
            .journal
            .records_between(broker.partition, stored.unwrap_or_default(), end),
    })
}

fn topic_order(property: &str) -> KnownOrder<TopicRow> {
    let order: RowOrder<TopicRow> = match property {
        // Each has one partition, and is there once.
        "name" | "partitions" | "replicationFactor" => return Some(None),
        "size" => |one, other| one.0.bytes.cmp(&other.0.bytes),
        _ => return None,
    };
    Some(Some(order))
}

fn topics(broker: &Broker, link: PageLink) -> BrokerAdminResult<PageData<BrokerQueueTopic>> {
    let text = sought(link.text_search.as_deref());
    let is_by_size = link.sort_property.as_deref() == Some("size");
    let by_name: RowOrder<TopicRow> = |one, other| one.0.name.cmp(&other.0.name);
    let mut page = PageBuilder::new(link, topic_order, by_name)?;
    if has(text.as_ref(), QUEUE) {
        let topic = BrokerQueueTopic {
            name: QUEUE.to_owned(),
            bytes: broker.journal.disk_bytes().unwrap_or_default(),
        };
        page.offer(|| (topic, None));
    }
    let (mut failure, mut budget) = (None, MAX_LIST_BYTES);
    each_session(broker, |session| {
        if failure.is_some() || !has_topic(session) {
            return;
        }
        let name = format!("{TOPIC_PREFIX}{}", session.client_id);
        if !has(text.as_ref(), &name) {
            return;
        }
        let measured = match is_by_size {
            true => queue_bytes(broker, session, &mut budget),
            false => Ok(0),
        };
        match measured {
            Ok(bytes) => page.offer(|| (BrokerQueueTopic { name, bytes }, Some(session.clone()))),
            Err(error) => failure = Some(error),
        }
    });
    if let Some(failure) = failure {
        return Err(failure);
    }
    let mut page = page.finish();
    // Where the order does not need the sizes of all, only those that are shown are measured.
    if !is_by_size {
        for (topic, session) in &mut page.data {
            if let Some(session) = session {
                topic.bytes = queue_bytes(broker, session, &mut budget)?;
            }
        }
    }
    Ok(page.map(|(topic, _)| topic))
}

fn group_order(property: &str) -> KnownOrder<BrokerConsumerGroup> {
    let order: RowOrder<BrokerConsumerGroup> = match property {
        "groupId" => return Some(None),
        // By name: `Empty` comes before `Stable`.
        "state" | "members" => |one, other| one.members.cmp(&other.members),
        "lag" => |one, other| one.lag.cmp(&other.lag),
        _ => return None,
    };
    Some(Some(order))
}

fn groups(broker: &Broker, link: PageLink) -> BrokerAdminResult<PageData<BrokerConsumerGroup>> {
    let text = sought(link.text_search.as_deref());
    let by_name: RowOrder<BrokerConsumerGroup> = |one, other| one.name.cmp(&other.name);
    let mut page = PageBuilder::new(link, group_order, by_name)?;
    each_session(broker, |session| {
        if has_topic(session) {
            let group = group_of(session);
            if has(text.as_ref(), &group.name) {
                page.offer(|| group);
            }
        }
    });
    if has(text.as_ref(), QUEUE) {
        let group = journal_group(broker)?;
        page.offer(|| group);
    }
    Ok(page.finish())
}

#[async_trait]
impl BrokerQueueAdmin for BrokerAdministration {
    fn node(&self) -> BrokerNode {
        let options = &self.broker.options;
        BrokerNode {
            ports: *self.broker.ports.lock(),
            max_packet: options.max_packet.0,
            asks_providers: options.access == BrokerAccess::Credentials,
        }
    }

    fn check_filter(&self, filter: &str) -> BrokerAdminResult<()> {
        match self.broker.parsed(filter)?.share_name {
            None => Ok(()),
            Some(_) => Err(wrong_filter(filter, "it has a share name")),
        }
    }

    async fn disk_bytes(&self) -> BrokerAdminResult<u64> {
        self.list(|broker| {
            let stored = broker.store.disk_bytes().map_err(unavailable)?;
            Ok(stored + broker.journal.disk_bytes().unwrap_or_default())
        })
        .await
    }

    async fn queue_topics(&self, link: PageLink) -> BrokerAdminResult<PageData<BrokerQueueTopic>> {
        self.list(move |broker| topics(broker, link)).await
    }

    async fn consumer_groups(&self, link: PageLink) -> BrokerAdminResult<PageData<BrokerConsumerGroup>> {
        self.list(move |broker| groups(broker, link)).await
    }

    async fn consumer_group(&self, name: &str) -> BrokerAdminResult<Option<BrokerConsumerGroup>> {
        if name == QUEUE {
            return self.list(|broker| journal_group(broker).map(Some)).await;
        }
        let client_id = name.strip_prefix(GROUP_PREFIX);
        let session = client_id.and_then(|client_id| self.broker.session_of(client_id));
        Ok(session
            .filter(|session| has_topic(session))
            .map(|session| group_of(&session)))
    }
}

#[cfg(test)]
mod tests {
    use fieldline_codec::QoS;
    use fieldline_model::page::SortOrder;

    use super::*;
    use crate::options::Options;
    use crate::testing::BrokerFixture;

    fn sorted(property: &str, order: SortOrder) -> PageLink {
        PageLink {
            sort_property: Some(property.to_owned()),
            sort_order: Some(order),
            ..PageLink::first(10)
        }
    }

    fn named(groups: &[BrokerConsumerGroup]) -> Vec<(&str, u32, u64)> {
        let parts = groups.iter().map(|group| {
            let name = group.name.strip_prefix(GROUP_PREFIX).unwrap_or(&group.name);
            (name, group.members, group.lag)
        });
        parts.collect()
    }

    #[tokio::test]
    async fn queues_of_applications_are_topics_with_a_consumer() {
        let fixture = BrokerFixture::new(Options::default());
        fixture.open_away("app-away", "a", 1).await;
        fixture.open_away("device", "a", 1).await;
        fixture.open("app-here", 60);
        fixture.open("app-clean", 0);
        for payload in [&[1_u8; 100], &[2; 100]] {
            fixture.publish("a", payload, QoS::AtLeastOnce);
        }
        let page = fixture
            .admin
            .queue_topics(PageLink::first(10))
            .await
            .expect("a page");
        let names: Vec<&str> = page.data.iter().map(|topic| topic.name.as_str()).collect();
        assert_eq!(
            names,
            ["broker", "tbmq.msg.app.app-away", "tbmq.msg.app.app-here"]
        );
        assert!(page.data[1].bytes >= 200, "{page:?}");
        assert_eq!(page.data[2].bytes, 0);

        let link = PageLink {
            text_search: Some("APP-".to_owned()),
            ..sorted("size", SortOrder::Desc)
        };
        let by_size = fixture.admin.queue_topics(link).await.expect("a page");
        assert_eq!(by_size.data, [page.data[1].clone(), page.data[2].clone()]);
        let unknown = fixture.admin.queue_topics(sorted("colour", SortOrder::Asc)).await;
        assert!(
            matches!(unknown, Err(BrokerAdminError::Invalid(_))),
            "{unknown:?}"
        );

        let link = PageLink {
            text_search: Some("application".to_owned()),
            ..sorted("lag", SortOrder::Desc)
        };
        let groups = fixture.admin.consumer_groups(link).await.expect("a page");
        assert_eq!(named(&groups.data), [("app-away", 0, 2), ("app-here", 1, 0)]);
        let groups = fixture
            .admin
            .consumer_groups(sorted("state", SortOrder::Desc))
            .await;
        let groups = groups.expect("a page");
        let names: Vec<&str> = named(&groups.data).iter().map(|group| group.0).collect();
        assert_eq!(names, ["app-here", "broker", "app-away"]);
        for (name, is_there) in [
            ("broker".to_owned(), true),
            (format!("{GROUP_PREFIX}app-here"), true),
            (format!("{GROUP_PREFIX}device"), false),
            ("app-here".to_owned(), false),
        ] {
            let found = fixture.admin.consumer_group(&name).await.expect("an answer");
            assert_eq!(found.map(|group| group.name), is_there.then_some(name));
        }
        assert!(fixture.admin.disk_bytes().await.expect("a size") > 0);
    }

    #[tokio::test]
    async fn filters_are_those_that_clients_may_subscribe_to() {
        let fixture = BrokerFixture::new(Options {
            refused_filters: vec!["#".to_owned()],
            max_topic_levels: 3,
            ..Options::default()
        });
        for filter in ["a", "a/+/#", "$SYS/a"] {
            assert_eq!(fixture.admin.check_filter(filter), Ok(()));
        }
        for filter in ["", "a#", "a/#/b", "#", "a/b/c/d", "$share/g/a"] {
            let checked = fixture.admin.check_filter(filter);
            assert!(matches!(checked, Err(BrokerAdminError::Invalid(_))), "{filter}");
        }
    }

    #[tokio::test]
    async fn messages_in_the_store_count_as_those_in_memory() {
        let fixture = BrokerFixture::new(Options::default());
        let away = fixture.open_away("app", "a", 1).await;
        for _ in 0..3 * MAX_MEASURED {
            fixture.publish("a", &[1; 1_000], QoS::AtLeastOnce);
        }
        fixture.checkpoint();
        away.session.lock().queue.release(0, 0);
        assert_eq!(away.session.lock().queue.stored().1, 3 * MAX_MEASURED);
        let page = fixture
            .admin
            .queue_topics(PageLink::first(10))
            .await
            .expect("a page");
        let bytes = page.data[1].bytes;
        let mut budget = 1_000;
        let measured = queue_bytes(&fixture.broker, &away.session, &mut budget);
        assert!(
            matches!(measured, Err(BrokerAdminError::Invalid(_))),
            "{measured:?}"
        );
        assert!((300_000..360_000).contains(&bytes), "{bytes} bytes");
    }
}
