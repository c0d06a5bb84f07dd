//! Notes of the work in flight, in a file of slots that outlives the process.
//!
//! ```text
//! in-hand        := header [128] · slot*          header := magic [8] · run u64 · 0 [48] · crc32c u32
//! slot [128]     := kind u8 · taken u8 · queue u16 · partition u16 · 0 u16 · first u64 · end u64
//!                   · tenant [16] · id [16] · version i64 · crc32c u32
//! suspects.json  := {"run": the last run included, "suspects": …}
//! ```
//!
//! A note is one positioned write within a page, without a sync: it only has to survive the process. The run number
//! prevents a crash from being counted twice if the process dies again during the start.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use fieldline_core::in_flight::{
    BatchIsolation, CrashSuspects, InFlightBatch, InFlightKept, InFlightWork, LoadInHand,
};
use fieldline_core::ports::{
    InFlightNotes, Offset, Partition, PreviousRunNotes, QueueId, StoreError, StoreErrorKind, StoreResult,
};
use fieldline_model::TenantId;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use tracing::warn;
use uuid::Uuid;

use crate::disk::is_full;

const MAGIC: [u8; 8] = *b"FLHAND\x00\x01";
/// Size of a slot, which never crosses a page, so that its write is never half done.
const SLOT_BYTES: usize = 128;
/// Offset of the checksum.
const BODY_BYTES: usize = 64;
/// Offset of the tenant, id and version.
const OWNED_AT: usize = 24;
/// Slots allocated at the start, in case the disk becomes full.
const PREALLOCATED_SLOTS: usize = 64;
/// Slots beyond this number are ignored: no file of ours has so many.
const MAX_SLOTS: u64 = 65_536;

type SlotBytes = [u8; SLOT_BYTES];

/// Notes in two files of a directory.
pub struct InFlightFile {
    suspects: PathBuf,
    folder: PathBuf,
    file: File,
    run: u64,
    previous_notes: Mutex<PreviousRunNotes>,
}

/// The contents of `suspects.json`.
#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
struct SuspectsFile {
    run: u64,
    suspects: CrashSuspects,
}

impl InFlightFile {
    /// Opens the notes in a directory, or creates them. Unreadable contents count as empty.
    ///
    /// # Errors
    /// The file cannot be opened.
    pub fn open(folder: &Path) -> io::Result<Self> {
        let path = folder.join("in-hand");
        let suspects = folder.join("suspects.json");
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(&path)?;
        let counted = read_counted(&suspects);
        let run = read_run(&file).unwrap_or_default();
        let hands = if run > counted.run {
            read_hands(&file)?
        } else {
            Vec::new()
        };
        Ok(Self {
            suspects,
            folder: folder.to_owned(),
            file,
            run: run.max(counted.run),
            previous_notes: Mutex::new(PreviousRunNotes {
                in_flight: hands,
                suspects: counted.suspects,
            }),
        })
    }

    fn replace_suspects(&self, suspects: &CrashSuspects) -> io::Result<()> {
        let counted = SuspectsFile {
            run: self.run,
            suspects: suspects.clone(),
        };
        let draft = self.folder.join("suspects.json.new");
        let mut file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&draft)?;
        file.write_all(&serde_json::to_vec(&counted)?)?;
        file.sync_all()?;
        std::fs::rename(draft, &self.suspects)?;
        File::open(&self.folder)?.sync_all()
    }
}

impl InFlightNotes for InFlightFile {
    fn previous_run(&self) -> PreviousRunNotes {
        self.previous_notes.lock().clone()
    }

    fn save(&self, suspects: &CrashSuspects) -> StoreResult<()> {
        self.replace_suspects(suspects).map_err(failed)
    }

    fn begin(&self) -> StoreResult<()> {
        *self.previous_notes.lock() = PreviousRunNotes::default();
        // Clears the slots before it writes the run number: after a crash in between, the old notes are already
        // counted.
        self.file.set_len(0).map_err(failed)?;
        self.file
            .write_all_at(&[0; SLOT_BYTES * PREALLOCATED_SLOTS], SLOT_BYTES as u64)
            .map_err(failed)?;
        self.file.write_all_at(&header(self.run + 1), 0).map_err(failed)
    }

    fn note(&self, slot: usize, hand: Option<InFlightWork>) -> StoreResult<()> {
        let bytes = hand.map_or([0; SLOT_BYTES], encode);
        self.file
            .write_all_at(&bytes, (SLOT_BYTES * (slot + 1)) as u64)
            .map_err(failed)
    }
}

fn failed(error: io::Error) -> StoreError {
    let kind = if is_full(&error) {
        StoreErrorKind::DiskFull
    } else {
        StoreErrorKind::Unavailable
    };
    StoreError::new(kind, "The notes of what is in hand cannot be written").caused_by(error)
}

