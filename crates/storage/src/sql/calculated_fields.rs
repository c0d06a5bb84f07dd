//! Calculated fields.

use async_trait::async_trait;
use fieldline_core::ports::{CalculatedFieldFilter, CalculatedFieldStore, StoreResult};
use fieldline_model::entity::calculated_field::CalculatedFieldConfiguration;
use fieldline_model::entity::{CalculatedField, CalculatedFieldInfo, CalculatedFieldType};
use fieldline_model::page::{PageData, PageLink, SortOrder};
use fieldline_model::{CalculatedFieldId, EntityId, TenantId};

use super::database::{EntityDatabase, SqlTransaction};
use super::entities::{SqlEntities, TenantRecord};
use super::list::{self, ListDefinition};
use super::names::{self, type_code};
use super::query::{ColumnReader, RowOwner, SqlArg, SqlQuery, unreadable};
use super::record::{self, EntityRecord, EntityRowKey};

impl EntityRecord for CalculatedField {
    const NAME: &'static str = "Calculated field";
    const TABLE: &'static str = "calculated_field";
    const COLUMNS: &'static [&'static str] =
        &["tenant_id", "entity_type", "entity_id", "type", "name", "search"];
    const SELECT: &'static str =
        "id, created_time, version, doc, tenant_id, entity_type, entity_id, type, name";
    const IN_COLUMNS: &'static [&'static str] = &["tenantId", "entityId", "type", "name"];
    const BROKEN_REFERENCE: &'static str = "Calculated field is referencing to non-existent tenant!";

    fn key(&self) -> EntityRowKey {
        EntityRowKey::of_tenant(self, self.tenant_id, self.version)
    }

    fn values(&self) -> StoreResult<Vec<SqlArg>> {
        let entity = self
            .entity_id
            .ok_or_else(|| record::invalid("Calculated field entity should be specified!"))?;
        Ok(vec![
            self.tenant_id.0.into(),
            type_code(entity.entity_type).into(),
            entity.id.into(),
            self.field_type.name().into(),
            record::bounded("name", &self.name)?,
            record::search_text(&[Some(&self.name)]),
        ])
    }

    fn fill(&mut self, version: i64, columns: &mut ColumnReader<'_>) -> StoreResult<()> {
        self.version = Some(version);
        self.tenant_id = columns.id()?;
        self.entity_id = Some(names::entity_id(columns)?);
        let kind: String = columns.next()?;
        self.field_type = CalculatedFieldType::from_name(&kind)
            .ok_or_else(|| unreadable(format!("unknown type of calculated field {kind}")))?;
        self.name = columns.next()?;
        Ok(())
    }

    fn conflict_message(&self, constraint: &str) -> Option<String> {
        (constraint == "calculated_field_tenant_id_entity_id_type_name_key")
            .then(|| "Calculated field with such name and type already exists".into())
    }

    async fn insert(self, database: &EntityDatabase) -> StoreResult<Self> {
        let mut changes = database.begin().await?;
        let saved = record::insert_within(&mut changes, &self).await?;
        save_references(&mut changes, &saved).await?;
        changes.commit().await?;
        Ok(saved)
    }

    async fn update(self, database: &EntityDatabase) -> StoreResult<Self> {
        let mut changes = database.begin().await?;
        let Some(saved) = record::update_within(&mut changes, &self).await? else {
            drop(changes);
            return Err(record::not_updated(database, &self).await?);
        };
        save_references(&mut changes, &saved).await?;
        changes.commit().await?;
        Ok(saved)
    }
}

const LISTING: ListDefinition = ListDefinition {
    table: CalculatedField::TABLE,
    select: CalculatedField::SELECT,
    joins: "",
    sorts: &[
        ("createdTime", "created_time"),
        ("name", "search"),
        ("type", "type"),
    ],
};

/// Replaces which other entities a field names.
async fn save_references(changes: &mut SqlTransaction, field: &CalculatedField) -> StoreResult<()> {
    let id = field.id.0;
    let forget = SqlQuery::new("DELETE FROM calculated_field_reference WHERE field_id = ")
        .bind(id)
        .owned_by(field.key().owner);
    changes.execute(forget).await?;
    // A configuration that this program cannot read refers to nothing as far as it can know.
    let Ok(configuration) = CalculatedFieldConfiguration::parse(field.field_type, &field.configuration)
    else {
        return Ok(());
    };
    for entity in configuration.referenced_entities() {
        if Some(entity) == field.entity_id {
            continue;
        }
        let insert = SqlQuery::new(
            "INSERT INTO calculated_field_reference (field_id, tenant_id, entity_type, entity_id) VALUES (",
        )
        .bind_list([
            SqlArg::from(id),
            field.tenant_id.0.into(),
            type_code(entity.entity_type).into(),
            entity.id.into(),
        ])
        .push(")");
        changes.execute(insert).await?;
    }
    Ok(())
}

impl TenantRecord for CalculatedField {
    const IN_USE: &'static str = "Calculated field is in use";

    async fn delete(database: &EntityDatabase, tenant: TenantId, id: CalculatedFieldId) -> StoreResult<bool> {
        record::delete::<Self>(database, RowOwner::of(tenant), id.0, Self::IN_USE).await
    }
}

