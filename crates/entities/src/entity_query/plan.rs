//! A query made ready: whose entities, which conditions with the values they are compared with, and what is shown.

use std::collections::BTreeMap;

use fieldline_core::any_entity::kind_policy;
use fieldline_core::ports::MAX_RELATION_LEVELS;
use fieldline_core::usage::usage_id;
use fieldline_model::entity::{
    RelationFilter, RelationTypeGroup, RelationsQuery, RelationsSearchParameters, SearchDirection,
};
use fieldline_model::page::SortOrder;
use fieldline_model::query::{
    AliasId, ComplexOperation, DataPageLink, DynamicSource, DynamicValue, EntityCountQuery, EntityFilter,
    EntityQueryKey, KeyFilter, KeyFilterPredicate, KeyType, PredicateValue, SearchFilter, TypeFilter,
};
use fieldline_model::timeseries::AttributeScope;
use fieldline_model::{EntityId, EntityKey, EntityType};
use rustc_hash::FxHashSet;
use uuid::Uuid;

use super::EntityQueryService;
use super::predicate::{NamePattern, ValuePredicate};
use crate::access::Principal;
use crate::services::{ServiceError, ServiceResult};

/// Most conditions of a query, those within others included.
const MAX_CONDITIONS: usize = 1_000;
/// Most keys that a query shows.
const MAX_KEYS: usize = 1_000;
/// Most entities that a query names.
const MAX_NAMED: usize = 10_000;
/// Most entities that a search along relations starts at.
const MAX_ROOTS: usize = 100;
/// Most entities a page.
pub(super) const MAX_PAGE: i64 = 10_000;

/// Which entities of a kind come into question.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum EntityCandidates {
    All,
    Ids(Vec<Uuid>),
    Like {
        types: Option<FxHashSet<String>>,
        name: Option<NamePattern>,
    },
}

/// Entities of one kind.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct EntityScan {
    pub(super) kind: EntityType,
    pub(super) candidates: EntityCandidates,
    /// Only of these types.
    pub(super) types: Option<FxHashSet<String>>,
}

/// A condition on a field or value.
#[derive(Debug, Clone)]
pub(super) struct QueryCondition {
    pub(super) key: EntityQueryKey,
    pub(super) predicate: ValuePredicate,
}

/// See the module.
#[derive(Debug, Clone, Default)]
pub(super) struct EntityQueryPlan {
    /// In the order of kinds, each once.
    pub(super) parts: Vec<EntityScan>,
    pub(super) conditions: Vec<QueryCondition>,
    /// Whether one condition is enough.
    pub(super) any: bool,
    pub(super) shown: Vec<EntityQueryKey>,
    pub(super) search: Option<String>,
    pub(super) sort: Option<(EntityQueryKey, SortOrder)>,
    pub(super) page_size: usize,
    pub(super) skipped: usize,
}

impl EntityQueryPlan {
    /// Every key that is named.
    pub(super) fn keys(&self) -> impl Iterator<Item = &EntityQueryKey> {
        self.looked_at().chain(&self.shown)
    }

    /// The keys that are looked at to find the entities of the page.
    pub(super) fn looked_at(&self) -> impl Iterator<Item = &EntityQueryKey> {
        let conditions = self.conditions.iter().map(|condition| &condition.key);
        conditions.chain(self.sort.as_ref().map(|(key, _)| key))
    }

    /// Adds what is shown and which page.
    pub(super) fn page(
        &mut self,
        fields: &[EntityQueryKey],
        values: &[EntityQueryKey],
        page: &DataPageLink,
    ) -> ServiceResult<()> {
        if fields.len() + values.len() > MAX_KEYS {
            return Err(ServiceError::invalid(format!(
                "A query must not show more than {MAX_KEYS} keys!"
            )));
        }
        if page.page_size < 1 {
            return Err(ServiceError::invalid(format!(
                "Incorrect entity data page link page size '{}'. Page size must be greater than zero.",
                page.page_size
            )));
        }
        if page.page < 0 {
            return Err(ServiceError::invalid(format!(
                "Incorrect entity data page link page '{}'. Page must be positive integer.",
                page.page
            )));
        }
        if let Some(sort) = &page.sort_order
            && sort.key.key_type == KeyType::EntityField
            && !is_property(&sort.key.key)
        {
            return Err(ServiceError::invalid(
                "Invalid entity data page link sort property",
            ));
        }
        let size = page.page_size.min(MAX_PAGE);
        self.shown = fields.iter().chain(values).cloned().collect();
        self.search = page
            .text_search
            .as_ref()
            .filter(|text| !text.is_empty())
            .map(|text| text.to_lowercase());
        self.sort = page
            .sort_order
            .as_ref()
            .map(|sort| (sort.key.clone(), sort.direction));
        self.page_size = size as usize;
        self.skipped = usize::try_from(size.saturating_mul(page.page)).unwrap_or(usize::MAX);
        if let Some(key) = self.keys().find(|key| key.key_type == KeyType::AlarmField) {
            return Err(ServiceError::invalid(format!(
                "ALARM_FIELD '{}' is only for queries of alarms!",
                key.key
            )));
        }
        Ok(())
    }
}

