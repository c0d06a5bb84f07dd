//! What a failure of the engine means for the caller.

use std::io::ErrorKind;
use std::path::Path;

use fieldline_core::ports::{StoreError, StoreErrorKind};
use fieldline_model::kv::CorruptData;

use super::keys;
use super::metrics::CORRUPT;

pub(super) fn io_kind(error: &std::io::Error) -> StoreErrorKind {
    match error.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => StoreErrorKind::DiskFull,
        ErrorKind::UnexpectedEof | ErrorKind::InvalidData => StoreErrorKind::Corrupt,
        _ => StoreErrorKind::Unavailable,
    }
}

/// The class of a failed call to the engine.
pub(crate) fn kind(error: &fjall::Error) -> StoreErrorKind {
    match error {
        fjall::Error::Io(error) | fjall::Error::Storage(fjall::LsmError::Io(error)) => io_kind(error),
        fjall::Error::Poisoned | fjall::Error::Locked | fjall::Error::KeyspaceDeleted => {
            StoreErrorKind::Unavailable
        }
        _ => StoreErrorKind::Corrupt,
    }
}

/// The error of a failed call to the engine.
pub(super) fn engine(error: fjall::Error) -> StoreError {
    let kind = kind(&error);
    let message = match kind {
        StoreErrorKind::DiskFull => "the disk of the time-series store is full",
        StoreErrorKind::Corrupt => {
            metrics::counter!(CORRUPT).increment(1);
            "a file of the time-series store is corrupt"
        }
        _ => "the time-series store cannot serve now",
    };
    StoreError::new(kind, message).caused_by(error)
}

/// The error of a start that found a damaged file, with what an operator can do.
pub(super) fn cannot_open(dir: &Path, error: StoreError) -> StoreError {
    if error.kind() != StoreErrorKind::Corrupt {
        return error;
    }
    let message = format!(
        "a file in {} is damaged ({error}): restore the directory from a backup, or move it away to start with empty time \
         series; what the journal still holds is stored again",
        dir.display()
    );
    StoreError::new(StoreErrorKind::Corrupt, message)
}

/// The error of a failed file operation beside the engine.
pub(super) fn io(error: std::io::Error) -> StoreError {
    StoreError::new(
        io_kind(&error),
        "a file of the time-series store cannot be read or written",
    )
    .caused_by(error)
}

/// The error of stored bytes that do not pass their checks, which names the series they belong to.
pub(super) fn corrupt(key: &[u8], cause: CorruptData) -> StoreError {
    metrics::counter!(CORRUPT).increment(1);
    let subject =
        keys::read_subject(key).map_or_else(|| "an unknown entity".to_owned(), |it| it.entity.to_string());
    let message = match keys::read_series_name(key) {
        Some(name) => format!("stored data of series `{name}` of {subject} are corrupt"),
        None => format!("stored data of {subject} are corrupt"),
    };
    StoreError::new(StoreErrorKind::Corrupt, message).caused_by(cause)
}

/// The error of calls that come after the store was closed.
pub(super) fn closed() -> StoreError {
    StoreError::new(StoreErrorKind::Unavailable, "the time-series store is closed")
}
