//! Checks the journal on Kafka against the contract of its port, and what is particular to it, with a real broker.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use fieldline_core::options::ByteSize;
use fieldline_core::ports::{
    AppendOrigin, ConsumerEvent, Journal, JournalConsumer, JournalError, Offset, Partition,
};
use fieldline_journal::kafka::KafkaOptions;
use fieldline_journal::{JournalKind, KafkaJournal, Options};
use fieldline_model::TenantId;
use fieldline_model::record::{RecordBatch, split};
use fieldline_testkit::contract::journal::{self, JournalBackend};
use rdkafka::ClientConfig;
use rdkafka::admin::{AdminClient, AdminOptions, ResourceSpecifier};
use uuid::Uuid;

const PARTITIONS: u16 = 5;

fn options() -> Options {
    Options {
        kind: JournalKind::Kafka,
        kafka: KafkaOptions {
            servers: Some(std::env::var("FIELDLINE_TEST_KAFKA").expect("run the test by its script")),
            prefix: format!("journal-{}", Uuid::new_v4()),
            partitions: PARTITIONS,
            ..KafkaOptions::default()
        },
        ..Options::default()
    }
}

fn open(options: &Options) -> Arc<dyn Journal> {
    Arc::new(KafkaJournal::open(options).expect("it opens"))
}

struct Backend(Options);

#[async_trait]
impl JournalBackend for Backend {
    async fn open(&self) -> Arc<dyn Journal> {
        open(&self.0)
    }

    fn partitions(&self, _: u16) -> u16 {
        PARTITIONS
    }
}

#[tokio::test]
#[ignore = "needs Kafka: tests/services/with-kafka.sh"]
async fn the_journal_on_kafka_keeps_its_promises() {
    journal::all(&Backend(options())).await;
}

#[tokio::test]
#[ignore = "needs Kafka: tests/services/with-kafka.sh"]
async fn the_journal_on_kafka_keeps_its_promises_with_tiny_buffers() {
    let options = Options {
        max_pending: ByteSize::kib(32),
        max_append: ByteSize::kib(16),
        ..options()
    };
    let journal = open(&options);
    journal::acknowledged_records_arrive_once_and_in_order(journal.as_ref()).await;
    journal::deliveries_keep_to_their_limit(journal.as_ref()).await;
    journal::abandoned_wait_loses_nothing(journal.as_ref()).await;
    journal.close().await;
}

fn batch(records: impl IntoIterator<Item = Vec<u8>>) -> RecordBatch {
    let mut batch = RecordBatch::new();
    for record in records {
        batch.push(&record);
    }
    batch
}

async fn put(journal: &dyn Journal, partition: Partition, batch: &RecordBatch) {
    let origin = AppendOrigin::Device(TenantId::NULL);
    let append = journal.append(partition, batch, origin).expect("there is room");
    append.await.expect("Kafka takes it");
}

fn only(journal: &dyn Journal, partition: Partition, group: &str) -> Box<dyn JournalConsumer> {
    let mut members = journal
        .subscribe(partition.queue, group, 1)
        .expect("the queue is open");
    members.remove(0)
}

async fn next(consumer: &mut dyn JournalConsumer) -> ConsumerEvent {
    let event = tokio::time::timeout(Duration::from_secs(60), consumer.next(1 << 20));
    event
        .await
        .expect("something comes in time")
        .expect("Kafka can be read")
}

/// Receives so many records, each with its position.
async fn receive(consumer: &mut dyn JournalConsumer, count: usize) -> Vec<(u64, Vec<u8>)> {
    let mut found = Vec::new();
    while found.len() < count {
        match next(consumer).await {
            ConsumerEvent::Assigned(_) => {}
            ConsumerEvent::Records(records) => {
                let bytes = split(&records.bytes).map(|record| record.expect("whole records").to_vec());
                found.extend((records.first.0..).zip(bytes));
            }
            other => panic!("{other:?}"),
        }
    }
    found
}

#[tokio::test]
#[ignore = "needs Kafka: tests/services/with-kafka.sh"]
async fn more_records_than_a_block_holds_are_one_append_on_kafka() {
    let journal = open(&options());
    let queue = journal.open_queue("Main", 1).unwrap();
    let partition = Partition { queue, index: 3 };
    let numbers = |from: u32, count: u32| (from..from + count).map(|number| number.to_le_bytes().to_vec());
    let origin = AppendOrigin::Device(TenantId::NULL);
    let mut appends = Vec::new();
    for (from, count) in [(0, 3), (3, 10_000), (10_003, 1)] {
        appends.push(
            journal
                .append(partition, &batch(numbers(from, count)), origin)
                .unwrap(),
        );
    }
    for append in appends {
        append.await.unwrap();
    }
    let mut consumer = only(journal.as_ref(), partition, "group");
    let found = receive(consumer.as_mut(), 10_004).await;
    assert!(
        found
            .iter()
            .map(|(_, record)| record.clone())
            .eq(numbers(0, 10_004))
    );
    assert!(
        found.is_sorted_by(|one, other| one.0 < other.0),
        "each has a position of its own"
    );
    // Any of them is a position to go back to.
    for (position, record) in [&found[4_500], &found[10_003], &found[2]] {
        consumer.seek(partition, Offset(*position)).unwrap();
        assert_eq!(
            receive(consumer.as_mut(), 1).await[0],
            (*position, record.clone())
        );
    }
    let middle = Offset(found[4_500].0);
    consumer.commit(partition, middle).await.unwrap();
    let lag = journal.records_between(partition, middle, journal.end(partition));
    assert!((1_000..20_000).contains(&lag), "{lag}");
    journal.close().await;
}