/// Whether a text may be the name of a field.
fn is_property(name: &str) -> bool {
    name.chars().all(|c| c.is_alphanumeric() || c == '_' || c == '-')
}

impl EntityQueryService {
    /// The entities and conditions of a query.
    pub(super) async fn plan(
        &self,
        who: &Principal,
        query: &EntityCountQuery,
    ) -> ServiceResult<EntityQueryPlan> {
        let mut left = MAX_CONDITIONS;
        let mut conditions = Vec::with_capacity(query.key_filters.len().min(MAX_CONDITIONS));
        for KeyFilter { key, predicate, .. } in &query.key_filters {
            if key.key_type == KeyType::AlarmField {
                return Err(ServiceError::invalid(format!(
                    "ALARM_FIELD '{}' is only for queries of alarms!",
                    key.key
                )));
            }
            if let Some(test) = self.test(who, predicate, &mut left).await? {
                conditions.push(QueryCondition {
                    key: key.clone(),
                    predicate: test,
                });
            }
        }
        Ok(EntityQueryPlan {
            parts: self.parts(who, &query.entity_filter).await?,
            conditions,
            any: query.key_filters_operation == ComplexOperation::Or,
            ..EntityQueryPlan::default()
        })
    }

    fn test<'a>(
        &'a self,
        who: &'a Principal,
        predicate: &'a KeyFilterPredicate,
        left: &'a mut usize,
    ) -> std::pin::Pin<Box<dyn Future<Output = ServiceResult<Option<ValuePredicate>>> + Send + 'a>> {
        Box::pin(async move {
            *left = left.checked_sub(1).ok_or_else(|| {
                ServiceError::invalid(format!(
                    "A query must not have more than {MAX_CONDITIONS} conditions!"
                ))
            })?;
            Ok(match predicate {
                KeyFilterPredicate::String {
                    operation,
                    value,
                    ignore_case,
                } => {
                    let text = |value: &fieldline_model::kv::KvValue| Some(value.to_text());
                    let value = self.value(who, value, text).await?;
                    ValuePredicate::text(*operation, &value, *ignore_case)
                }
                KeyFilterPredicate::Numeric { operation, value } => {
                    let number = |value: &fieldline_model::kv::KvValue| {
                        value.as_number().or_else(|| value.to_text().trim().parse().ok())
                    };
                    Some(ValuePredicate::Number(
                        *operation,
                        self.value(who, value, number).await?,
                    ))
                }
                KeyFilterPredicate::Boolean { operation, value } => {
                    let flag = |value: &fieldline_model::kv::KvValue| value.to_text().parse().ok();
                    Some(ValuePredicate::Flag(
                        *operation,
                        self.value(who, value, flag).await?,
                    ))
                }
                KeyFilterPredicate::Complex {
                    operation,
                    predicates,
                } => {
                    let mut parts = Vec::with_capacity(predicates.len().min(*left));
                    for predicate in predicates {
                        parts.extend(self.test(who, predicate, left).await?);
                    }
                    ValuePredicate::joined(*operation, parts)
                }
            })
        })
    }

    /// What is compared with.
    async fn value<T: Clone>(
        &self,
        who: &Principal,
        value: &PredicateValue<T>,
        read: impl Fn(&fieldline_model::kv::KvValue) -> Option<T>,
    ) -> ServiceResult<T> {
        if let Some(value) = &value.user_value {
            return Ok(value.clone());
        }
        if let Some(dynamic) = &value.dynamic_value
            && let Some(found) = self.dynamic(who, dynamic).await?
            && let Some(found) = read(&found)
        {
            return Ok(found);
        }
        let default = value.default_value.clone();
        default.ok_or_else(|| ServiceError::invalid("Filter predicate value should be specified!"))
    }

    /// The attribute that a dynamic value is.
    async fn dynamic(
        &self,
        who: &Principal,
        dynamic: &DynamicValue,
    ) -> ServiceResult<Option<fieldline_model::kv::KvValue>> {
        let customer = (!who.customer.is_null()).then(|| EntityId::from(who.customer));
        let tenant = (!who.tenant.is_null()).then(|| EntityId::from(who.tenant));
        let mut sources = match dynamic.source_type {
            DynamicSource::CurrentUser => vec![Some(who.user.into()), customer, tenant],
            DynamicSource::CurrentCustomer => vec![customer, tenant],
            DynamicSource::CurrentTenant => vec![tenant],
            DynamicSource::CurrentDevice => {
                return Err(ServiceError::invalid(
                    "Not supported operation for source type: {CURRENT_DEVICE}",
                ));
            }
        };
        if !dynamic.inherit {
            sources.truncate(1);
        }
        let names = [dynamic.source_attribute.clone()];
        for entity in sources.into_iter().flatten() {
            let subject = EntityKey {
                tenant: who.tenant,
                entity,
            };
            let found = self
                .attributes
                .get(subject, AttributeScope::Server, Some(&names))
                .await?;
            if let Some(attribute) = found.into_iter().next() {
                return Ok(Some(attribute.value));
            }
        }
        Ok(None)
    }

    /// Which entities of which kinds a filter stands for.
    async fn parts(&self, who: &Principal, filter: &EntityFilter) -> ServiceResult<Vec<EntityScan>> {
        let one = |kind, candidates| {
            Ok(vec![EntityScan {
                kind,
                candidates,
                types: None,
            }])
        };
        let ids = |ids: &[Uuid]| -> ServiceResult<EntityCandidates> {
            if ids.len() > MAX_NAMED {
                return Err(ServiceError::invalid(format!(
                    "entityList must not hold more than {MAX_NAMED} ids!"
                )));
            }
            let mut seen = FxHashSet::default();
            Ok(EntityCandidates::Ids(
                ids.iter().copied().filter(|id| seen.insert(*id)).collect(),
            ))
        };
        match filter {
            EntityFilter::SingleEntity { single_entity } => {
                let entity = resolve(who, *single_entity);
                one(entity.entity_type, EntityCandidates::Ids(vec![entity.id]))
            }
            EntityFilter::EntityList {
                entity_type,
                entity_list,
            } => one(*entity_type, ids(entity_list)?),
            EntityFilter::EntityType { entity_type } => one(*entity_type, EntityCandidates::All),
            EntityFilter::EntityName {
                entity_type,
                entity_name_filter,
            } => one(
                *entity_type,
                EntityCandidates::Like {
                    types: None,
                    name: Some(NamePattern::new(entity_name_filter)),
                },
            ),
            EntityFilter::AssetType(types) => one(EntityType::Asset, of_types(types)),
            EntityFilter::DeviceType(types) => one(EntityType::Device, of_types(types)),
            EntityFilter::EdgeType(types) => one(EntityType::Edge, of_types(types)),
            EntityFilter::EntityViewType(types) => one(EntityType::EntityView, of_types(types)),
            // A customer's usage is part of its tenant's, and has no entity of its own.
            EntityFilter::ApiUsageState {
                customer_id: Some(customer),
            } if !customer.is_null() => one(EntityType::ApiUsageState, EntityCandidates::Ids(Vec::new())),
            EntityFilter::ApiUsageState { .. } => one(
                EntityType::ApiUsageState,
                EntityCandidates::Ids(vec![usage_id(who.tenant).0]),
            ),
            EntityFilter::AssetSearchQuery(search) => self.searched(who, search, EntityType::Asset).await,
            EntityFilter::DeviceSearchQuery(search) => self.searched(who, search, EntityType::Device).await,
            EntityFilter::EntityViewSearchQuery(search) => {
                self.searched(who, search, EntityType::EntityView).await
            }
            EntityFilter::EdgeSearchQuery(search) => self.searched(who, search, EntityType::Edge).await,
            EntityFilter::RelationsQuery {
                root_entity,
                multi_root,
                multi_root_entities_type,
                multi_root_entity_ids,
                direction,
                filters,
                max_level,
                fetch_last_level_only,
                negate,
            } => {
                let roots: Vec<EntityId> = if *multi_root {
                    let kind = multi_root_entities_type.ok_or_else(|| {
                        ServiceError::invalid(
                            "Multi-root relation query filter should contain 'multiRootEntitiesType'",
                        )
                    })?;
                    if multi_root_entity_ids.is_empty() || multi_root_entity_ids.len() > MAX_ROOTS {
                        return Err(ServiceError::invalid(format!(
                            "Multi-root relation query filter should contain 'multiRootEntityIds' array of 1 to \
                             {MAX_ROOTS} UUIDs"
                        )));
                    }
                    multi_root_entity_ids
                        .iter()
                        .map(|id| EntityId::new(kind, *id))
                        .collect()
                } else {
                    let root = root_entity.ok_or_else(|| {
                        ServiceError::invalid("Relation query filter root entity should not be blank")
                    })?;
                    vec![resolve(who, root)]
                };
                let walk = RelationWalk {
                    direction: *direction,
                    max_level: *max_level,
                    last_only: *fetch_last_level_only,
                    filters,
                    negate: *negate,
                };
                self.related(who, &roots, walk, None).await
            }
        }
    }

    async fn searched(
        &self,
        who: &Principal,
        search: &SearchFilter,
        kind: EntityType,
    ) -> ServiceResult<Vec<EntityScan>> {
        let filters = [RelationFilter {
            relation_type: search.relation_type.clone(),
            entity_types: vec![kind],
            negate: false,
        }];
        let walk = RelationWalk {
            direction: search.direction,
            max_level: search.max_level,
            last_only: search.fetch_last_level_only,
            filters: &filters,
            negate: false,
        };
        let types = (!search.types.any_of.is_empty()).then(|| search.types.any_of.iter().cloned().collect());
        let root = resolve(who, search.root_entity);
        let mut parts = self.related(who, &[root], walk, types).await?;
        parts.retain(|part| part.kind == kind);
        Ok(parts)
    }

    /// What a walk along relations finds, by kinds.
    async fn related(
        &self,
        who: &Principal,
        roots: &[EntityId],
        walk: RelationWalk<'_>,
        types: Option<FxHashSet<String>>,
    ) -> ServiceResult<Vec<EntityScan>> {
        let related = EntityType::ALL.iter().copied();
        let default = [RelationFilter {
            entity_types: related.filter(|kind| kind_policy(*kind).related).collect(),
            ..RelationFilter::default()
        }];
        let has_filters = walk.filters.iter().any(|filter| {
            !filter.entity_types.is_empty()
                || filter
                    .relation_type
                    .as_deref()
                    .is_some_and(|name| !name.is_empty())
        });
        let filters = if has_filters { walk.filters } else { &default };
        let negate = walk.negate && has_filters;
        let mut by_kind: BTreeMap<EntityType, Vec<Uuid>> = BTreeMap::new();
        let mut seen: FxHashSet<EntityId> = FxHashSet::default();
        for root in roots {
            let query = RelationsQuery {
                parameters: RelationsSearchParameters {
                    root_id: root.id,
                    root_type: root.entity_type,
                    direction: walk.direction,
                    relation_type_group: RelationTypeGroup::Common,
                    max_level: walk.max_level.clamp(0, MAX_RELATION_LEVELS as i32),
                    fetch_last_level_only: walk.last_only,
                },
                filters: if negate { Vec::new() } else { filters.to_vec() },
            };
            for relation in self.stores.relations.search(who.tenant, &query).await? {
                if negate
                    && filters
                        .iter()
                        .any(|filter| filter.matches(&relation, walk.direction))
                {
                    continue;
                }
                let found = relation.endpoint(walk.direction);
                if seen.insert(found) {
                    by_kind.entry(found.entity_type).or_default().push(found.id);
                }
            }
        }
        Ok(by_kind
            .into_iter()
            .map(|(kind, ids)| EntityScan {
                kind,
                candidates: EntityCandidates::Ids(ids),
                types: types.clone(),
            })
            .collect())
    }
}

/// How a search goes along relations.
#[derive(Clone, Copy)]
struct RelationWalk<'a> {
    direction: SearchDirection,
    max_level: i32,
    last_only: bool,
    filters: &'a [RelationFilter],
    negate: bool,
}

fn of_types(filter: &TypeFilter) -> EntityCandidates {
    let name = filter.name_filter.as_deref().filter(|name| !name.is_empty());
    EntityCandidates::Like {
        types: Some(filter.type_names().into_iter().map(str::to_owned).collect()),
        name: name.map(NamePattern::new),
    }
}

fn resolve(who: &Principal, alias: AliasId) -> EntityId {
    let owner = || {
        if who.customer.is_null() {
            who.tenant.into()
        } else {
            who.customer.into()
        }
    };
    match alias {
        AliasId::Entity(entity) => entity,
        AliasId::CurrentTenant => who.tenant.into(),
        AliasId::CurrentUser => who.user.into(),
        AliasId::CurrentCustomer => who.customer.into(),
        AliasId::CurrentUserOwner => owner(),
    }
}
