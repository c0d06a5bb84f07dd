//! Queries of entities by fields, attributes and latest values.

use std::collections::{BTreeMap, BTreeSet};

use axum::Json;
use fieldline_entities::access::Principal;
use fieldline_model::page::PageData;
use fieldline_model::query::{AvailableKeys, EntityCountQuery, EntityData, EntityDataQuery};
use fieldline_model::timeseries::AttributeScope;
use fieldline_model::{EntityKey, EntityType};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa_axum::routes;

use crate::caller::ApiCall;
use crate::endpoint::{ApiRoutes, STC, TC};
use crate::error::{ApiError, ApiResult};
use crate::extract::{JsonBody, QueryParams, flag, required_flag};
use crate::state::ApiState;

pub(super) fn routes() -> ApiRoutes {
    ApiRoutes::default()
        .add(STC.asks(routes!(count)))
        .add(STC.asks(routes!(find)))
        .add(TC.asks(routes!(find_keys)))
        .add(TC.asks(routes!(find_key_infos)))
}

/// Most entities whose keys are collected.
const MAX_ENTITIES_OF_KEYS: i64 = 100;

/// Counts the entities that match a query.
#[utoipa::path(post, path = "/api/entitiesQuery/count", tag = "entity-query", operation_id = "countEntitiesByQuery",
    request_body = EntityCountQuery, responses((status = 200, body = u64, content_type = "application/json")))]
async fn count(
    ApiCall { api, caller }: ApiCall,
    JsonBody(query): JsonBody<EntityCountQuery>,
) -> ApiResult<Json<u64>> {
    Ok(Json(api.queries.count(&caller, &query).await?))
}

/// Returns a page of the entities that match a query, with the requested fields and values.
#[utoipa::path(post, path = "/api/entitiesQuery/find", tag = "entity-query", operation_id = "findEntityDataByQuery",
    request_body = EntityDataQuery, responses((status = 200, body = PageData<EntityData>)))]
async fn find(
    ApiCall { api, caller }: ApiCall,
    JsonBody(query): JsonBody<EntityDataQuery>,
) -> ApiResult<Json<PageData<EntityData>>> {
    Ok(Json(api.queries.find(&caller, &query).await?))
}

#[derive(Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
struct EntityKeysParams {
    /// Whether to return the names of series.
    #[serde(deserialize_with = "required_flag")]
    timeseries: bool,
    /// Whether to return the names of attributes.
    #[serde(deserialize_with = "required_flag")]
    attributes: bool,
    /// Only attributes of this scope.
    scope: Option<String>,
}

/// Returns the names of series and attributes of the entities that match a query, from at most 100 of them.
#[utoipa::path(post, path = "/api/entitiesQuery/find/keys", tag = "entity-query",
    operation_id = "findEntityTimeseriesAndAttributesKeysByQuery", params(EntityKeysParams),
    request_body = EntityDataQuery, responses((status = 200, body = AvailableKeys)))]
async fn find_keys(
    ApiCall { api, caller }: ApiCall,
    QueryParams(params): QueryParams<EntityKeysParams>,
    JsonBody(query): JsonBody<EntityDataQuery>,
) -> ApiResult<Json<AvailableKeys>> {
    let scopes = match params.scope.as_deref().filter(|name| !name.is_empty()) {
        Some(name) => vec![scope(name)?],
        None => AttributeScope::ALL.to_vec(),
    };
    let mut keys = AvailableKeys::default();
    if !params.timeseries && !params.attributes {
        return Ok(Json(keys));
    }
    for subject in found(&api, &caller, query).await? {
        keys.entity_types.insert(subject.entity.entity_type);
        if params.timeseries {
            keys.timeseries.extend(api.series.keys(subject).await?);
        }
        if params.attributes {
            for scope in &scopes {
                let attributes = api.attributes.get(subject, *scope, None).await?;
                keys.attribute
                    .extend(attributes.into_iter().map(|attribute| attribute.key));
            }
        }
    }
    Ok(Json(keys))
}

#[derive(Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(rename_all = "camelCase")]
struct KeyInfosParams {
    /// Whether to return series; `true` by default.
    #[serde(default, deserialize_with = "flag")]
    include_timeseries: Option<bool>,
    /// Whether to return attributes; `true` by default.
    #[serde(default, deserialize_with = "flag")]
    include_attributes: Option<bool>,
    /// Only attributes of these comma-joined scopes; all that the entities can have by default.
    scopes: Option<String>,
    /// Whether to return the newest value of each key.
    #[serde(default, deserialize_with = "flag")]
    include_samples: Option<bool>,
}

/// The newest value of a key.
#[derive(Serialize, utoipa::ToSchema)]
struct KeySample {
    /// Timestamp of the value, milliseconds.
    ts: i64,
    /// The value, with its own type.
    value: Value,
}

/// A key of series or attributes.
#[derive(Serialize, utoipa::ToSchema)]
struct KeyInfo {
    /// The name.
    key: String,
    /// The newest value; absent unless requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    sample: Option<KeySample>,
}

