//! Shorthands for the port's errors.

use std::io;

use fieldline_core::ports::JournalError;

use crate::disk::JournalDisk;
use crate::format::BadBlock;

/// Converts an I/O error to the port's error; the context names the operation.
pub(crate) fn failed(context: String) -> impl FnOnce(io::Error) -> JournalError {
    move |source| JournalError::Io { context, source }
}

/// Creates the error for an invalid request of the caller.
pub(crate) fn invalid(message: String) -> JournalError {
    JournalError::Io {
        context: "journal".to_owned(),
        source: io::Error::new(io::ErrorKind::InvalidInput, message),
    }
}

/// A failed read of a block, or a bad block.
#[derive(Debug)]
pub(crate) enum ReadError {
    Io(io::Error),
    Bad(BadBlock),
}

impl From<io::Error> for ReadError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl From<BadBlock> for ReadError {
    fn from(bad: BadBlock) -> Self {
        Self::Bad(bad)
    }
}

/// The report on bytes that fail their checks.
pub(crate) struct DamageReport<'a> {
    pub(crate) disk: &'a dyn JournalDisk,
    pub(crate) file: &'a str,
    pub(crate) position: u64,
    pub(crate) sequence: Option<u64>,
    pub(crate) bad: BadBlock,
    pub(crate) next_good: Option<(u64, u64)>,
}

impl DamageReport<'_> {
    pub(crate) fn report(&self) -> JournalError {
        let file = self.disk.describe(self.file);
        let sequence = self.sequence.map_or(String::new(), |sequence| {
            format!(", where block {sequence} was written")
        });
        let next = self.next_good.map_or(String::new(), |(position, sequence)| {
            format!("; the next good block is {sequence} at byte {position}")
        });
        let advice = if matches!(self.bad, BadBlock::Version(_)) {
            "start the newer program that wrote it"
        } else {
            "put the file back from a copy, or set the journal's option discard-damaged for one start, which gives up the \
             records of the damaged blocks"
        };
        JournalError::Corrupt(format!(
            "the journal is damaged: {file} at byte {}{sequence}: {}{next}. It was on the disk once, so this is no \
             unfinished write. What to do: {advice}",
            self.position, self.bad
        ))
    }
}
