//! Relations between entities.

use std::collections::{HashMap, HashSet};

use async_trait::async_trait;
use fieldline_core::ports::{
    MAX_RELATION_LEVELS, MAX_RELATIONS, RelationEnds, RelationKey, RelationStore, StoreResult,
};
use fieldline_model::entity::{
    EntityRelation, EntityRelationInfo, RelationTypeGroup, RelationsQuery, SearchDirection,
};
use fieldline_model::{EntityId, TenantId};

use super::database::EntityDatabase;
use super::names::{entity_id, names, type_code};
use super::query::{ColumnReader, SqlQuery, unreadable};
use super::record::{self, IDS_A_STATEMENT};
use super::statement_error::StatementError;

/// What a relation is read from.
macro_rules! columns {
    () => {
        "from_type, from_id, to_type, to_id, type_group, type, version, additional_info"
    };
}

fn read(columns: &mut ColumnReader<'_>) -> StoreResult<EntityRelation> {
    let from = entity_id(columns)?;
    let to = entity_id(columns)?;
    let group: String = columns.next()?;
    let relation_type = columns.next()?;
    let version = columns.next()?;
    let info: Option<String> = columns.next()?;
    Ok(EntityRelation {
        from,
        to,
        relation_type,
        type_group: RelationTypeGroup::from_name(&group)
            .ok_or_else(|| unreadable(format!("unknown relation type group {group}")))?,
        version: Some(version),
        additional_info: info
            .map(|info| serde_json::from_str(&info))
            .transpose()
            .map_err(unreadable)?,
    })
}

/// Appends the condition that a row is the relation of this key.
fn identified(query: SqlQuery, tenant: TenantId, key: &RelationKey) -> SqlQuery {
    query
        .push(" WHERE tenant_id = ")
        .bind(tenant.0)
        .push(" AND from_id = ")
        .bind(key.from.id)
        .push(" AND from_type = ")
        .bind(type_code(key.from.entity_type))
        .push(" AND type_group = ")
        .bind(key.group.name())
        .push(" AND type = ")
        .bind(key.relation_type.as_str())
        .push(" AND to_id = ")
        .bind(key.to.id)
        .push(" AND to_type = ")
        .bind(type_code(key.to.entity_type))
}

/// One more than may be returned, so that too many are noticed.
fn limited(query: SqlQuery) -> SqlQuery {
    query
        .push(" LIMIT ")
        .bind(i64::try_from(MAX_RELATIONS).unwrap_or(i64::MAX).saturating_add(1))
}

fn check_count(count: usize) -> StoreResult<()> {
    if count > MAX_RELATIONS {
        return Err(record::invalid(format!(
            "More than {MAX_RELATIONS} relations were found: narrow the search!"
        )));
    }
    Ok(())
}

/// Relations in a database.
pub(super) struct SqlRelations(pub(super) EntityDatabase);

impl SqlRelations {
    /// The relations of a group that lead away from any of these entities, by where they start.
    async fn next_level(
        &self,
        tenant: TenantId,
        query: &RelationsQuery,
        roots: &[EntityId],
    ) -> StoreResult<HashMap<EntityId, Vec<EntityRelation>>> {
        let mut found: HashMap<EntityId, Vec<EntityRelation>> = HashMap::new();
        let direction = query.parameters.direction;
        let mut count = 0;
        for chunk in roots.chunks(IDS_A_STATEMENT) {
            let ids: HashSet<EntityId> = chunk.iter().copied().collect();
            let (start, order) = match direction {
                SearchDirection::From => ("from_id IN (", " ORDER BY type, to_id"),
                SearchDirection::To => ("to_id IN (", " ORDER BY type, from_id"),
            };
            let statement = SqlQuery::new(concat!(
                "SELECT ",
                columns!(),
                " FROM relation WHERE tenant_id = "
            ))
            .bind(tenant.0)
            .push(" AND type_group = ")
            .bind(query.parameters.relation_type_group.name())
            .push(" AND ")
            .push(start)
            .bind_list(chunk.iter().map(|entity| entity.id))
            .push(")")
            .push(order);
            for row in &self.0.read_list(limited(statement)).await? {
                let relation = read(&mut row.columns())?;
                let start = match direction {
                    SearchDirection::From => relation.from,
                    SearchDirection::To => relation.to,
                };
                // Entities of different types may have the same id.
                if ids.contains(&start) {
                    count += 1;
                    found.entry(start).or_default().push(relation);
                }
            }
            check_count(count)?;
        }
        Ok(found)
    }
}

#[async_trait]
impl RelationStore for SqlRelations {
    async fn save(&self, tenant: TenantId, relation: EntityRelation) -> StoreResult<EntityRelation> {
        if relation.relation_type.is_empty() {
            return Err(record::invalid("Relation type should be specified!"));
        }
        let relation_type = record::bounded("type", &relation.relation_type)?;
        let info = relation.additional_info.as_ref().filter(|info| !info.is_null());
        let query = SqlQuery::new(
            "INSERT INTO relation (tenant_id, from_type, from_id, to_type, to_id, type_group, type, additional_info, \
             version) VALUES (",
        )
        .bind(tenant.0)
        .push(", ")
        .bind(type_code(relation.from.entity_type))
        .push(", ")
        .bind(relation.from.id)
        .push(", ")
        .bind(type_code(relation.to.entity_type))
        .push(", ")
        .bind(relation.to.id)
        .push(", ")
        .bind(relation.type_group.name())
        .push(", ")
        .bind(relation_type)
        .push(", ")
        .bind(info.map(ToString::to_string))
        .push(concat!(
            ", 1) ON CONFLICT (tenant_id, from_id, from_type, type_group, type, to_id, to_type) DO UPDATE SET \
             additional_info = excluded.additional_info, version = relation.version + 1 RETURNING ",
            columns!()
        ));
        let rows = self.0.write(query).await.map_err(|failure| match failure {
            StatementError::BrokenReference => {
                record::invalid("Relation is referencing to non-existent tenant!")
            }
            failure => failure.into_error(),
        })?;
        let row = rows
            .first()
            .ok_or_else(|| unreadable("a saved row was not returned"))?;
        read(&mut row.columns())
    }