/// The keys of series and attributes.
#[derive(Serialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
struct KeyInfos {
    /// Kinds of the entities.
    #[schema(value_type = Vec<String>)]
    entity_types: BTreeSet<EntityType>,
    /// Series; absent unless requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    timeseries: Option<Vec<KeyInfo>>,
    /// Attributes by scope; absent unless requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    attributes: Option<BTreeMap<&'static str, Vec<KeyInfo>>>,
}

/// The newest value of each key.
#[derive(Default)]
struct NewestSamples(BTreeMap<String, (i64, Value)>);

impl NewestSamples {
    fn add(&mut self, key: String, ts: i64, value: impl FnOnce() -> Value) {
        if self.0.get(&key).is_none_or(|(newest, _)| *newest < ts) {
            self.0.insert(key, (ts, value()));
        }
    }

    fn shown(self, samples: bool) -> Vec<KeyInfo> {
        let info = |(key, (ts, value))| KeyInfo {
            key,
            sample: samples.then_some(KeySample { ts, value }),
        };
        self.0.into_iter().map(info).collect()
    }
}

/// Returns the series and attributes of the entities that match a query, from at most 100 of them, with samples if
/// requested.
#[utoipa::path(post, path = "/api/v2/entitiesQuery/find/keys", tag = "entity-query",
    operation_id = "findAvailableEntityKeysByQueryV2", params(KeyInfosParams),
    request_body = EntityDataQuery, responses((status = 200, body = KeyInfos)))]
async fn find_key_infos(
    ApiCall { api, caller }: ApiCall,
    QueryParams(params): QueryParams<KeyInfosParams>,
    JsonBody(query): JsonBody<EntityDataQuery>,
) -> ApiResult<Json<KeyInfos>> {
    let series = params.include_timeseries.unwrap_or(true);
    let attributes = params.include_attributes.unwrap_or(true);
    if !series && !attributes {
        return Err(ApiError::bad_request(
            "At least one of 'includeTimeseries' or 'includeAttributes' must be true",
        ));
    }
    let samples = params.include_samples.unwrap_or(false);
    let named = params.scopes.as_deref().filter(|names| !names.is_empty());
    let named: Option<Vec<AttributeScope>> = named
        .map(|names| names.split(',').map(|name| scope(name.trim())).collect())
        .transpose()?;
    let subjects = found(&api, &caller, query).await?;
    let entity_types: BTreeSet<EntityType> = subjects
        .iter()
        .map(|subject| subject.entity.entity_type)
        .collect();
    // Only devices have attributes of other scopes than the server's.
    let possible: &[AttributeScope] = if entity_types.contains(&EntityType::Device) {
        &AttributeScope::ALL
    } else {
        &[AttributeScope::Server]
    };
    let scopes = possible
        .iter()
        .filter(|scope| named.as_ref().is_none_or(|named| named.contains(scope)));
    let mut latest = NewestSamples::default();
    let mut by_scope: BTreeMap<&'static str, NewestSamples> = BTreeMap::new();
    if attributes && !subjects.is_empty() {
        by_scope.extend(
            scopes
                .clone()
                .map(|scope| (scope.name(), NewestSamples::default())),
        );
    }
    for subject in subjects {
        if series {
            for value in api.series.latest(subject, None).await? {
                latest.add(value.key, value.point.ts, || value.point.value.to_json());
            }
        }
        for scope in scopes.clone().filter(|_| attributes) {
            let newest = by_scope.entry(scope.name()).or_default();
            for attribute in api.attributes.get(subject, *scope, None).await? {
                newest.add(attribute.key, attribute.last_update_ts, || {
                    attribute.value.to_json()
                });
            }
        }
    }
    let shown = |(scope, newest): (&'static str, NewestSamples)| (scope, newest.shown(samples));
    Ok(Json(KeyInfos {
        entity_types,
        timeseries: series.then(|| latest.shown(samples)),
        attributes: attributes.then(|| by_scope.into_iter().map(shown).collect()),
    }))
}

/// Returns the first entities that match a query.
async fn found(api: &ApiState, caller: &Principal, mut query: EntityDataQuery) -> ApiResult<Vec<EntityKey>> {
    query.page_link.page_size = query.page_link.page_size.min(MAX_ENTITIES_OF_KEYS);
    let page = api.queries.find(caller, &query).await?;
    let mut subjects = Vec::with_capacity(page.data.len());
    for found in page.data {
        // The names of an entity's attributes stay hidden if the caller may not read the attributes.
        let operation = fieldline_entities::access::AccessOperation::ReadAttributes;
        if let Ok(entity) = api.check(caller, found.entity_id, operation).await {
            subjects.push(entity.subject());
        }
    }
    Ok(subjects)
}

fn scope(name: &str) -> ApiResult<AttributeScope> {
    AttributeScope::from_name(name)
        .ok_or_else(|| ApiError::bad_request(format!("Invalid attribute scope: {name}")))
}