#[tokio::test]
#[ignore = "needs Kafka: tests/services/with-kafka.sh"]
async fn numbers_and_names_of_queues_are_the_same_for_all_programs_on_kafka() {
    let options = options();
    let (one, other) = (open(&options), open(&options));
    let names = ["Main", "a b", "0190/Ä_x"];
    let first = names.map(|name| one.open_queue(name, 1).unwrap());
    let mut names = names.to_vec();
    names.reverse();
    let mut second: Vec<_> = names
        .iter()
        .map(|name| other.open_queue(name, 1).unwrap())
        .collect();
    second.reverse();
    assert_eq!(first.to_vec(), second);
    assert!(one.open_queue(&"x".repeat(300), 1).is_err());
    one.close().await;

    // A queue keeps its number of partitions, whatever the settings say later.
    let mut later = options.clone();
    later.kafka.partitions = 2;
    let later = open(&later);
    assert_eq!(later.open_queue("Main", 1).unwrap(), first[0]);
    assert_eq!(later.partitions(first[0]), PARTITIONS);
    let new = later.open_queue("Later", 1).unwrap();
    assert_eq!(later.partitions(new), 2);
}

/// By the times of senders, a broker refuses what a machine sends whose clock is an hour ahead.
#[tokio::test]
#[ignore = "needs Kafka: tests/services/with-kafka.sh"]
async fn blocks_on_kafka_have_the_times_of_its_own_clock() {
    let options = options();
    let journal = open(&options);
    journal.open_queue("Main", 1).unwrap();
    let mut client = ClientConfig::new();
    client.set("bootstrap.servers", options.kafka.servers.as_deref().unwrap());
    let admin: AdminClient<_> = client.create().unwrap();
    for topic in ["queues", "q.Main"] {
        let topic = format!("{}.{topic}", options.kafka.prefix);
        let asked = [ResourceSpecifier::Topic(&topic)];
        let told = admin
            .describe_configs(&asked, &AdminOptions::new())
            .await
            .unwrap();
        let [Ok(settings)] = told.as_slice() else {
            panic!("{topic}: {told:?}");
        };
        let times = settings.get("message.timestamp.type").unwrap();
        assert_eq!(times.value.as_deref(), Some("LogAppendTime"), "{topic}");
    }
    journal.close().await;
}

#[tokio::test]
#[ignore = "needs Kafka: tests/services/with-kafka.sh"]
async fn what_is_consumed_is_deleted_on_kafka_and_who_asks_for_it_is_told() {
    let mut options = options();
    options.kafka.trim_after = fieldline_core::options::HumanDuration::millis(1);
    let journal = open(&options);
    let queue = journal.open_queue("Main", 1).unwrap();
    let partition = Partition { queue, index: 0 };
    for number in 0..4 {
        put(journal.as_ref(), partition, &batch([vec![number]])).await;
    }
    let mut consumer = only(journal.as_ref(), partition, "group");
    let found = receive(consumer.as_mut(), 4).await;
    let third = Offset(found[2].0);
    consumer.commit(partition, third).await.unwrap();
    let told = tokio::time::timeout(Duration::from_secs(60), async {
        loop {
            match consumer.seek(partition, Offset(found[1].0)) {
                Ok(()) => tokio::time::sleep(Duration::from_millis(50)).await,
                Err(error) => break error,
            }
        }
    });
    let told = told.await.expect("consumed records go");
    assert!(
        matches!(told, JournalError::OutOfRange { first, .. } if first == third.0),
        "{told}"
    );
    consumer.seek(partition, third).unwrap();
    let rest = receive(consumer.as_mut(), 2).await;
    assert_eq!(rest, found[2..]);
}

#[cfg(feature = "kafka-tls")]
#[tokio::test]
#[ignore = "needs Kafka: tests/services/with-kafka.sh"]
async fn servers_that_speak_tls_and_ask_for_a_user_are_journals_on_kafka_too() {
    use fieldline_journal::kafka::SaslMechanism;

    for mechanism in [SaslMechanism::Plain, SaslMechanism::ScramSha256] {
        let mut options = options();
        options.kafka.servers = std::env::var("FIELDLINE_TEST_KAFKA_SASL").ok();
        options.kafka.tls = true;
        options.kafka.ca = std::env::var("FIELDLINE_TEST_KAFKA_CA").ok().map(Into::into);
        options.kafka.username = Some("alice".to_owned());
        options.kafka.password = Some("alice-secret".to_owned());
        options.kafka.sasl_mechanism = mechanism;
        let journal = open(&options);
        journal::acknowledged_records_arrive_once_and_in_order(journal.as_ref()).await;
        journal.close().await;
    }
}