    async fn get(&self, tenant: TenantId, key: &RelationKey) -> StoreResult<Option<EntityRelation>> {
        let query = SqlQuery::new(concat!("SELECT ", columns!(), " FROM relation"));
        let rows = self.0.read(identified(query, tenant, key)).await?;
        rows.first().map(|row| read(&mut row.columns())).transpose()
    }

    async fn delete(&self, tenant: TenantId, key: &RelationKey) -> StoreResult<Option<EntityRelation>> {
        let query = identified(SqlQuery::new("DELETE FROM relation"), tenant, key);
        let rows = self
            .0
            .write(query.push(concat!(" RETURNING ", columns!())))
            .await?;
        rows.first().map(|row| read(&mut row.columns())).transpose()
    }

    async fn find(&self, tenant: TenantId, ends: &RelationEnds) -> StoreResult<Vec<EntityRelation>> {
        if ends.from.is_none() && ends.to.is_none() {
            return Err(record::invalid("An end of the relations should be specified!"));
        }
        let mut query = SqlQuery::new(concat!(
            "SELECT ",
            columns!(),
            " FROM relation WHERE tenant_id = "
        ))
        .bind(tenant.0)
        .push(" AND type_group = ")
        .bind(ends.group.name());
        if let Some(from) = ends.from {
            query = query
                .push(" AND from_id = ")
                .bind(from.id)
                .push(" AND from_type = ")
                .bind(type_code(from.entity_type));
        }
        if let Some(to) = ends.to {
            query = query
                .push(" AND to_id = ")
                .bind(to.id)
                .push(" AND to_type = ")
                .bind(type_code(to.entity_type));
        }
        if let Some(relation_type) = &ends.relation_type {
            query = query.push(" AND type = ").bind(relation_type.as_str());
        }
        let rows = self
            .0
            .read_list(limited(query.push(" ORDER BY type, from_id, to_id")))
            .await?;
        check_count(rows.len())?;
        rows.iter().map(|row| read(&mut row.columns())).collect()
    }

    async fn with_names(
        &self,
        tenant: TenantId,
        relations: Vec<EntityRelation>,
    ) -> StoreResult<Vec<EntityRelationInfo>> {
        let ends = relations.iter().flat_map(|relation| [relation.from, relation.to]);
        let names = names(&self.0, tenant, ends).await?;
        let name = |entity: EntityId| names.get(&entity).map(|named| named.name.clone());
        Ok(relations
            .into_iter()
            .map(|relation| EntityRelationInfo {
                from_name: name(relation.from),
                to_name: name(relation.to),
                relation,
            })
            .collect())
    }

    async fn delete_of(
        &self,
        tenant: TenantId,
        entity: EntityId,
        group: Option<RelationTypeGroup>,
    ) -> StoreResult<u64> {
        let code = type_code(entity.entity_type);
        let mut deleted = 0;
        // One end a statement, each on its index.
        for (id, kind) in [
            (" AND from_id = ", " AND from_type = "),
            (" AND to_id = ", " AND to_type = "),
        ] {
            let mut query = SqlQuery::new("DELETE FROM relation WHERE tenant_id = ")
                .bind(tenant.0)
                .push(id)
                .bind(entity.id)
                .push(kind)
                .bind(code);
            if let Some(group) = group {
                query = query.push(" AND type_group = ").bind(group.name());
            }
            deleted += self.0.execute(query).await?;
        }
        Ok(deleted)
    }

    async fn search(&self, tenant: TenantId, query: &RelationsQuery) -> StoreResult<Vec<EntityRelation>> {
        let parameters = &query.parameters;
        let levels = match usize::try_from(parameters.max_level) {
            Ok(levels @ 1..) => levels.min(MAX_RELATION_LEVELS),
            _ => MAX_RELATION_LEVELS,
        };
        let root = parameters.root();
        let mut visited = HashSet::from([root]);
        let mut frontier = vec![root];
        // How each entity of the frontier was reached first; needed for the last level only.
        let mut reached: HashMap<EntityId, Vec<EntityRelation>> = HashMap::new();
        let mut met = Vec::new();
        for level in 1..=levels {
            if frontier.is_empty() {
                break;
            }
            let mut found = self.next_level(tenant, query, &frontier).await?;
            let mut next = Vec::new();
            let mut next_reached: HashMap<EntityId, Vec<EntityRelation>> = HashMap::new();
            for entity in frontier {
                let relations = found.remove(&entity).unwrap_or_default();
                let mut fresh: HashSet<EntityId> = HashSet::new();
                for relation in &relations {
                    let child = relation.endpoint(parameters.direction);
                    if visited.insert(child) {
                        fresh.insert(child);
                        next.push(child);
                    }
                    if parameters.fetch_last_level_only && fresh.contains(&child) {
                        next_reached.entry(child).or_default().push(relation.clone());
                    }
                }
                if !parameters.fetch_last_level_only || level == levels {
                    met.extend(relations);
                } else if relations.is_empty() {
                    met.extend(reached.remove(&entity).unwrap_or_default());
                }
            }
            check_count(met.len().max(visited.len()))?;
            frontier = next;
            reached = next_reached;
        }
        met.retain(|relation| query.matches(relation));
        Ok(met)
    }
}