#[async_trait]
impl CalculatedFieldStore for SqlEntities<CalculatedField> {
    async fn list(
        &self,
        tenant: TenantId,
        filter: &CalculatedFieldFilter,
        page: &PageLink,
    ) -> StoreResult<PageData<CalculatedFieldInfo>> {
        let condition = |query: SqlQuery| filtered(query.owned_by(RowOwner::Tenant(tenant.0)), filter);
        let fields = list::page(
            &self.database,
            &LISTING,
            page,
            condition,
            list::own_text,
            CalculatedField::read,
        )
        .await?;
        let entities = fields.data.iter().filter_map(|field| field.entity_id);
        let names = names::names(&self.database, tenant, entities).await?;
        Ok(fields.map(|field| CalculatedFieldInfo {
            entity_name: field
                .entity_id
                .and_then(|entity| names.get(&entity))
                .map(|named| named.name.clone()),
            field,
        }))
    }

    async fn names(
        &self,
        tenant: TenantId,
        kind: CalculatedFieldType,
        page: &PageLink,
    ) -> StoreResult<PageData<String>> {
        let pattern = list::pattern(page.text_search.as_deref())?;
        let matching = |query: SqlQuery| {
            let query = query
                .push(" FROM calculated_field WHERE type = ")
                .bind(kind.name())
                .owned_by(RowOwner::Tenant(tenant.0));
            match &pattern {
                Some(pattern) => list::own_text(query.push(" AND "), pattern),
                None => query,
            }
        };
        let counted = matching(SqlQuery::new("SELECT COUNT(DISTINCT name)"));
        let total = record::number(&self.database.read(counted).await?)?;
        let direction = match page.sort_order {
            Some(SortOrder::Desc) => " DESC",
            _ => " ASC",
        };
        let query = matching(SqlQuery::new("SELECT DISTINCT name"))
            .push(" ORDER BY name")
            .push(direction)
            .push(" LIMIT ")
            .bind(i64::from(page.page_size.max(1)))
            .push(" OFFSET ")
            .bind(i64::try_from(page.offset()).unwrap_or(i64::MAX));
        let rows = self.database.read(query).await?;
        let names = rows
            .iter()
            .map(|row| row.columns().next())
            .collect::<StoreResult<Vec<String>>>()?;
        Ok(PageData::new(names, total, page))
    }

    async fn of_entity(&self, tenant: TenantId, entity: EntityId) -> StoreResult<Vec<CalculatedField>> {
        let query = record::select::<CalculatedField>()
            .push("entity_id = ")
            .bind(entity.id)
            .push(" AND entity_type = ")
            .bind(type_code(entity.entity_type))
            .owned_by(RowOwner::Tenant(tenant.0))
            .push(" ORDER BY created_time, id");
        let rows = self.database.read(query).await?;
        rows.iter()
            .map(|row| CalculatedField::read(&mut row.columns()))
            .collect()
    }

    async fn count_of_entity(&self, tenant: TenantId, entity: EntityId) -> StoreResult<u64> {
        let query = SqlQuery::new("SELECT COUNT(*) FROM calculated_field WHERE type <> ")
            .bind(CalculatedFieldType::Alarm.name())
            .push(" AND entity_id = ")
            .bind(entity.id)
            .push(" AND entity_type = ")
            .bind(type_code(entity.entity_type))
            .owned_by(RowOwner::Tenant(tenant.0));
        record::number(&self.database.read(query).await?)
    }

    async fn is_referenced(&self, tenant: TenantId, entity: EntityId) -> StoreResult<bool> {
        let query = SqlQuery::new("SELECT COUNT(*) FROM calculated_field_reference WHERE entity_id = ")
            .bind(entity.id)
            .push(" AND entity_type = ")
            .bind(type_code(entity.entity_type))
            .owned_by(RowOwner::Tenant(tenant.0));
        Ok(record::number(&self.database.read(query).await?)? > 0)
    }

    async fn delete_of_entity(
        &self,
        tenant: TenantId,
        entity: EntityId,
    ) -> StoreResult<Vec<CalculatedFieldId>> {
        let query = SqlQuery::new("DELETE FROM calculated_field WHERE entity_id = ")
            .bind(entity.id)
            .push(" AND entity_type = ")
            .bind(type_code(entity.entity_type))
            .owned_by(RowOwner::Tenant(tenant.0))
            .push(" RETURNING id");
        let mut changes = self.database.begin().await?;
        let rows = changes.rows(query).await?;
        let ids = rows
            .iter()
            .map(|row| row.columns().next().map(CalculatedFieldId))
            .collect::<StoreResult<Vec<_>>>()?;
        changes.commit().await?;
        Ok(ids)
    }
}

fn filtered(mut query: SqlQuery, filter: &CalculatedFieldFilter) -> SqlQuery {
    if let Some(types) = &filter.types {
        query = one_of(
            query,
            " AND type",
            types.iter().map(|kind| SqlArg::from(kind.name())).collect(),
        );
    }
    if let Some(types) = &filter.entity_types {
        let codes = types.iter().map(|kind| SqlArg::from(type_code(*kind))).collect();
        query = one_of(query, " AND entity_type", codes);
    }
    if let Some(entities) = &filter.entities {
        query = one_of(
            query,
            " AND entity_id",
            entities.iter().copied().map(SqlArg::from).collect(),
        );
    }
    if let Some(names) = &filter.names {
        query = one_of(
            query,
            " AND name",
            names.iter().map(|name| SqlArg::from(name.as_str())).collect(),
        );
    }
    query
}

/// The condition that a column has one of these values; not even the databases agree on an empty list.
fn one_of(query: SqlQuery, column: &'static str, values: Vec<SqlArg>) -> SqlQuery {
    if values.is_empty() {
        return query.push(" AND FALSE");
    }
    query.push(column).push(" IN (").bind_list(values).push(")")
}
