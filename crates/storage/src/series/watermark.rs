//! The number of the last durable checkpoint, in a file that the engine does not know.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::Path;

use fieldline_core::ports::StoreResult;
use parking_lot::Mutex;

use super::error;

const FILE: &str = "checkpoint.watermark";

/// The file, and the number in it.
pub(super) struct CheckpointWatermark {
    file: Mutex<(File, u64)>,
}

impl CheckpointWatermark {
    /// Opens the file. A torn or missing one counts as 0: it is a lower bound and never wrong for being too low.
    pub(super) fn open(dir: &Path) -> StoreResult<Self> {
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(dir.join(FILE))
            .map_err(error::io)?;
        let mut bytes = [0; 12];
        let number = match file.read_exact(&mut bytes) {
            Ok(()) => decode(&bytes),
            Err(cause) if cause.kind() == ErrorKind::UnexpectedEof => 0,
            Err(cause) => return Err(error::io(cause)),
        };
        Ok(Self {
            file: Mutex::new((file, number)),
        })
    }

    pub(super) fn get(&self) -> u64 {
        self.file.lock().1
    }

    /// Notes a checkpoint that is durable. Failing is harmless, and not worth failing for.
    pub(super) fn raise(&self, number: u64) {
        let mut held = self.file.lock();
        if held.1 >= number {
            return;
        }
        let written = held
            .0
            .seek(SeekFrom::Start(0))
            .and_then(|_| held.0.write_all(&encode(number)));
        match written {
            Ok(()) => held.1 = number,
            Err(error) => tracing::debug!(%error, "checkpoint watermark not written"),
        }
    }
}

fn encode(number: u64) -> [u8; 12] {
    let mut bytes = [0; 12];
    let (front, back) = bytes.split_at_mut(8);
    front.copy_from_slice(&number.to_le_bytes());
    back.copy_from_slice(&crc32c::crc32c(&number.to_le_bytes()).to_le_bytes());
    bytes
}

fn decode(bytes: &[u8; 12]) -> u64 {
    let (number, _) = bytes
        .split_first_chunk::<8>()
        .map_or(([0; 8], &[][..]), |(n, r)| (*n, r));
    let number = u64::from_le_bytes(number);
    if encode(number) == *bytes { number } else { 0 }
}