fn read_counted(path: &Path) -> SuspectsFile {
    let read = std::fs::read(path).and_then(|bytes| Ok(serde_json::from_slice(&bytes)?));
    match read {
        Ok(counted) => counted,
        Err(error) => {
            if error.kind() != io::ErrorKind::NotFound {
                warn!(path = %path.display(), %error, "what was suspected cannot be read, nothing is");
            }
            SuspectsFile::default()
        }
    }
}

fn header(run: u64) -> SlotBytes {
    let mut bytes = [0; SLOT_BYTES];
    let mut at = 0;
    put(&mut bytes, &mut at, &MAGIC);
    put(&mut bytes, &mut at, &run.to_le_bytes());
    seal(bytes)
}

fn read_run(file: &File) -> Option<u64> {
    let mut bytes = [0; SLOT_BYTES];
    file.read_exact_at(&mut bytes, 0).ok()?;
    let mut body = opened(&bytes)?;
    (take(&mut body)? == MAGIC).then_some(())?;
    take(&mut body).map(u64::from_le_bytes)
}

fn read_hands(file: &File) -> io::Result<Vec<InFlightWork>> {
    let slots = file.metadata()?.len() / SLOT_BYTES as u64;
    let mut hands = Vec::new();
    for slot in 1..slots.min(MAX_SLOTS) {
        let mut bytes = [0; SLOT_BYTES];
        file.read_exact_at(&mut bytes, slot * SLOT_BYTES as u64)?;
        hands.extend(decode(&bytes));
    }
    Ok(hands)
}

const KIND_PACK: u8 = 1;
const KIND_LOAD: u8 = 2;
const KIND_KEPT: u8 = 3;

fn encode(hand: InFlightWork) -> SlotBytes {
    let mut bytes = [0; SLOT_BYTES];
    let mut at = 0;
    match hand {
        InFlightWork::Pack(pack) => {
            let taken = match pack.isolation {
                BatchIsolation::Usual => 0,
                BatchIsolation::Apart => 1,
                BatchIsolation::Exclusively => 2,
            };
            put(&mut bytes, &mut at, &[KIND_PACK, taken]);
            put(&mut bytes, &mut at, &pack.partition.queue.0.to_le_bytes());
            put(&mut bytes, &mut at, &pack.partition.index.to_le_bytes());
            put(&mut bytes, &mut at, &[0; 2]);
            put(&mut bytes, &mut at, &pack.first.0.to_le_bytes());
            put(&mut bytes, &mut at, &pack.end.0.to_le_bytes());
        }
        InFlightWork::Load(load) => {
            put(&mut bytes, &mut at, &[KIND_LOAD]);
            put_owned(&mut bytes, load.tenant, load.id, load.version);
        }
        InFlightWork::Kept(kept) => {
            put(&mut bytes, &mut at, &[KIND_KEPT]);
            put_owned(&mut bytes, kept.tenant, kept.id, 0);
        }
    }
    seal(bytes)
}

/// Writes tenant, id and version, after the fields of a partition.
fn put_owned(bytes: &mut SlotBytes, tenant: TenantId, id: Uuid, version: i64) {
    let mut at = OWNED_AT;
    put(bytes, &mut at, tenant.0.as_bytes());
    put(bytes, &mut at, id.as_bytes());
    put(bytes, &mut at, &version.to_le_bytes());
}

/// Decodes a slot; `None` if it is empty or damaged.
fn decode(bytes: &SlotBytes) -> Option<InFlightWork> {
    let mut body = opened(bytes)?;
    let [kind, taken] = take(&mut body)?;
    let queue = u16::from_le_bytes(take(&mut body)?);
    let index = u16::from_le_bytes(take(&mut body)?);
    let _: [u8; 2] = take(&mut body)?;
    let [first, end] = [take(&mut body)?, take(&mut body)?].map(u64::from_le_bytes);
    match kind {
        KIND_PACK => Some(InFlightWork::Pack(InFlightBatch {
            partition: Partition {
                queue: QueueId(queue),
                index,
            },
            first: Offset(first),
            end: Offset(end),
            isolation: match taken {
                0 => BatchIsolation::Usual,
                1 => BatchIsolation::Apart,
                _ => BatchIsolation::Exclusively,
            },
        })),
        KIND_LOAD | KIND_KEPT => {
            let mut body = bytes.get(OWNED_AT..BODY_BYTES)?;
            let tenant = TenantId(Uuid::from_bytes(take(&mut body)?));
            let id = Uuid::from_bytes(take(&mut body)?);
            let version = i64::from_le_bytes(take(&mut body)?);
            Some(match kind {
                KIND_KEPT => InFlightWork::Kept(InFlightKept { tenant, id }),
                _ => InFlightWork::Load(LoadInHand { tenant, id, version }),
            })
        }
        _ => None,
    }
}

