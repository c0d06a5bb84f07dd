//! Tests with full and failing disks.

use futures::FutureExt;

use super::sim::{Crash, SimDisk};
use super::{Bench, options};
use crate::Options;
use fieldline_core::options::ByteSize;
use fieldline_core::ports::{AppendError, AppendOrigin, ConsumerEvent, Journal, Offset};
use fieldline_model::TenantId;

#[test]
fn a_full_disk_refuses_appends_and_takes_them_again_once_there_is_room() {
    let disk = SimDisk::seeded(3);
    let mut bench = Bench::open(&disk, &options()).unwrap();
    bench.put(0, b"before").unwrap();
    let mut consumer = bench.group("rules");

    // The write itself runs out of space in the middle.
    disk.set_capacity(Some(disk.used() + 40));
    assert_eq!(bench.put(0, &[1; 500]), Err(AppendError::DiskFull));
    assert_eq!(bench.journal.refusal(), Some(AppendError::DiskFull));
    assert!(matches!(
        bench.append(0, &[vec![1]]).err(),
        Some(AppendError::DiskFull)
    ));
    assert!(
        bench
            .journal
            .ready(AppendOrigin::Device(TenantId::NULL))
            .now_or_never()
            .is_some(),
        "waiting is for a journal that is busy"
    );
    consumer.next(100).now_or_never().unwrap().unwrap();
    let ConsumerEvent::Records(records) = consumer.next(100).now_or_never().unwrap().unwrap() else {
        panic!("reading goes on")
    };
    assert_eq!(records.bytes.as_ref(), b"\x06\0\0\0before");
    bench.committer.tick();
    assert_eq!(
        bench.journal.refusal(),
        Some(AppendError::DiskFull),
        "still no room"
    );

    disk.set_capacity(None);
    bench.committer.tick();
    assert_eq!(bench.journal.refusal(), None);
    bench.put(0, b"after").unwrap();
    let found = Bench::open(&disk.after(Crash::Power, 1), &options())
        .unwrap()
        .read_all()
        .unwrap();
    assert_eq!(found[0], [b"before".to_vec(), b"after".to_vec()]);
}

#[test]
fn the_last_of_the_disk_is_left_to_the_stores() {
    let disk = SimDisk::default();
    let options = Options {
        min_free_disk: ByteSize::kib(100),
        ..options()
    };
    let mut bench = Bench::open(&disk, &options).unwrap();
    disk.set_capacity(Some(disk.used() + (100 << 10) + 300));
    bench.put(0, &[1; 100]).unwrap();
    assert_eq!(bench.put(0, &[1; 400]), Err(AppendError::DiskFull));
}

#[test]
fn consuming_everything_frees_a_disk_that_the_journal_itself_has_filled() {
    let disk = SimDisk::default();
    let options = Options {
        segment_bytes: ByteSize::mib(1),
        min_free_disk: ByteSize::kib(64),
        ..options()
    };
    let mut bench = Bench::open(&disk, &options).unwrap();
    disk.set_capacity(Some(512 << 10));
    let full = (0..200).find(|_| bench.put(0, &[1; 8000]) == Err(AppendError::DiskFull));
    assert!(full.is_some());

    let end = bench.journal.end(bench.at(0));
    let mut consumer = bench.group("rules");
    consumer.commit(bench.at(0), end).now_or_never().unwrap().unwrap();
    bench.committer.tick();
    bench.put(0, b"goes on").unwrap();
    let next = bench.journal.end(bench.at(0));
    assert_eq!(
        next,
        Offset(end.0 + 1),
        "positions go on although the old file is gone"
    );
}

