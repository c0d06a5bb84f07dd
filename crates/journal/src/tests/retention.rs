//! Tests of retention.

use futures::FutureExt;

use super::sim::{Crash, SimDisk};
use super::{Bench, options};
use crate::Options;
use fieldline_core::options::ByteSize;
use fieldline_core::ports::{
    AppendError, AppendOrigin, ConsumerEvent, Journal, JournalConsumer, JournalError, Offset,
};
use fieldline_model::TenantId;

fn fill(bench: &mut Bench, records: usize) {
    for _ in 0..records {
        bench.put(0, &[1; 900]).unwrap();
    }
}

fn commit(consumer: &mut dyn JournalConsumer, bench: &Bench, offset: u64) {
    consumer
        .commit(bench.at(0), Offset(offset))
        .now_or_never()
        .unwrap()
        .unwrap();
}

#[test]
fn segments_go_when_every_group_has_committed_past_them() {
    let disk = SimDisk::default();
    let mut bench = Bench::open(&disk, &options()).unwrap();
    fill(&mut bench, 40);
    let segments = disk.segments().len();
    assert!(segments > 5);

    let mut fast = bench.group("fast");
    let mut slow = bench.group("slow");
    commit(fast.as_mut(), &bench, 40);
    assert_eq!(disk.segments().len(), segments, "the slow group needs them");
    commit(slow.as_mut(), &bench, 20);
    let half = disk.segments().len();
    assert!(half < segments && half > 1);
    assert!(matches!(
        slow.seek(bench.at(0), Offset(1)),
        Err(JournalError::OutOfRange { asked: 1, .. })
    ));
    commit(slow.as_mut(), &bench, 40);
    assert_eq!(disk.segments().len(), 1, "the last one stays");

    let mut bench = Bench::open(&disk.after(Crash::Power, 9), &options()).unwrap();
    assert_eq!(bench.journal.end(bench.at(0)), Offset(40));
    fill(&mut bench, 1);
    assert_eq!(bench.journal.end(bench.at(0)), Offset(41));
}

#[test]
fn history_is_kept_as_far_as_asked() {
    let disk = SimDisk::default();
    let options = Options {
        retain_bytes: ByteSize::kib(16),
        ..options()
    };
    let mut bench = Bench::open(&disk, &options).unwrap();
    fill(&mut bench, 60);
    commit(bench.group("rules").as_mut(), &bench, 60);
    assert!((16 << 10..28 << 10).contains(&disk.used()), "{}", disk.used());
}

#[test]
fn a_log_of_the_largest_size_makes_senders_wait_for_the_consumers() {
    let disk = SimDisk::default();
    let options = Options {
        max_bytes: ByteSize::kib(8 + 64),
        ..options()
    };
    let mut bench = Bench::open(&disk, &options).unwrap();
    let refused = (0..200).find_map(|_| bench.put(0, &[1; 900]).err());
    assert_eq!(refused, Some(AppendError::Busy));
    assert_eq!(bench.journal.refusal(), Some(AppendError::Busy));
    let mut ready = Box::pin(bench.journal.ready(AppendOrigin::Device(TenantId::NULL)));
    assert!(ready.as_mut().now_or_never().is_none());
    let mut consumer = bench.group("rules");
    commit(consumer.as_mut(), &bench, bench.journal.end(bench.at(0)).0);
    assert!(ready.as_mut().now_or_never().is_some());
    drop(ready);
    bench.put(0, b"goes on").unwrap();
}

#[test]
fn a_consumer_far_behind_reads_on_from_its_position_after_a_restart() {
    let disk = SimDisk::default();
    let mut bench = Bench::open(&disk, &options()).unwrap();
    fill(&mut bench, 30);
    commit(bench.group("rules").as_mut(), &bench, 17);
    let bench = Bench::open(&disk.after(Crash::Process, 2), &options()).unwrap();
    let mut consumer = bench.group("rules");
    let first = consumer.next(5000).now_or_never().unwrap().unwrap();
    let ConsumerEvent::Assigned(positions) = first else {
        panic!("{first:?}")
    };
    assert!(positions.contains(&(bench.at(0), Offset(17))));
    let mut next = 17;
    while let Some(delivery) = consumer.next(2000).now_or_never() {
        let ConsumerEvent::Records(records) = delivery.unwrap() else {
            panic!()
        };
        assert_eq!(records.first, Offset(next));
        assert_eq!(records.bytes.len() as u64, 904 * (records.next.0 - next));
        assert!(records.bytes.len() <= 2000);
        next = records.next.0;
    }
    assert_eq!(next, 30);
}

#[test]
fn a_partition_that_was_quiet_reads_on_although_the_segments_in_between_are_gone() {
    let disk = SimDisk::default();
    let mut bench = Bench::open(&disk, &options()).unwrap();
    let mut members = bench.journal.subscribe(bench.queue, "rules", 3).unwrap();
    bench.put(1, b"early").unwrap();
    let quiet = members[1].as_mut();
    quiet.next(100).now_or_never().unwrap().unwrap();
    quiet.next(100).now_or_never().unwrap().unwrap();
    let early = quiet.commit(bench.at(1), Offset(1)).now_or_never();
    early.unwrap().unwrap();

    fill(&mut bench, 30);
    commit(members[0].as_mut(), &bench, 30);
    assert_eq!(disk.segments().len(), 1);
    bench.put(1, b"late").unwrap();
    let delivery = members[1].next(100).now_or_never().unwrap().unwrap();
    assert!(
        matches!(&delivery, ConsumerEvent::Records(records) if records.bytes.ends_with(b"late")),
        "{delivery:?}"
    );
}
