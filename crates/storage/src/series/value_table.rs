//! A table of latest values or attributes, as the cache over it sees it.
//!
//! The embedded engine keeps a row a value: it writes what changed and merges later. PostgreSQL pays for each row it
//! touches, so there a row is a *page* of up to 32 values of a group, and a value stays in its page.
//!
//! ```text
//! a value := key: group · name        value: ts i64 · ttl u32 · packed value
//! a page  := key: group · page u16    value: (name length varint · name · length varint · a value's bytes)*
//! ```

use fieldline_core::ports::StoreResult;
use fieldline_model::kv::{CorruptData, read_varint, take, write_varint};

use super::backing::{SeriesTable, TableEntry};
use super::cached_value::{CachedValue, cell_key};
use super::error;
use super::keys::{GROUP_BYTES, ValueGroupKey};

/// Values of a page.
pub(super) const PAGE_VALUES: u32 = 32;

/// A table of values.
#[derive(Clone)]
pub(super) struct ValueTable {
    pub(super) rows: SeriesTable,
    is_paged: bool,
}

/// A value as it is stored: its page, its name and its bytes.
pub(super) type StoredCell<'a> = (u16, &'a str, &'a [u8]);

impl ValueTable {
    pub(super) const fn new(rows: SeriesTable, is_paged: bool) -> Self {
        Self { rows, is_paged }
    }

    /// Whether a row is a page of values.
    pub(super) const fn is_paged(&self) -> bool {
        self.is_paged
    }

    /// Shows the values of a row.
    pub(super) fn cells(
        &self,
        (key, value): &TableEntry,
        mut show: impl FnMut(StoredCell<'_>) -> Result<(), CorruptData>,
    ) -> Result<(), CorruptData> {
        let rest = key.get(GROUP_BYTES..).unwrap_or_default();
        if !self.is_paged {
            return show((0, utf8(rest)?, value));
        }
        let page = rest
            .try_into()
            .map_err(|_| CorruptData("page key has another length"))?;
        let page = u16::from_be_bytes(page);
        let rest = &mut &value[..];
        while !rest.is_empty() {
            let name = utf8(take_run(rest)?)?;
            show((page, name, take_run(rest)?))?;
        }
        Ok(())
    }

    /// Shows the named values of a group that are stored, with the places of their names.
    pub(super) fn visit_named(
        &self,
        group: &ValueGroupKey,
        names: &[String],
        visit: &mut dyn FnMut(usize, &CachedValue),
    ) -> StoreResult<()> {
        if self.is_paged {
            for entry in self.rows.prefix(group) {
                self.visit_named_of_row(&entry?, names, visit)?;
            }
            return Ok(());
        }
        for (place, name) in names.iter().enumerate() {
            if let Some(bytes) = self.rows.get(&cell_key(group, name))? {
                let cell = CachedValue::decode(name.as_str().into(), &bytes)
                    .map_err(|cause| error::corrupt(group, cause))?;
                visit(place, &cell);
            }
        }
        Ok(())
    }

    /// The same of the values in one row.
    pub(super) fn visit_named_of_row(
        &self,
        entry: &TableEntry,
        names: &[String],
        visit: &mut dyn FnMut(usize, &CachedValue),
    ) -> StoreResult<()> {
        let shown = self.cells(entry, |(_, name, bytes)| {
            if let Some(place) = names.iter().position(|wanted| wanted == name) {
                visit(place, &CachedValue::decode(name.into(), bytes)?);
            }
            Ok(())
        });
        shown.map_err(|cause| error::corrupt(&entry.0, cause))
    }
}

/// The key of a page.
pub(super) fn page_key(group: &ValueGroupKey, page: u16) -> [u8; GROUP_BYTES + 2] {
    let mut key = [0; GROUP_BYTES + 2];
    let (front, back) = key.split_at_mut(GROUP_BYTES);
    front.copy_from_slice(group);
    back.copy_from_slice(&page.to_be_bytes());
    key
}

/// Adds a value to the bytes of its page.
pub(super) fn put_in_page(cell: &CachedValue, page: &mut Vec<u8>) {
    let bytes = cell.encode();
    write_varint(cell.name.len() as u64, page);
    page.extend_from_slice(cell.name.as_bytes());
    write_varint(bytes.len() as u64, page);
    page.extend_from_slice(&bytes);
}

fn take_run<'a>(rest: &mut &'a [u8]) -> Result<&'a [u8], CorruptData> {
    let length = usize::try_from(read_varint(rest)?).map_err(|_| CorruptData("value is too long"))?;
    take(rest, length)
}

fn utf8(bytes: &[u8]) -> Result<&str, CorruptData> {
    std::str::from_utf8(bytes).map_err(|_| CorruptData("name is not UTF-8"))
}
