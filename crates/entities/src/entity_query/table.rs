//! The entities of one kind that a tenant has, with columns of the values that queries ask for.
//!
//! A column is filled by the first query that names it, and read again afterwards only where a value has changed since:
//! writers note whose value it was, and the next query asks the store for it. So the store alone says what a value is,
//! whatever the order in which writers are heard, and writing costs a note.

use std::mem::size_of;

use fieldline_core::any_entity::AnyEntity;
use fieldline_core::ports::{StoreResult, StoredValue, ValueReadRequest, ValueReader, ValueSource};
use fieldline_model::kv::KvValue;
use fieldline_model::timeseries::AttributeScope;
use fieldline_model::{EntityType, TenantId};
use rustc_hash::FxHashMap;
use uuid::Uuid;

use super::row::EntityTableRow;

/// Every source of values, in the order of their bits in a note.
pub(super) const SOURCES: [ValueSource; 4] = [
    ValueSource::Latest,
    ValueSource::Attribute(AttributeScope::Client),
    ValueSource::Attribute(AttributeScope::Shared),
    ValueSource::Attribute(AttributeScope::Server),
];

/// The bit of a source in a note.
pub(super) fn source_bit(source: ValueSource) -> u8 {
    match source {
        ValueSource::Latest => 1,
        ValueSource::Attribute(AttributeScope::Client) => 2,
        ValueSource::Attribute(AttributeScope::Shared) => 4,
        ValueSource::Attribute(AttributeScope::Server) => 8,
    }
}

/// All of them.
pub(super) const ALL_SOURCES: u8 = 15;

/// Which values a column holds.
pub(super) type ColumnKey = (ValueSource, String);

/// A value of an entity.
#[derive(Debug, Clone)]
pub(super) struct ColumnCell {
    pub(super) ts: i64,
    ttl_seconds: u32,
    pub(super) value: KvValue,
}

fn names_of<'a>(keys: impl Iterator<Item = &'a ColumnKey>, source: ValueSource) -> Vec<String> {
    keys.filter(|key| key.0 == source)
        .map(|(_, name)| name.clone())
        .collect()
}

impl ColumnCell {
    fn of(stored: &StoredValue<'_>) -> Self {
        Self {
            ts: stored.ts,
            ttl_seconds: stored.ttl_seconds,
            value: stored.value.to_value(),
        }
    }

    /// Whether the value is past its time.
    pub(super) fn is_expired(&self, now: i64) -> bool {
        self.ttl_seconds > 0
            && self
                .ts
                .saturating_add(i64::from(self.ttl_seconds).saturating_mul(1_000))
                < now
    }
}

/// Values of one name, by the places of the entities.
#[derive(Debug, Default)]
pub(super) struct ValueColumn {
    cells: Vec<Option<ColumnCell>>,
    heap: usize,
    /// Count of the query that used it last.
    used: u64,
}

impl ValueColumn {
    pub(super) fn get(&self, place: usize) -> Option<&ColumnCell> {
        self.cells.get(place)?.as_ref()
    }

    fn set(&mut self, place: usize, slot: Option<ColumnCell>) {
        if self.cells.len() <= place {
            self.cells.resize(place + 1, None);
        }
        if let Some(held) = self.cells.get_mut(place) {
            self.heap += slot.as_ref().map_or(0, |slot| slot.value.heap_bytes());
            self.heap -= held.as_ref().map_or(0, |slot| slot.value.heap_bytes());
            *held = slot;
        }
    }

    fn cost(&self) -> usize {
        self.cells.capacity() * size_of::<Option<ColumnCell>>() + self.heap
    }
}

/// See the module.
#[derive(Debug)]
pub(super) struct TableData {
    pub(super) tenant: TenantId,
    pub(super) kind: EntityType,
    /// Entities at their places; places of deleted ones are used again.
    pub(super) rows: Vec<Option<EntityTableRow>>,
    places: FxHashMap<Uuid, usize>,
    free: Vec<usize>,
    columns: FxHashMap<ColumnKey, ValueColumn>,
    row_bytes: usize,
    queries: u64,
}

impl TableData {
    pub(super) fn new(tenant: TenantId, kind: EntityType) -> Self {
        Self {
            tenant,
            kind,
            rows: Vec::new(),
            places: FxHashMap::default(),
            free: Vec::new(),
            columns: FxHashMap::default(),
            row_bytes: 0,
            queries: 0,
        }
    }