fn put(bytes: &mut SlotBytes, at: &mut usize, part: &[u8]) {
    if let Some(place) = bytes.get_mut(*at..*at + part.len()) {
        place.copy_from_slice(part);
    }
    *at += part.len();
}

fn take<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
    let (first, rest) = bytes.split_first_chunk()?;
    *bytes = rest;
    Some(*first)
}

/// Adds the checksum.
fn seal(mut bytes: SlotBytes) -> SlotBytes {
    let sum = crc32c::crc32c(bytes.get(..BODY_BYTES).unwrap_or_default());
    let mut at = BODY_BYTES;
    put(&mut bytes, &mut at, &sum.to_le_bytes());
    bytes
}

/// Returns the bytes before the checksum, if it matches.
fn opened(bytes: &SlotBytes) -> Option<&[u8]> {
    let (body, mut rest) = bytes.split_at_checked(BODY_BYTES)?;
    (take(&mut rest)? == crc32c::crc32c(body).to_le_bytes()).then_some(body)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pack(first: u64, taken: BatchIsolation) -> InFlightWork {
        InFlightWork::Pack(InFlightBatch {
            partition: Partition {
                queue: QueueId(700),
                index: 3,
            },
            first: Offset(first),
            end: Offset(u64::MAX),
            isolation: taken,
        })
    }

    fn load(version: i64) -> InFlightWork {
        InFlightWork::Load(LoadInHand {
            tenant: TenantId::new(),
            id: Uuid::from_u128(7),
            version,
        })
    }

    /// Opens the notes, and does the same as a start.
    fn start(folder: &Path) -> (InFlightFile, PreviousRunNotes) {
        let file = InFlightFile::open(folder).unwrap();
        let left = file.previous_run();
        let mut suspects = left.suspects.clone();
        suspects.count(&left.in_flight);
        file.save(&suspects).unwrap();
        file.begin().unwrap();
        (file, left)
    }

    #[test]
    fn what_was_in_hand_is_found_once() {
        let folder = tempfile::tempdir().unwrap();
        let hands = [
            pack(1, BatchIsolation::Usual),
            pack(2, BatchIsolation::Apart),
            pack(3, BatchIsolation::Exclusively),
            load(-4),
            InFlightWork::Kept(InFlightKept {
                tenant: TenantId::new(),
                id: Uuid::from_u128(8),
            }),
        ];
        let (file, left) = start(folder.path());
        assert!(left.in_flight.is_empty() && left.suspects == CrashSuspects::default());
        for (slot, hand) in hands.iter().enumerate() {
            file.note(slot, Some(*hand)).unwrap();
        }
        file.note(hands.len(), Some(load(1))).unwrap();
        file.note(hands.len(), None).unwrap();
        // More slots than are preallocated.
        file.note(PREALLOCATED_SLOTS * 2, Some(hands[0])).unwrap();
        drop(file);

        let file = InFlightFile::open(folder.path()).unwrap();
        let left = file.previous_run();
        assert_eq!(left.in_flight[..5], hands);
        assert_eq!(left.in_flight[5..], [hands[0]]);
        let mut suspects = left.suspects;
        suspects.count(&left.in_flight);
        file.save(&suspects).unwrap();
        drop(file);
        // The process died between the two steps: the crash is already counted.
        let (_, left) = start(folder.path());
        assert_eq!((left.in_flight, &left.suspects), (Vec::new(), &suspects));
        let (_, left) = start(folder.path());
        assert_eq!((left.in_flight, &left.suspects), (Vec::new(), &suspects));
    }

    #[test]
    fn what_is_damaged_is_taken_for_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let (file, _) = start(folder.path());
        file.note(0, Some(pack(1, BatchIsolation::Usual))).unwrap();
        file.note(1, Some(load(1))).unwrap();
        file.file.write_all_at(&[0xff], SLOT_BYTES as u64 + 9).unwrap();
        drop(file);
        let (_, left) = start(folder.path());
        assert!(matches!(left.in_flight[..], [InFlightWork::Load(_)]), "{left:?}");

        std::fs::write(folder.path().join("suspects.json"), "{").unwrap();
        std::fs::write(folder.path().join("in-hand"), "something else").unwrap();
        let (file, left) = start(folder.path());
        assert!(left.in_flight.is_empty() && left.suspects == CrashSuspects::default());
        file.note(0, Some(load(1))).unwrap();
        drop(file);
        assert_eq!(start(folder.path()).1.in_flight.len(), 1);
    }
}