#[test]
fn a_consumed_segment_is_given_back_also_where_the_first_try_finds_no_room_for_the_next_one() {
    let disk = SimDisk::default();
    let options = Options {
        segment_bytes: ByteSize::mib(1),
        min_free_disk: ByteSize::kib(64),
        ..options()
    };
    let mut bench = Bench::open(&disk, &options).unwrap();
    disk.set_capacity(Some(512 << 10));
    let full = (0..200).find(|_| bench.put(0, &[1; 8000]) == Err(AppendError::DiskFull));
    assert!(full.is_some());
    let end = bench.journal.end(bench.at(0));
    let mut consumer = bench.group("rules");
    consumer.commit(bench.at(0), end).now_or_never().unwrap().unwrap();

    // Another user takes the rest of the disk.
    disk.set_capacity(Some(disk.used()));
    bench.committer.tick();
    assert_eq!(bench.journal.refusal(), Some(AppendError::DiskFull));
    assert_eq!(disk.segments().len(), 2, "the next segment is there, and empty");
    // The other user frees a little, far less than appends need.
    disk.set_capacity(Some(disk.used() + 4096));
    bench.committer.tick();
    bench.put(0, b"goes on").unwrap();
    assert_eq!(disk.segments().len(), 1);
}

#[test]
fn what_a_failed_fsync_left_in_memory_is_written_before_it_counts_as_durable() {
    for seed in 0..20 {
        let disk = SimDisk::default();
        let mut bench = Bench::open(&disk, &options()).unwrap();
        bench.put(0, b"before").unwrap();
        disk.fail_syncs(true);
        let lost = bench.put(0, &[7; 2000]);
        assert!(matches!(lost, Err(AppendError::Failed(_))));
        disk.fail_syncs(false);

        // The kernel considers the data written. The next process continues after it, and then the power fails.
        let disk = disk.after(Crash::Process, seed);
        let mut bench = Bench::open(&disk, &options()).unwrap();
        bench.put(0, b"after").unwrap();
        bench.put(0, b"later").unwrap();
        let bench = Bench::open(&disk.after(Crash::Power, seed), &options()).unwrap();
        let found = bench.read_all().unwrap();
        assert_eq!(
            found[0],
            [
                b"before".to_vec(),
                vec![7; 2000],
                b"after".to_vec(),
                b"later".to_vec()
            ]
        );
    }
}

#[test]
fn a_failed_write_or_fsync_stops_the_journal_until_it_is_opened_again() {
    for break_disk in [SimDisk::fail_writes, SimDisk::fail_syncs] {
        let disk = SimDisk::default();
        let mut bench = Bench::open(&disk, &options()).unwrap();
        bench.put(0, b"before").unwrap();
        break_disk(&disk, true);
        assert!(matches!(bench.put(0, b"lost"), Err(AppendError::Failed(_))));
        break_disk(&disk, false);
        bench.committer.tick();
        assert!(matches!(
            bench.append(0, &[vec![1]]).err(),
            Some(AppendError::Failed(_))
        ));
        assert!(matches!(bench.journal.refusal(), Some(AppendError::Failed(_))));
        assert_eq!(
            bench.read_all().unwrap()[0],
            [b"before"],
            "consumers see durable records only"
        );

        let mut bench = Bench::open(&disk.after(Crash::Power, 5), &options()).unwrap();
        bench.put(0, b"after").unwrap();
        let found = bench.read_all().unwrap();
        assert_eq!(found[0].first().unwrap(), b"before");
        assert_eq!(found[0].last().unwrap(), b"after");
    }
}

#[test]
fn appends_beyond_the_bound_are_told_to_wait_until_half_of_it_is_free() {
    let disk = SimDisk::default();
    let mut bench = Bench::open(&disk, &options()).unwrap();
    let taken: Vec<_> = (0..100)
        .map_while(|_| bench.append(0, &[vec![1; 4000]]).ok())
        .collect();
    assert_eq!(taken.len(), 16, "16 times 4004 bytes fit into 64 KiB");
    assert!(matches!(
        bench.append(1, &[vec![1; 4000]]).err(),
        Some(AppendError::Busy)
    ));
    assert!(
        bench
            .journal
            .ready(AppendOrigin::Device(TenantId::NULL))
            .now_or_never()
            .is_none()
    );
    bench.committer.tick();
    assert!(
        bench
            .journal
            .ready(AppendOrigin::Device(TenantId::NULL))
            .now_or_never()
            .is_some()
    );
    for append in taken {
        assert_eq!(append.now_or_never(), Some(Ok(())));
    }
    let limit = 16 << 10;
    assert_eq!(
        bench.append(0, &[vec![1; limit]]).err(),
        Some(AppendError::TooLarge { limit })
    );
}
