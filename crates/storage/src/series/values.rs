//! Single values of many entities: from memory where they are there, else one look into the table a value, without
//! filling the cache with what nobody else asks for.

use fieldline_core::ports::{StoreResult, StoredValue, ValueReadRequest, ValueReader, ValueSource};
use fieldline_model::{EntityId, EntityKey};

use super::keys;
use super::store::SeriesStore;

impl ValueReader for SeriesStore {
    fn read(
        &self,
        values: ValueReadRequest<'_>,
        visit: &mut dyn FnMut(usize, usize, StoredValue<'_>),
    ) -> StoreResult<()> {
        let engine = self.engine()?;
        for (place, id) in values.ids.iter().enumerate() {
            let subject = EntityKey {
                tenant: values.tenant,
                entity: EntityId::new(values.kind, *id),
            };
            let mut one = |name: usize, value: StoredValue<'_>| visit(place, name, value);
            match values.source {
                ValueSource::Latest => {
                    let group = keys::latest_group(subject);
                    self.latest
                        .visit_named(&engine.latest, &group, values.names, &mut one)?;
                }
                ValueSource::Attribute(scope) => {
                    let group = keys::attribute_group(subject, scope);
                    self.attributes
                        .visit_named(&engine.attributes, &group, values.names, &mut one)?;
                }
            }
        }
        Ok(())
    }
}
