//! A broker on files, without listeners, for tests.

use std::net::IpAddr;
use std::sync::Arc;

use fieldline_codec::{
    ConnectPacket, MqttProperty, MqttPropertyBuf, MqttProtocolVersion, PublishPacket, QoS,
};
use fieldline_core::clock::SystemClock;
use fieldline_core::ports::{
    BrokerAdmin as _, BrokerClientType, BrokerSubscription, Journal, JournalConsumer, Partition,
};
use fieldline_journal::EmbeddedJournal;
use fieldline_storage::broker::EmbeddedBrokerStore;
use tempfile::TempDir;

use crate::admin::BrokerAdministration;
use crate::broker::{Broker, PendingPublications};
use crate::client::ConnectionInfo;
use crate::lifecycle::{ClientEnd, OpenRequest, OpenedSession};
use crate::log::PublishedRecord;
use crate::message::BrokerMessage;
use crate::options::Options;
use crate::subscriptions::TopicMatches;

pub(crate) struct BrokerFixture {
    pub(crate) broker: Arc<Broker>,
    pub(crate) admin: BrokerAdministration,
    options: Options,
    dir: TempDir,
    /// Keeps the place of the broker in its journal.
    consumer: Option<Box<dyn JournalConsumer>>,
}

impl BrokerFixture {
    /// A broker that has never run before.
    pub(crate) fn new(options: Options) -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        let broker = open_broker(&dir, &options);
        Self {
            admin: BrokerAdministration::new(broker.clone()),
            broker,
            options,
            dir,
            consumer: None,
        }
    }

    /// The broker after a crash: what no checkpoint has stored is in the journal alone.
    pub(crate) async fn restarted(self) -> Self {
        let Self {
            broker,
            admin,
            options,
            dir,
            consumer,
        } = self;
        broker.journal.close().await;
        drop((broker, admin, consumer));
        let broker = open_broker(&dir, &options);
        let consumer = broker.restore().await.expect("a broker");
        Self {
            admin: BrokerAdministration::new(broker.clone()),
            broker,
            options,
            dir,
            consumer: Some(consumer),
        }
    }

    pub(crate) fn checkpoint(&self) {
        assert!(self.broker.checkpoint(&|| false).is_some());
    }

    pub(crate) fn open(&self, client_id: &str, expiry_s: u32) -> OpenedSession {
        let connect = ConnectPacket {
            username: Some("me"),
            clean_start: expiry_s == 0,
            ..ConnectPacket::new(MqttProtocolVersion::V5, client_id)
        };
        let request = OpenRequest {
            rules: None,
            client_type: match client_id.starts_with("app") {
                true => BrokerClientType::Application,
                false => BrokerClientType::Device,
            },
            client_id: client_id.into(),
            clean_start: connect.clean_start,
            expiry_s,
            will: None,
            connection: ConnectionInfo::of(&connect, IpAddr::from([192, 0, 2, 7]), 30, 1_000),
        };
        let opened = self.broker.open(request, &mut Vec::new());
        opened.unwrap_or_else(|error| panic!("{client_id}: {error:?}"))
    }

    pub(crate) fn close(&self, opened: &OpenedSession) {
        let end = ClientEnd {
            publishes_will: false,
            expiry_s: None,
        };
        self.broker
            .close(&opened.session, opened.epoch, end, &mut Vec::new());
    }

    /// Makes a session whose client is away.
    pub(crate) async fn open_away(&self, client_id: &str, filter: &str, qos: u8) -> OpenedSession {
        let opened = self.open(client_id, 60);
        self.replace_subscriptions(client_id, vec![plain(filter, qos)])
            .await;
        self.close(&opened);
        opened
    }

    pub(crate) async fn subscribe(&self, client_id: &str, filters: &[&str]) {
        let wanted = filters.iter().map(|filter| plain(filter, 1)).collect();
        self.replace_subscriptions(client_id, wanted).await;
    }

    async fn replace_subscriptions(&self, client_id: &str, wanted: Vec<BrokerSubscription>) {
        let replaced = self.admin.replace_subscriptions(client_id, wanted).await;
        assert_eq!(replaced, Ok(()));
    }

    /// Puts messages into the queues of their subscribers. What is returned has no record in the journal yet.
    pub(crate) fn route(
        &self,
        messages: impl IntoIterator<Item = Arc<BrokerMessage>>,
    ) -> (Vec<PublishedRecord>, PendingPublications) {
        let publisher = self.open("publisher", 0);
        let mut pending = PendingPublications::new(self.broker.clone());
        let mut found = TopicMatches::default();
        let records = messages.into_iter().map(|message| {
            self.broker.find_subscribers(&message.topic, &mut found);
            self.broker
                .route(&publisher.session, None, &message, &mut found, &mut pending)
        });
        let records = records.collect();
        self.close(&publisher);
        (records, pending)
    }

    pub(crate) fn publish(&self, topic: &str, payload: &[u8], qos: QoS) {
        let (_, mut pending) = self.route([message(topic, payload, qos)]);
        pending.settle(true);
    }
}

fn open_broker(dir: &TempDir, options: &Options) -> Arc<Broker> {
    let journal_options = fieldline_journal::Options::default();
    let journal = EmbeddedJournal::open(&dir.path().join("journal"), &journal_options).expect("a journal");
    let queue = journal.open_queue("broker", 1).expect("a queue");
    let store = EmbeddedBrokerStore::open(&dir.path().join("store")).expect("a store");
    Arc::new(Broker::new(
        options.clone(),
        Arc::new(SystemClock),
        Arc::new(journal),
        Partition { queue, index: 0 },
        Arc::new(store),
    ))
}

pub(crate) fn plain(filter: &str, qos: u8) -> BrokerSubscription {
    BrokerSubscription {
        filter: filter.into(),
        qos,
        no_local: false,
        retain_as_published: false,
        retain_handling: 0,
        id: None,
    }
}

pub(crate) fn message(topic: &str, payload: &[u8], qos: QoS) -> Arc<BrokerMessage> {
    let mut properties = MqttPropertyBuf::new();
    properties
        .push(MqttProperty::UserProperty("a", "b"))
        .expect("valid");
    let publish = PublishPacket {
        qos,
        retain: true,
        properties: properties.as_properties(),
        ..PublishPacket::new(topic, payload)
    };
    Arc::new(BrokerMessage::of(&publish, topic, 5_000))
}
