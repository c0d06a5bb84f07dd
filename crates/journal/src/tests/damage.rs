//! Tests with damaged bytes.

use proptest::prelude::*;

use super::sim::{Crash, SimDisk};
use super::{Bench, options};
use crate::Options;
use fieldline_core::ports::JournalError;

fn record(number: usize) -> Vec<u8> {
    let mut record = format!("record {number} ").into_bytes();
    record.resize(100 + number % 300, b'x');
    record
}

/// Creates a log of a few segments with some records in each partition.
fn filled(disk: &SimDisk, records: usize) -> Vec<Vec<Vec<u8>>> {
    let mut bench = Bench::open(disk, &options()).unwrap();
    for number in 0..records {
        bench.put((number % 3) as u16, &record(number)).unwrap();
    }
    bench.read_all().unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn a_flipped_byte_is_reported_or_cut_off_with_the_tail_and_never_delivered(
        segment in any::<prop::sample::Index>(),
        at in any::<prop::sample::Index>(),
        mask in 1_u8..,
        while_open in any::<bool>(),
    ) {
        let disk = SimDisk::default();
        let written = filled(&disk, 60);
        let reader = while_open.then(|| Bench::open(&disk, &options()).unwrap());
        let segments = disk.segments();
        let last = segments.len() - 1;
        let index = segment.index(segments.len());
        let (name, length) = &segments[index];
        let at = at.index(*length);
        disk.flip(name, at, mask);

        let read = match reader {
            Some(bench) => bench.read_all(),
            None => Bench::open(&disk, &options()).and_then(|bench| bench.read_all()),
        };
        match read {
            Err(JournalError::Corrupt(report)) => {
                prop_assert!(report.contains(name.as_str()), "{report}");
            }
            Err(other) => panic!("{other}"),
            Ok(read) => {
                // Only the very last block may be mistaken for an unfinished write.
                prop_assert!(!while_open && index == last && at + 600 > *length, "{name} {at}");
                let missing: usize = written.iter().zip(&read).map(|(a, b)| a.len() - b.len()).sum();
                prop_assert!(missing <= 1);
                for (written, read) in written.iter().zip(&read) {
                    prop_assert_eq!(&written[..read.len()], &read[..]);
                }
            }
        }
    }

    #[test]
    fn given_up_damage_costs_its_block_and_nothing_else(
        segment in any::<prop::sample::Index>(),
        at in any::<prop::sample::Index>(),
        mask in 1_u8..,
    ) {
        let disk = SimDisk::default();
        let written = filled(&disk, 60);
        let segments = disk.segments();
        let (name, length) = &segments[segment.index(segments.len())];
        disk.flip(name, at.index(*length), mask);

        let discard = Options { discard_damaged: true, ..options() };
        let mut bench = Bench::open(&disk, &discard).unwrap();
        bench.put(1, b"after").unwrap();
        drop(bench);
        let read = Bench::open(&disk, &options()).unwrap().read_all().unwrap();
        let missing: Vec<_> = written
            .iter()
            .flatten()
            .filter(|record| !read.iter().flatten().any(|found| found == *record))
            .collect();
        prop_assert!(missing.len() <= 1, "{missing:?}");
        prop_assert_eq!(read[1].last().map(Vec::as_slice), Some(b"after".as_slice()));
    }
}

#[test]
fn a_report_says_where_the_damage_is_and_what_to_do() {
    let disk = SimDisk::default();
    filled(&disk, 60);
    let (name, length) = disk.segments()[1].clone();
    disk.flip(&name, length / 2, 1);
    let report = Bench::open(&disk, &options()).err().unwrap().to_string();
    for part in [
        name.as_str(),
        "at byte ",
        "where block ",
        "the next good block is ",
        "discard-damaged",
    ] {
        assert!(report.contains(part), "{part} in {report}");
    }
}

#[test]
fn damage_to_the_last_block_is_known_from_an_unfinished_write_after_an_orderly_end() {
    let disk = SimDisk::default();
    let mut bench = Bench::open(&disk, &options()).unwrap();
    bench.put(0, &record(1)).unwrap();
    bench.committer.end();
    drop(bench.journal);
    let (name, length) = disk.segments()[0].clone();
    disk.flip(&name, length / 2, 1);
    assert!(matches!(
        Bench::open(&disk, &options()).err(),
        Some(JournalError::Corrupt(_))
    ));
}

#[test]
fn records_that_look_like_blocks_do_not_pass_for_blocks() {
    let disk = SimDisk::default();
    let mut bench = Bench::open(&disk, &options()).unwrap();
    let fake = crate::format::BlockHeader {
        log: 0,
        sequence: 900,
        synced_through: 899,
        payload_bytes: 0,
        entries: 0,
        table_crc: 0,
        is_void: false,
    };
    bench.put(0, b"first").unwrap();
    bench.put(0, &fake.encode()).unwrap();
    drop(bench);
    let (name, length) = disk.segments()[0].clone();
    // Damages the head of the block that holds the fake.
    disk.flip(&name, length - 100, 1);
    let found = Bench::open(&disk, &options()).unwrap().read_all().unwrap();
    assert_eq!(found[0], [b"first".to_vec()]);
}

#[test]
fn a_missing_segment_and_a_missing_manifest_are_reported() {
    let disk = SimDisk::default();
    filled(&disk, 60);
    let (name, _) = disk.segments()[1].clone();
    let copy = disk.after(Crash::Process, 1);
    crate::disk::JournalDisk::remove(&copy, &name).unwrap();
    let report = Bench::open(&copy, &options()).err().unwrap().to_string();
    assert!(report.contains(&name), "{report}");

    crate::disk::JournalDisk::remove(&disk, "manifest").unwrap();
    let report = Bench::open(&disk, &options()).err().unwrap().to_string();
    assert!(report.contains("manifest"), "{report}");
}