    /// Inserts or replaces an entity. Returns when it was created, and whether it is new.
    pub(super) fn put(&mut self, entity: &AnyEntity) -> (i64, bool) {
        let row = EntityTableRow::of(entity);
        self.row_bytes += row.cost();
        let (id, created_time) = (row.id, row.created_time);
        if let Some(place) = self.places.get(&id)
            && let Some(held) = self.rows.get_mut(*place)
        {
            self.row_bytes -= held.as_ref().map_or(0, EntityTableRow::cost);
            *held = Some(row);
            return (created_time, false);
        }
        let free = self.free.pop();
        let place = match free.and_then(|place| Some((place, self.rows.get_mut(place)?))) {
            Some((place, held)) => {
                *held = Some(row);
                place
            }
            None => {
                self.rows.push(Some(row));
                self.rows.len() - 1
            }
        };
        self.places.insert(id, place);
        (created_time, true)
    }

    /// Takes an entity out.
    pub(super) fn remove(&mut self, id: Uuid) {
        let Some(place) = self.places.remove(&id) else {
            return;
        };
        if let Some(row) = self.rows.get_mut(place).and_then(Option::take) {
            self.row_bytes -= row.cost();
        }
        for column in self.columns.values_mut() {
            column.set(place, None);
        }
        self.free.push(place);
    }

    /// Keeps only entities that `keep` knows.
    pub(super) fn retain(&mut self, keep: impl Fn(Uuid) -> bool) {
        let gone: Vec<Uuid> = self.places.keys().copied().filter(|id| !keep(*id)).collect();
        for id in gone {
            self.remove(id);
        }
    }

    pub(super) fn place(&self, id: Uuid) -> Option<usize> {
        self.places.get(&id).copied()
    }

    pub(super) fn has_columns(&self, wanted: &[ColumnKey]) -> bool {
        wanted.iter().all(|key| self.columns.contains_key(key))
    }

    /// Bytes that the columns would take which are not there yet, without the texts in them.
    pub(super) fn cost_of(&self, wanted: &[ColumnKey]) -> usize {
        let missing = wanted
            .iter()
            .filter(|key| !self.columns.contains_key(*key))
            .count();
        missing * self.rows.len() * size_of::<Option<ColumnCell>>()
    }

