//! Whatever is in the journal's files: nothing panics, nothing is delivered that was not written.
//!
//! The first byte of an input chooses: a record as a consumer decodes it; a block with its checksums put right, so that
//! what lies behind them is reached; or damage to the files of a real journal, which then has to open or to report it.
#![no_main]

use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::OnceLock;
use std::task::{Context, Poll, Waker};

use fieldline_core::ports::{AppendOrigin, ConsumerEvent, Journal, JournalConsumer, JournalError, Partition};
use fieldline_journal::{EmbeddedJournal, Options, format};
use fieldline_model::TenantId;
use fieldline_model::kv::unpack;
use fieldline_model::record::{JournalRecord, RecordBatch, RecordBody, diverted, message, rows, split};
use libfuzzer_sys::fuzz_target;
use uuid::Uuid;

const LOG: u64 = 7;
const RECORDS: u8 = 12;

fuzz_target!(|data: &[u8]| {
    let Some((choice, data)) = data.split_first() else {
        return;
    };
    match choice % 3 {
        0 => records(data),
        1 => block(data),
        _ => damaged_journal(data),
    }
});

fn records(bytes: &[u8]) {
    for record in split(bytes) {
        let Ok(record) = record else { return };
        let Ok(record) = JournalRecord::decode(record) else {
            continue;
        };
        match record.body {
            RecordBody::Attributes { values, .. } => {
                let _ = unpack(values).count();
            }
            RecordBody::Telemetry { rows: all, .. } => {
                for row in rows(all).flatten() {
                    let _ = unpack(row.values).count();
                }
            }
            RecordBody::Message(bytes) => {
                let _ = message::decode(record.subject.entity, record.received_ms, bytes);
            }
            RecordBody::Diverted(bytes) => {
                let _ = diverted::decode(record.subject, record.received_ms, bytes);
            }
        }
    }
}

/// Takes header fields, table and sections from the input, and makes the checksums of header and table right.
fn block(data: &[u8]) {
    let Some((fields, body)) = data.split_first_chunk::<6>() else {
        return;
    };
    let entries = u32::from(fields[0] % 8);
    let table = body
        .get(..entries as usize * format::ENTRY_BYTES)
        .unwrap_or_default();
    let header = format::BlockHeader {
        log: LOG,
        sequence: u64::from(fields[1]),
        synced_through: u64::from(fields[2]),
        payload_bytes: u32::from(fields[3]) << (fields[4] % 25),
        entries,
        table_crc: crc32c::crc32c(table),
        is_void: fields[5] == 0,
    };
    let bytes = [header.encode().as_slice(), body].concat();
    if let Ok((decoded, sections)) = format::decode_block(&bytes, LOG) {
        assert_eq!(decoded, header);
        for (_, section) in sections {
            records(section);
        }
    }
    let _ = format::decode_block(body, LOG);
}

/// A journal's files as they were written.
struct Files {
    dir: PathBuf,
    manifest: Vec<u8>,
    segments: Vec<(String, Vec<u8>)>,
}

fn options(discard_damaged: bool) -> Options {
    Options {
        segment_bytes: fieldline_core::options::ByteSize::kib(4),
        min_free_disk: fieldline_core::options::ByteSize(0),
        discard_damaged,
        ..Options::default()
    }
}

