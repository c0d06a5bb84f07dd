//! Tests of queues, with rows in a map in place of the store.

use fieldline_codec::PublishPacket;

use super::*;

fn message(text: &str) -> Arc<BrokerMessage> {
    Arc::new(BrokerMessage::of(
        &PublishPacket::new("t", text.as_bytes()),
        "t",
        0,
    ))
}

fn options(qos: QoS) -> DeliveryOptions {
    DeliveryOptions {
        qos,
        retain: false,
        subscription_ids: Box::new([]),
    }
}

/// Insists that the bytes are those of the messages that are here, and in flight.
fn weigh(queue: &MessageQueue) {
    let bytes = |messages: &mut dyn Iterator<Item = &QueuedMessage>| {
        messages.map(QueuedMessage::memory).sum::<usize>()
    };
    assert_eq!(queue.bytes, bytes(&mut queue.head.iter().chain(&queue.tail)));
    assert_eq!(queue.sent_bytes(), bytes(&mut queue.head.iter().take(queue.sent)));
}

fn queue(count: u64) -> MessageQueue {
    let mut queue = MessageQueue::default();
    for number in 0..count {
        let pushed = queue.push(message(&number.to_string()), options(QoS::AtLeastOnce), true);
        assert_eq!(pushed, number);
    }
    queue
}

/// Sends and settles everything, reading from the rows where the queue asks for it.
fn drain(queue: &mut MessageQueue, rows: &mut Rows) -> Vec<String> {
    let mut seen = Vec::new();
    loop {
        if let Some(range) = queue.missing() {
            let page: Vec<_> = rows
                .0
                .range(range.clone())
                .take(3)
                .map(|(number, row)| QueuedMessage::decode(*number, row).expect("a row"))
                .collect();
            let is_all = page.len() < 3;
            queue.add_page(&range, page, is_all);
            continue;
        }
        let Some(next) = queue.next() else { return seen };
        seen.push(String::from_utf8(next.message.payload.to_vec()).expect("text"));
        let id = packet_id_of(next.number);
        queue.mark_sent();
        weigh(queue);
        assert!(queue.settle(id).is_some());
        weigh(queue);
    }
}

#[derive(Default)]
struct Rows(std::collections::BTreeMap<u64, Vec<u8>>);

impl Rows {
    fn checkpoint(&mut self, queue: &mut MessageQueue) {
        let mut changes = BrokerChanges::default();
        queue.checkpoint(1, &mut changes);
        weigh(queue);
        for (_, key, row) in changes.rows {
            let number = u64::from_be_bytes(key[8..].try_into().expect("a key"));
            match row {
                Some(row) => self.0.insert(number, row),
                None => self.0.remove(&number),
            };
        }
    }
}

#[test]
fn messages_that_were_left_to_the_store_come_back_in_their_order() {
    let (mut queue, mut rows) = (queue(10), Rows::default());
    rows.checkpoint(&mut queue);
    queue.release(2, usize::MAX);
    for number in 10..14 {
        queue.push(message(&number.to_string()), options(QoS::ExactlyOnce), true);
    }
    rows.checkpoint(&mut queue);
    queue.release(2, usize::MAX);
    queue.push(message("14"), options(QoS::ExactlyOnce), true);
    assert_eq!((queue.len(), queue.head.len(), queue.tail.len()), (15, 2, 1));
    let expected: Vec<_> = (0..15).map(|number| number.to_string()).collect();
    assert_eq!(drain(&mut queue, &mut rows), expected);
    assert_eq!(queue.len(), 0);
    rows.checkpoint(&mut queue);
    assert!(rows.0.is_empty());
}

