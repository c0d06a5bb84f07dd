//! Single values of many entities: from memory where they are there, else from the table, without filling the cache with
//! what nobody else asks for.

use fieldline_core::ports::{StoreResult, StoredValue, ValueReadRequest, ValueReader, ValueSource};
use fieldline_model::{EntityId, EntityKey};

use super::cached_value::CachedValue;
use super::keys::{self, ValueGroupKey};
use super::store::SeriesStore;

impl ValueReader for SeriesStore {
    fn read(
        &self,
        values: ValueReadRequest<'_>,
        visit: &mut dyn FnMut(usize, usize, StoredValue<'_>),
    ) -> StoreResult<()> {
        let engine = self.engine()?;
        let subjects = values.ids.iter().map(|id| EntityKey {
            tenant: values.tenant,
            entity: EntityId::new(values.kind, *id),
        });
        let (cache, table, groups): (_, _, Vec<ValueGroupKey>) = match values.source {
            ValueSource::Latest => (
                &self.latest,
                &engine.latest,
                subjects.map(keys::latest_group).collect(),
            ),
            ValueSource::Attribute(scope) => (
                &self.attributes,
                &engine.attributes,
                subjects.map(|of| keys::attribute_group(of, scope)).collect(),
            ),
        };
        // Where a look is a round trip, what is not in memory is read with one.
        let mut missing = Vec::new();
        for (place, group) in groups.iter().enumerate() {
            if table.is_paged() && !cache.holds(group) {
                missing.push((*group, place));
                continue;
            }
            let mut one = |name: usize, value: StoredValue<'_>| visit(place, name, value);
            cache.visit_named(table, group, values.names, &mut one)?;
        }
        missing.sort_unstable();
        let mut prefixes: Vec<ValueGroupKey> = missing.iter().map(|(group, _)| *group).collect();
        prefixes.dedup();
        table.rows.prefixes(&prefixes, &mut |row| {
            // The key of a row begins with that of its group.
            let behind = missing.partition_point(|(group, _)| group[..] <= row.0[..]);
            let before = missing.get(..behind).unwrap_or_default();
            let asked = before
                .iter()
                .rev()
                .take_while(|(group, _)| row.0.starts_with(group));
            for (_, place) in asked {
                let mut one = |name: usize, cell: &CachedValue| visit(*place, name, cell.stored());
                table.visit_named_of_row(&row, values.names, &mut one)?;
            }
            Ok(())
        })
    }
}
