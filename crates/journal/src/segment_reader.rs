//! Walks through a segment block by block, reading the heads and only the requested sections.

use std::io;
use std::sync::Arc;

use crate::disk::{DiskFile, read_exact_at};
use crate::error::ReadError;
use crate::format::{BadBlock, BlockHeader, HEADER_BYTES, SectionEntry, decode_table};

/// Bytes read at once: several heads of small blocks come with one read, bodies of large blocks are skipped.
const WINDOW_BYTES: usize = 16 << 10;

/// A cursor in one segment file.
pub(crate) struct SegmentReader {
    pub(crate) file: Arc<dyn DiskFile>,
    log: u64,
    window: Vec<u8>,
    window_start: u64,
}

impl SegmentReader {
    pub(crate) fn new(file: Arc<dyn DiskFile>, log: u64) -> Self {
        Self {
            file,
            log,
            window: Vec::new(),
            window_start: 0,
        }
    }

    /// Reads and checks the header and the section table of the block at a position, without reading at or after
    /// `limit`.
    pub(crate) fn head(
        &mut self,
        position: u64,
        limit: u64,
        entries: &mut Vec<SectionEntry>,
    ) -> Result<BlockHeader, ReadError> {
        let log = self.log;
        let room = limit.saturating_sub(position);
        let bytes = self.bytes(position, HEADER_BYTES.min(room as usize), limit)?;
        let header = BlockHeader::decode(bytes, log)?;
        if header.block_bytes() > room {
            return Err(BadBlock::Cut.into());
        }
        let table = self.bytes(position + HEADER_BYTES as u64, header.table_bytes(), limit)?;
        decode_table(&header, table, entries)?;
        Ok(header)
    }

    /// Appends the bytes of a section to `out` and checks them.
    pub(crate) fn section(
        &mut self,
        position: u64,
        entry: &SectionEntry,
        out: &mut Vec<u8>,
    ) -> Result<(), ReadError> {
        let start = out.len();
        let length = entry.bytes as usize;
        if let Some(bytes) = self.windowed(position, length) {
            out.extend_from_slice(bytes);
        } else {
            out.resize(start + length, 0);
            let place = out.get_mut(start..).unwrap_or_default();
            read_exact_at(self.file.as_ref(), place, position)?;
        }
        entry.check(out.get(start..).unwrap_or_default())?;
        Ok(())
    }

    fn windowed(&self, position: u64, length: usize) -> Option<&[u8]> {
        let start = usize::try_from(position.checked_sub(self.window_start)?).ok()?;
        self.window.get(start..start.checked_add(length)?)
    }

    fn bytes(&mut self, position: u64, length: usize, limit: u64) -> io::Result<&[u8]> {
        if self.windowed(position, length).is_none() {
            let room = usize::try_from(limit.saturating_sub(position)).unwrap_or(usize::MAX);
            self.window.clear();
            self.window.shrink_to(WINDOW_BYTES);
            self.window.resize(length.max(WINDOW_BYTES.min(room)), 0);
            self.window_start = position;
            let read = read_exact_at(self.file.as_ref(), &mut self.window, position);
            if read.is_err() {
                self.window.clear();
            }
            read?;
        }
        Ok(self.windowed(position, length).unwrap_or_default())
    }
}
