//! Brings the tables of a query up to date, with the columns that it needs.

use std::ops::Deref;
use std::sync::atomic::Ordering as Atomic;

use fieldline_core::ports::{StoreError, StoreErrorKind, StoreResult, ValueReader, ValueSource};
use fieldline_model::query::{EntityQueryKey, KeyType};
use fieldline_model::timeseries::AttributeScope;
use parking_lot::{RwLockReadGuard, RwLockUpgradableReadGuard};

use super::table::{ColumnKey, TableData, source_bit};
use super::table_cache::EntityTable;

/// How much a query may take, bytes.
#[derive(Debug, Clone, Copy)]
pub(super) struct QueryMemoryLimits {
    /// The columns that it needs of a table.
    pub(super) memory: usize,
    /// What it shows.
    pub(super) page: usize,
}

impl Default for QueryMemoryLimits {
    fn default() -> Self {
        Self {
            memory: 256 << 20,
            page: 64 << 20,
        }
    }
}

/// Where the entities of a part are.
pub(super) enum TableSource {
    /// In memory for all queries.
    Shared(std::sync::Arc<EntityTable>),
    /// Read for this query alone.
    Own(Box<TableData>),
}

/// The columns that keys need.
pub(super) fn columns<'a>(keys: impl Iterator<Item = &'a EntityQueryKey>) -> Vec<ColumnKey> {
    let mut columns: Vec<ColumnKey> = keys
        .flat_map(|key| {
            sources(key.key_type)
                .iter()
                .map(|source| (*source, key.key.clone()))
        })
        .collect();
    columns.sort_unstable();
    columns.dedup();
    columns
}

pub(super) const fn sources(kind: KeyType) -> &'static [ValueSource] {
    match kind {
        KeyType::TimeSeries => &[ValueSource::Latest],
        KeyType::ClientAttribute => &[ValueSource::Attribute(AttributeScope::Client)],
        KeyType::SharedAttribute => &[ValueSource::Attribute(AttributeScope::Shared)],
        KeyType::ServerAttribute => &[ValueSource::Attribute(AttributeScope::Server)],
        KeyType::Attribute => &[
            ValueSource::Attribute(AttributeScope::Client),
            ValueSource::Attribute(AttributeScope::Shared),
            ValueSource::Attribute(AttributeScope::Server),
        ],
        KeyType::EntityField | KeyType::AlarmField => &[],
    }
}

pub(super) enum TableGuard<'a> {
    Shared(RwLockReadGuard<'a, TableData>),
    Own(&'a TableData),
}

impl Deref for TableGuard<'_> {
    type Target = TableData;

    fn deref(&self) -> &TableData {
        match self {
            Self::Shared(data) => data,
            Self::Own(data) => data,
        }
    }
}

/// Brings a table up to date, with the columns that are wanted.
pub(super) fn prepare<'a>(
    source: &'a mut TableSource,
    wanted: &[ColumnKey],
    reader: &dyn ValueReader,
    limits: QueryMemoryLimits,
) -> StoreResult<TableGuard<'a>> {
    let check = |data: &TableData| match data.cost_of(wanted) > limits.memory {
        true => Err(too_much(
            "The query needs too many values at once: name fewer keys!",
        )),
        false => Ok(()),
    };
    let table = match source {
        TableSource::Own(data) => {
            check(data)?;
            data.fill(wanted, reader)?;
            return Ok(TableGuard::Own(data));
        }
        TableSource::Shared(table) => table,
    };
    let data = table.data.upgradable_read();
    if data.has_columns(wanted) && !table.has_notes() {
        return Ok(TableGuard::Shared(RwLockUpgradableReadGuard::downgrade(data)));
    }
    check(&data)?;
    let mut data = RwLockUpgradableReadGuard::upgrade(data);
    // From here on what is written is noted, so that nothing is missed between reading a value and having its column.
    let bits = wanted
        .iter()
        .fold(data.sources(), |bits, (source, _)| bits | source_bit(*source));
    table.sources.store(bits, Atomic::Release);
    let notes = table.take_notes();
    let outcome = data
        .refresh(&notes, reader)
        .and_then(|()| data.fill(wanted, reader));
    data.touch(wanted);
    table.sources.store(data.sources(), Atomic::Release);
    table.bytes.store(data.cost(), Atomic::Relaxed);
    outcome?;
    Ok(TableGuard::Shared(parking_lot::RwLockWriteGuard::downgrade(data)))
}

pub(super) fn too_much(message: &'static str) -> StoreError {
    StoreError::new(StoreErrorKind::Invalid, message)
}
