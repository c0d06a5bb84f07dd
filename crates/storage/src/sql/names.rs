//! What entities of any type are called, and how their ids are kept.

use std::collections::{BTreeMap, BTreeSet};

use fieldline_core::ports::StoreResult;
use fieldline_model::{EntityId, EntityType, TenantId};
use serde::Deserialize;
use uuid::Uuid;

use super::database::EntityDatabase;
use super::kinds::kind_table;
use super::query::{ColumnReader, RowOwner, SqlQuery, unreadable};
use super::record::IDS_A_STATEMENT;

/// What an entity is called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct EntityTitle {
    pub(super) name: String,
    pub(super) label: Option<String>,
}

/// The part of a document that has the label.
#[derive(Deserialize)]
struct LabelDocument {
    label: Option<String>,
}

/// The code that an entity type is kept as.
pub(super) fn type_code(entity_type: EntityType) -> i64 {
    i64::from(entity_type as u8)
}

/// The type of a code.
pub(super) fn type_of(code: i64) -> StoreResult<EntityType> {
    u8::try_from(code)
        .ok()
        .and_then(EntityType::from_code)
        .ok_or_else(|| unreadable(format!("unknown entity type {code}")))
}

/// The entity whose type and id are the next two columns.
pub(super) fn entity_id(columns: &mut ColumnReader<'_>) -> StoreResult<EntityId> {
    let entity_type = type_of(columns.next()?)?;
    Ok(EntityId::new(entity_type, columns.next()?))
}

/// The names of those of the entities that the tenant has.
pub(super) async fn names(
    database: &EntityDatabase,
    tenant: TenantId,
    entities: impl IntoIterator<Item = EntityId>,
) -> StoreResult<BTreeMap<EntityId, EntityTitle>> {
    let mut wanted: BTreeMap<EntityType, BTreeSet<Uuid>> = BTreeMap::new();
    for entity in entities {
        wanted.entry(entity.entity_type).or_default().insert(entity.id);
    }
    let mut found = BTreeMap::new();
    for (entity_type, ids) in wanted {
        let Some(titles) = kind_table(entity_type).and_then(|table| table.titles) else {
            continue;
        };
        let ids: Vec<Uuid> = match entity_type {
            EntityType::Tenant => ids.into_iter().filter(|id| *id == tenant.0).collect(),
            _ => ids.into_iter().collect(),
        };
        let owner = match entity_type {
            EntityType::Tenant => RowOwner::Installation,
            _ => RowOwner::Tenant(tenant.0),
        };
        for chunk in ids.chunks(IDS_A_STATEMENT) {
            let query = SqlQuery::new(titles.select)
                .bind_list(chunk.iter().copied())
                .push(")")
                .owned_by(owner);
            for row in &database.read(query).await? {
                let mut columns = row.columns();
                let id: Uuid = columns.next()?;
                let name = columns.next()?;
                let doc: String = columns.next()?;
                let label = match titles.labeled {
                    true => {
                        let labelled: LabelDocument = serde_json::from_str(&doc).map_err(unreadable)?;
                        labelled.label.filter(|label| !label.is_empty())
                    }
                    false => None,
                };
                found.insert(EntityId::new(entity_type, id), EntityTitle { name, label });
            }
        }
    }
    Ok(found)
}