#[test]
fn a_message_keeps_its_identifier_and_its_stage_across_a_restart() {
    let (mut queue, mut rows) = (MessageQueue::default(), Rows::default());
    for text in ["a", "b", "c"] {
        queue.push(message(text), options(QoS::ExactlyOnce), true);
    }
    queue.mark_sent();
    queue.mark_sent();
    assert_eq!(queue.mark_received(packet_id_of(0)), Some(0));
    rows.checkpoint(&mut queue);
    let extent = queue.extent();
    let range = extent.numbers.clone();

    let mut restored = MessageQueue::restored(extent);
    // The journal repeats what is stored already, and what is not.
    for (number, text) in [(1, "b"), (3, "d")] {
        let row = restored.replay(number, &message(text), options(QoS::ExactlyOnce), false, 9);
        assert_eq!(row, None);
    }
    let page = rows
        .0
        .iter()
        .map(|(number, row)| QueuedMessage::decode(*number, row));
    let page = page.collect::<Option<Vec<_>>>().expect("rows");
    restored.add_page(&range, page, true);
    assert_eq!(restored.len(), 4);
    let in_flight = restored.begin_connection();
    let in_flight: Vec<_> = in_flight
        .iter()
        .map(|one| (one.packet_id.get(), one.message.is_some()))
        .collect();
    assert_eq!(in_flight, [(1, false), (2, true)]);
    assert_eq!(restored.next().expect("the third").number, 2);
}

#[test]
fn nothing_is_sent_before_it_is_durable_and_what_fails_is_taken_back() {
    let mut queue = MessageQueue::default();
    let first = queue.push(message("a"), options(QoS::AtLeastOnce), false);
    let second = queue.push(message("b"), options(QoS::AtLeastOnce), false);
    queue.mark_durable(second);
    assert!(queue.next().is_none());
    queue.withdraw(first);
    assert_eq!(queue.next().expect("the second").number, second);
}

#[test]
fn a_checkpoint_leaves_out_what_is_not_durable_and_the_journal_brings_it_back() {
    let (mut queue, mut rows) = (queue(1), Rows::default());
    let open = queue.push(message("open"), options(QoS::ExactlyOnce), false);
    queue.push(message("2"), options(QoS::AtLeastOnce), true);
    rows.checkpoint(&mut queue);
    assert_eq!(rows.0.keys().copied().collect::<Vec<_>>(), [0, 2]);
    queue.release(0, usize::MAX);
    queue.mark_durable(open);
    assert_eq!(drain(&mut queue, &mut rows), ["0", "open", "2"]);

    let extent = QueueExtent {
        numbers: 0..3,
        count: 2,
        sent_until: 0,
        open: vec![open],
    };
    let mut restored = MessageQueue::restored(extent);
    let row = restored.replay(open, &message("open"), options(QoS::ExactlyOnce), false, 9);
    rows.0.insert(open, row.expect("a row among those of the store"));
    let again = restored.replay(open, &message("open"), options(QoS::ExactlyOnce), false, 9);
    assert_eq!((again, restored.len()), (None, 3));
    assert_eq!(drain(&mut restored, &mut rows), ["0", "open", "2"]);
}

#[test]
fn a_full_queue_keeps_the_newest_after_a_restart() {
    let (mut queue, mut rows) = (queue(20), Rows::default());
    rows.checkpoint(&mut queue);
    let mut restored = MessageQueue::restored(queue.extent());
    for number in 20..40 {
        assert!(restored.drop_oldest());
        restored.push(message(&number.to_string()), options(QoS::AtLeastOnce), true);
    }
    let expected: Vec<_> = (20..40).map(|number| number.to_string()).collect();
    assert_eq!(drain(&mut restored, &mut rows), expected);
}

