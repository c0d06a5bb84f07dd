//! Tests of the reserve for the platform's own appends.

use fieldline_core::options::ByteSize;
use fieldline_core::ports::{AppendError, AppendOrigin, Journal as _};
use fieldline_model::TenantId;
use futures::FutureExt as _;

use super::sim::SimDisk;
use super::{Bench, options};
use crate::Options;

fn capped() -> Options {
    Options {
        max_bytes: ByteSize::kib(8 + 64),
        internal_reserve: Some(ByteSize::kib(40)),
        ..options()
    }
}

/// Appends while there is room; returns the number of appends, and the final error.
fn fill(bench: &mut Bench, origin: AppendOrigin) -> (usize, AppendError) {
    for count in 0..10_000 {
        if let Err(error) = bench.put_from(origin, 1, &[1; 900]) {
            return (count, error);
        }
    }
    panic!("there is room without an end");
}

#[test]
fn the_platform_appends_beyond_the_largest_size_until_its_reserve_is_used_up() {
    let disk = SimDisk::default();
    let mut bench = Bench::open(&disk, &capped()).unwrap();
    let devices = fill(&mut bench, AppendOrigin::Device(TenantId::NULL)).1;
    assert_eq!(devices, AppendError::Busy);

    let (greedy, modest) = (TenantId::new(), TenantId::new());
    let (taken, refused) = fill(&mut bench, AppendOrigin::Internal(greedy));
    assert_eq!(refused, AppendError::Busy);
    assert_eq!(taken, (30 << 10) / 904, "three quarters are for one tenant");
    let (taken, refused) = fill(&mut bench, AppendOrigin::Internal(modest));
    assert_eq!(refused, AppendError::Busy);
    assert!(taken * 904 > 9 << 10, "a quarter is left to others: {taken}");
    assert!(disk.used() < (72 + 40 + 8) << 10, "{}", disk.used());

    let internal = AppendOrigin::Internal(greedy);
    let mut ready = Box::pin(bench.journal.ready(internal));
    let mut devices = Box::pin(bench.journal.ready(AppendOrigin::Device(TenantId::NULL)));
    assert!(ready.as_mut().now_or_never().is_none());
    assert!(devices.as_mut().now_or_never().is_none());
    // Frees half of the bytes beyond the limit: enough for the platform, not for devices.
    let mut consumer = bench.group("rules");
    let end = bench.journal.end(bench.at(0));
    consumer.commit(bench.at(0), end).now_or_never().unwrap().unwrap();
    let half = bench.journal.end(bench.at(1)).0 - 66;
    let half = fieldline_core::ports::Offset(half);
    consumer
        .commit(bench.at(1), half)
        .now_or_never()
        .unwrap()
        .unwrap();
    assert!(ready.as_mut().now_or_never().is_some());
    drop((ready, devices));
    bench.put_from(internal, 1, b"goes on").unwrap();
}

#[test]
fn an_internal_append_waits_neither_for_nor_with_devices() {
    let disk = SimDisk::default();
    let mut bench = Bench::open(&disk, &options()).unwrap();
    // The bytes waiting for the disk are bounded for both, a quarter higher for the platform.
    let taken = (0..100)
        .map_while(|_| bench.append(0, &[vec![1; 4000]]).ok())
        .count();
    let internal = AppendOrigin::Internal(TenantId::new());
    let more = (0..100)
        .map_while(|_| bench.append_from(internal, 0, &[vec![1; 4000]]).ok())
        .count();
    assert_eq!((taken, more), (16, 4));
    assert!(bench.journal.ready(internal).now_or_never().is_none());
    bench.committer.tick();
    assert!(bench.journal.ready(internal).now_or_never().is_some());
}

#[test]
fn a_full_disk_keeps_half_of_its_reserve_for_the_platform() {
    let disk = SimDisk::default();
    let options = Options {
        segment_bytes: ByteSize::mib(1),
        min_free_disk: ByteSize::kib(256),
        ..options()
    };
    let mut bench = Bench::open(&disk, &options).unwrap();
    disk.set_capacity(Some(disk.used() + (400 << 10)));
    let refused = fill(&mut bench, AppendOrigin::Device(TenantId::NULL)).1;
    assert_eq!(refused, AppendError::DiskFull);
    let internal = AppendOrigin::Internal(TenantId::new());
    let (taken, refused) = fill(&mut bench, internal);
    assert_eq!(refused, AppendError::DiskFull);
    assert_eq!(taken, (96 << 10) / 904, "three quarters of one half");
    let (taken, _) = fill(&mut bench, AppendOrigin::Internal(TenantId::new()));
    assert!(taken > 0, "another tenant has a part of its own");
    assert_eq!(bench.put(0, b"device"), Err(AppendError::DiskFull));

    disk.set_capacity(None);
    bench.committer.tick();
    bench.put(0, b"device").unwrap();
}

#[test]
fn a_write_that_failed_uses_up_nothing() {
    let disk = SimDisk::default();
    let options = Options {
        min_free_disk: ByteSize::kib(64),
        ..options()
    };
    let mut bench = Bench::open(&disk, &options).unwrap();
    disk.set_capacity(Some(disk.used()));
    let internal = AppendOrigin::Internal(TenantId::new());
    for _ in 0..200 {
        assert_eq!(bench.put_from(internal, 0, &[1; 900]), Err(AppendError::DiskFull));
        bench.committer.tick();
    }
    disk.set_capacity(Some(disk.used() + (60 << 10)));
    bench.put_from(internal, 0, &[1; 900]).unwrap();
}