fn files() -> &'static Files {
    static FILES: OnceLock<Files> = OnceLock::new();
    FILES.get_or_init(|| {
        // In memory where there is such a place: every input opens a journal, which syncs.
        let base = Some(Path::new("/dev/shm")).filter(|path| path.is_dir());
        let base = base.map_or_else(std::env::temp_dir, Path::to_owned);
        let dir = base.join(format!("fieldline-fuzz-journal-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&dir);
        let journal = EmbeddedJournal::open(&dir, &options(false)).expect("a new journal opens");
        let queue = journal.open_queue("Main", 2).expect("a queue opens");
        for number in 0..RECORDS {
            let mut batch = RecordBatch::new();
            batch.push(&original(number));
            let partition = Partition {
                queue,
                index: u16::from(number % 2),
            };
            let mut append = pin!(
                journal
                    .append(partition, &batch, AppendOrigin::Device(TenantId(Uuid::nil())))
                    .expect("there is room")
            );
            while append
                .as_mut()
                .poll(&mut Context::from_waker(Waker::noop()))
                .is_pending()
            {
                std::thread::yield_now();
            }
        }
        drop(journal);
        let mut segments = Vec::new();
        for entry in std::fs::read_dir(&dir).expect("it is there") {
            let name = entry
                .expect("it is there")
                .file_name()
                .into_string()
                .expect("plain names");
            if name.ends_with(".log") {
                let bytes = std::fs::read(dir.join(&name)).expect("it can be read");
                segments.push((name, bytes));
            }
        }
        segments.sort();
        Files {
            manifest: std::fs::read(dir.join("manifest")).expect("it can be read"),
            dir,
            segments,
        }
    })
}

fn original(number: u8) -> Vec<u8> {
    vec![number; 700 + usize::from(number)]
}

/// Three bytes choose the segment and its new length, every further four change one byte.
fn damaged_journal(data: &[u8]) {
    let Some(([segment, cut @ ..], changes)) = data.split_first_chunk::<3>() else {
        return;
    };
    let files = files();
    for entry in std::fs::read_dir(&files.dir).expect("it is there").flatten() {
        let _ = std::fs::remove_file(entry.path());
    }
    std::fs::write(files.dir.join("manifest"), &files.manifest).expect("there is room");
    for (index, (name, bytes)) in files.segments.iter().enumerate() {
        let mut bytes = bytes.clone();
        if index == usize::from(*segment) % files.segments.len() {
            let length = usize::from(u16::from_le_bytes(*cut)) % (2 * bytes.len());
            bytes.resize(length, 0);
            for change in changes.chunks_exact(4) {
                let at = usize::from(u16::from_le_bytes([change[0], change[1]]));
                if let Some(byte) = bytes.get_mut(at) {
                    *byte = if change[2] % 2 == 0 {
                        change[3]
                    } else {
                        *byte ^ change[3]
                    };
                }
            }
        }
        std::fs::write(files.dir.join(name), bytes).expect("there is room");
    }
    match EmbeddedJournal::open(&files.dir, &options(false)) {
        Ok(journal) => delivers_originals_only(&journal),
        Err(JournalError::Corrupt(_)) => {}
        Err(error) => panic!("{error}"),
    }
    match EmbeddedJournal::open(&files.dir, &options(true)) {
        Ok(journal) => delivers_originals_only(&journal),
        Err(JournalError::Corrupt(_)) => {}
        Err(error) => panic!("{error}"),
    }
}

fn delivers_originals_only(journal: &EmbeddedJournal) {
    let queue = journal.open_queue("Main", 2).expect("it exists");
    let mut consumers = journal.subscribe(queue, "fuzz", 1).expect("a group joins");
    let consumer = consumers.first_mut().expect("one member");
    let mut last = [None; 2];
    while let Some(ConsumerEvent::Records(_) | ConsumerEvent::Assigned(_)) =
        deliver(consumer.as_mut(), &mut last)
    {}
}

fn deliver(consumer: &mut dyn JournalConsumer, last: &mut [Option<u8>; 2]) -> Option<ConsumerEvent> {
    let mut next = consumer.next(2000);
    let Poll::Ready(delivery) = next.as_mut().poll(&mut Context::from_waker(Waker::noop())) else {
        return None;
    };
    let delivery = delivery.ok()?;
    if let ConsumerEvent::Records(records) = &delivery {
        for record in split(&records.bytes) {
            let record = record.expect("whole records");
            let number = record.first().copied().expect("none was empty");
            assert_eq!(record, original(number));
            let last = &mut last[usize::from(records.partition.index)];
            assert!(last.is_none_or(|last| last < number), "once and in order");
            *last = Some(number);
        }
    }
    Some(delivery)
}