#[test]
fn what_a_crash_brings_back_does_not_hide_what_was_sent_after_it() {
    let (mut queue, mut rows) = (queue(1), Rows::default());
    queue.leave_out(IDENTIFIERS + 5);
    let far = queue.push(message("far"), options(QoS::ExactlyOnce), true);
    queue.push(message("new"), options(QoS::ExactlyOnce), true);
    rows.checkpoint(&mut queue);
    let mut extent = queue.extent();
    // Sent and received after the first was acknowledged, of which the store has not heard.
    extent.sent_until = far + 1;
    let range = extent.numbers.clone();
    let mut restored = MessageQueue::restored(extent);
    assert!(restored.has_sent_in_store());
    let page = rows.0.iter().map(|(number, row)| {
        let row = match *number == far {
            true => QueuedMessage::received_row(row).expect("a row"),
            false => row.clone(),
        };
        QueuedMessage::decode(*number, &row)
    });
    let page = page.collect::<Option<Vec<_>>>().expect("rows");
    restored.add_page(&range, page, true);
    let in_flight = restored.begin_connection();
    assert_eq!(in_flight.len(), 1);
    assert_eq!(in_flight[0].packet_id, packet_id_of(far));
    assert_eq!(in_flight[0].message, None);
    assert_eq!(restored.next().expect("the last").number, far + 1);
}

#[test]
fn what_was_sent_is_not_left_to_the_store_before_a_connection_begins() {
    let (mut queue, mut rows) = (queue(9), Rows::default());
    for _ in 0..5 {
        queue.mark_sent();
    }
    rows.checkpoint(&mut queue);
    let extent = queue.extent();
    let range = extent.numbers.clone();
    let mut restored = MessageQueue::restored(extent);
    let page = rows
        .0
        .iter()
        .map(|(number, row)| QueuedMessage::decode(*number, row));
    let page = page.collect::<Option<Vec<_>>>().expect("rows");
    restored.add_page(&range, page, true);
    restored.release(1, usize::MAX);
    assert!(!restored.has_sent_in_store());
    assert_eq!(restored.begin_connection().len(), 5);
    assert_eq!(drain(&mut restored, &mut rows), ["5", "6", "7", "8"]);
}

#[test]
fn identifiers_are_not_used_twice_at_a_time() {
    let mut queue = queue(IDENTIFIERS + 10);
    for _ in 0..IDENTIFIERS {
        queue.mark_sent();
    }
    assert!(queue.next().is_none());
    assert!(queue.settle(packet_id_of(5)).is_some());
    assert!(queue.next().is_none());
    assert!(queue.settle(packet_id_of(0)).is_some());
    assert_eq!(queue.next().expect("a message").number, IDENTIFIERS);
    assert_eq!(queue.in_flight(packet_id_of(7)).expect("sent").number, 7);
}

#[test]
fn the_oldest_message_goes_first_wherever_it_is() {
    let (mut queue, mut rows) = (queue(6), Rows::default());
    queue.mark_sent();
    rows.checkpoint(&mut queue);
    queue.release(1, usize::MAX);
    queue.push(message("6"), options(QoS::AtLeastOnce), true);
    // 0 is in flight, 1 in memory, 2 to 5 in the store.
    assert!(queue.drop_oldest() && queue.drop_oldest());
    rows.checkpoint(&mut queue);
    assert_eq!(drain(&mut queue, &mut rows), ["3", "4", "5", "6"]);
}

#[test]
fn no_more_bytes_stay_than_are_kept() {
    let (mut queue, mut rows) = (queue(10), Rows::default());
    let one = message("0").memory();
    rows.checkpoint(&mut queue);
    queue.mark_sent();
    queue.release(8, 3 * one);
    weigh(&queue);
    assert_eq!((queue.bytes, queue.sent_bytes()), (4 * one, one));
    assert!(queue.settle(packet_id_of(0)).is_some());
    queue.push(message("far"), options(QoS::AtLeastOnce), true);
    weigh(&queue);
    assert!(queue.drop_oldest());
    weigh(&queue);
    queue.withdraw(10);
    weigh(&queue);
    assert_eq!(
        drain(&mut queue, &mut rows),
        ["2", "3", "4", "5", "6", "7", "8", "9"]
    );
    queue.push(message("last"), options(QoS::AtLeastOnce), true);
    queue.clear();
    weigh(&queue);
    assert_eq!(queue.bytes, 0);
}