    /// Values of entities at some places, read past the columns.
    pub(super) fn look_up(
        &self,
        places: &[usize],
        wanted: &[ColumnKey],
        reader: &dyn ValueReader,
    ) -> StoreResult<FxHashMap<(ColumnKey, usize), ColumnCell>> {
        let id = |place: &usize| Some((self.rows.get(*place)?.as_ref()?.id, *place));
        let entities: Vec<(Uuid, usize)> = places.iter().filter_map(id).collect();
        let ids: Vec<Uuid> = entities.iter().map(|(id, _)| *id).collect();
        let mut found = FxHashMap::default();
        for source in SOURCES {
            let names = names_of(wanted.iter(), source);
            let mut take = |entity: usize, name: usize, stored: StoredValue<'_>| {
                if let (Some((_, place)), Some(name)) = (entities.get(entity), names.get(name)) {
                    found.insert(((source, name.clone()), *place), ColumnCell::of(&stored));
                }
            };
            if !names.is_empty() {
                self.visit(source, &names, &ids, reader, &mut take)?;
            }
        }
        Ok(found)
    }

    pub(super) fn column(&self, key: &ColumnKey) -> Option<&ValueColumn> {
        self.columns.get(key)
    }

    /// The sources of its columns, as bits.
    pub(super) fn sources(&self) -> u8 {
        self.columns
            .keys()
            .fold(0, |bits, (source, _)| bits | source_bit(*source))
    }

    /// Brings the columns there that are not there yet.
    pub(super) fn fill(&mut self, wanted: &[ColumnKey], reader: &dyn ValueReader) -> StoreResult<()> {
        let ids: Vec<(Uuid, usize)> = self.all();
        for source in SOURCES {
            let missing = wanted.iter().filter(|key| !self.columns.contains_key(*key));
            let names = names_of(missing, source);
            if !names.is_empty() {
                let mut columns: Vec<ValueColumn> = names.iter().map(|_| ValueColumn::default()).collect();
                self.read(source, &names, &ids, reader, &mut columns)?;
                self.columns
                    .extend(names.into_iter().map(|name| (source, name)).zip(columns));
            }
        }
        Ok(())
    }

    /// Reads values again that have changed.
    pub(super) fn refresh(
        &mut self,
        notes: &FxHashMap<Uuid, u8>,
        reader: &dyn ValueReader,
    ) -> StoreResult<()> {
        for source in SOURCES {
            let bit = source_bit(source);
            let ids: Vec<(Uuid, usize)> = notes
                .iter()
                .filter(|(_, bits)| **bits & bit != 0)
                .filter_map(|(id, _)| Some((*id, self.place(*id)?)))
                .collect();
            let names = names_of(self.columns.keys(), source);
            if ids.is_empty() || names.is_empty() {
                continue;
            }
            let taken = |name: &String| self.columns.remove(&(source, name.clone())).unwrap_or_default();
            let mut columns: Vec<ValueColumn> = names.iter().map(taken).collect();
            for column in &mut columns {
                for (_, place) in &ids {
                    column.set(*place, None);
                }
            }
            // Columns of a failed read are gone, and filled anew by the next query.
            self.read(source, &names, &ids, reader, &mut columns)?;
            self.columns
                .extend(names.into_iter().map(|name| (source, name)).zip(columns));
        }
        Ok(())
    }

    fn read(
        &self,
        source: ValueSource,
        names: &[String],
        entities: &[(Uuid, usize)],
        reader: &dyn ValueReader,
        columns: &mut [ValueColumn],
    ) -> StoreResult<()> {
        let ids: Vec<Uuid> = entities.iter().map(|(id, _)| *id).collect();
        for column in columns.iter_mut() {
            column
                .cells
                .resize_with(column.cells.len().max(self.rows.len()), || None);
        }
        let mut take = |entity: usize, name: usize, stored: StoredValue<'_>| {
            if let (Some((_, place)), Some(column)) = (entities.get(entity), columns.get_mut(name)) {
                column.set(*place, Some(ColumnCell::of(&stored)));
            }
        };
        self.visit(source, names, &ids, reader, &mut take)
    }

    /// Hands over the values of entities under some names.
    fn visit(
        &self,
        source: ValueSource,
        names: &[String],
        ids: &[Uuid],
        reader: &dyn ValueReader,
        take: &mut dyn FnMut(usize, usize, StoredValue<'_>),
    ) -> StoreResult<()> {
        let values = ValueReadRequest {
            tenant: self.tenant,
            kind: self.kind,
            ids,
            source,
            names,
        };
        if self.kind != EntityType::Tenant {
            return reader.read(values, take);
        }
        // A tenant belongs to itself.
        for (entity, id) in ids.iter().enumerate() {
            let of_one = ValueReadRequest {
                tenant: TenantId(*id),
                ids: std::slice::from_ref(id),
                ..values
            };
            reader.read(of_one, &mut |_, name, stored| take(entity, name, stored))?;
        }
        Ok(())
    }

    fn all(&self) -> Vec<(Uuid, usize)> {
        let rows = self.rows.iter().enumerate();
        rows.filter_map(|(place, row)| Some((row.as_ref()?.id, place)))
            .collect()
    }

    /// Notes that a query uses these columns.
    pub(super) fn touch(&mut self, wanted: &[ColumnKey]) {
        self.queries += 1;
        for key in wanted {
            if let Some(column) = self.columns.get_mut(key) {
                column.used = self.queries;
            }
        }
    }

    /// Bytes it takes, about.
    pub(super) fn cost(&self) -> usize {
        let index = self.places.capacity() * 32 + self.rows.capacity() * size_of::<Option<EntityTableRow>>();
        self.row_bytes + index + self.columns.values().map(ValueColumn::cost).sum::<usize>()
    }

    /// Gives up the columns that were used longest ago until `bytes` are free; returns how many are.
    pub(super) fn shed(&mut self, bytes: usize) -> usize {
        let mut by_use: Vec<(u64, ColumnKey)> = self
            .columns
            .iter()
            .map(|(key, column)| (column.used, key.clone()))
            .collect();
        by_use.sort_unstable();
        let mut freed = 0;
        for (_, key) in by_use {
            if freed >= bytes {
                break;
            }
            freed += self.columns.remove(&key).map_or(0, |column| column.cost());
        }
        freed
    }
}
