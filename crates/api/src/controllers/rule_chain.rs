//! Rule chains, their nodes and connections.

use std::collections::BTreeSet;

use axum::Json;
use axum::response::{IntoResponse as _, Response};
use fieldline_core::any_entity::AnyEntity;
use fieldline_core::ports::{EventFilter, EventText};
use fieldline_entities::access::{AccessOperation, Principal};
use fieldline_model::entity::{
    EVENT_IN, EntityDraft, EntityVersion, EventKind, OutputLabelsUsage, RuleChain, RuleChainData,
    RuleChainImportResult, RuleChainMetaData, RuleChainType, RuleChainVersion,
};
use fieldline_model::page::{PageData, PageLink};
use fieldline_model::{EntityType, RuleChainId, RuleNodeId};
use serde::Deserialize;
use utoipa_axum::routes;

use super::Either;
use crate::audit::AuditRule;
use crate::caller::ApiCall;
use crate::endpoint::{ApiRoutes, T};
use crate::error::{ApiError, ApiResult};
use crate::extract::{JsonBody, PageParams, PathIds, PathVersion, QueryParams, flag, missing, parse_uuids};
use crate::state::ApiState;

pub(super) fn routes() -> ApiRoutes {
    ApiRoutes::default()
        .add(T.reads(routes!(get)))
        .add(T.changes(routes!(save), AuditRule::Save(EntityType::RuleChain)))
        .add(T.changes(routes!(delete), AuditRule::Delete(EntityType::RuleChain)))
        .add(T.changes(routes!(set_root), AuditRule::Nothing))
        .add(T.changes(routes!(create_default), AuditRule::Nothing))
        .add(T.reads(routes!(metadata)))
        .add(T.changes(routes!(save_metadata), AuditRule::Save(EntityType::RuleChain)))
        .add(T.reads(routes!(versions)))
        .add(T.reads(routes!(version)))
        .add(T.reads(routes!(output_labels)))
        .add(T.reads(routes!(output_labels_usage)))
        .add(T.reads(routes!(list)))
        .add(T.reads(routes!(by_ids)))
        .add(T.reads(routes!(export)))
        .add(T.changes(routes!(import), AuditRule::Nothing))
        .add(T.reads(routes!(debug_input)))
}

/// Returns the rule chain with this id, without its nodes.
#[utoipa::path(get, path = "/api/ruleChain/{ruleChainId}", tag = "rule-chain", operation_id = "getRuleChainById",
    params(("ruleChainId" = Uuid, Path)), responses((status = 200, body = RuleChain)))]
async fn get(ApiCall { api, caller }: ApiCall, PathIds([id]): PathIds<1>) -> ApiResult<Json<RuleChain>> {
    Ok(Json(
        api.load::<RuleChain>(&caller, id, AccessOperation::Read).await?,
    ))
}

/// Creates a rule chain without nodes, or updates it if it has an id.
#[utoipa::path(post, path = "/api/ruleChain", tag = "rule-chain", operation_id = "saveRuleChain",
    request_body = RuleChain, responses((status = 200, body = RuleChain)))]
async fn save(
    ApiCall { api, caller }: ApiCall,
    JsonBody(chain): JsonBody<EntityDraft<RuleChain>>,
) -> ApiResult<Json<RuleChain>> {
    if let Some(id) = chain.id {
        api.load::<RuleChain>(&caller, id.0, AccessOperation::Write)
            .await?;
    }
    let created = chain.id.is_none();
    let saved = api.services.rule_chains.save(caller.tenant, chain).await?;
    notify_rule_engine(&api, &caller, created, &saved).await;
    Ok(Json(saved))
}

/// Notifies the rule engine of a saved chain.
async fn notify_rule_engine(api: &ApiState, caller: &Principal, created: bool, chain: &RuleChain) {
    let entity = AnyEntity::RuleChain(chain.clone());
    api.services.actions.push_saved(caller, created, &entity).await;
}

/// Deletes a rule chain that is neither the root chain nor used by a profile.
#[utoipa::path(delete, path = "/api/ruleChain/{ruleChainId}", tag = "rule-chain", operation_id = "deleteRuleChain",
    params(("ruleChainId" = Uuid, Path)), responses((status = 200)))]
async fn delete(ApiCall { api, caller }: ApiCall, PathIds([id]): PathIds<1>) -> ApiResult<()> {
    let chain = api
        .load::<RuleChain>(&caller, id, AccessOperation::Delete)
        .await?;
    api.services.rule_chains.delete(caller.tenant, &chain).await?;
    let (actions, entity) = (&api.services.actions, AnyEntity::RuleChain(chain));
    actions.push_deleted(&caller, &entity).await;
    Ok(())
}

/// Makes a rule chain the root chain.
#[utoipa::path(post, path = "/api/ruleChain/{ruleChainId}/root", tag = "rule-chain", operation_id = "setRootRuleChain",
    params(("ruleChainId" = Uuid, Path)), responses((status = 200, body = RuleChain)))]
async fn set_root(ApiCall { api, caller }: ApiCall, PathIds([id]): PathIds<1>) -> ApiResult<Json<RuleChain>> {
    let chain = api.load::<RuleChain>(&caller, id, AccessOperation::Write).await?;
    let (chains, stored) = (&api.services.rule_chains, &api.entities.rule_chains);
    let former = stored.root(caller.tenant, chain.chain_type).await?;
    let root = chains.set_root(caller.tenant, RuleChainId(id)).await?;
    if let Some(former) = former.map(|former| former.id).filter(|former| former.0 != id)
        && let Some(former) = stored.get(caller.tenant, former).await?
    {
        notify_rule_engine(&api, &caller, false, &former).await;
    }
    if !chain.root {
        notify_rule_engine(&api, &caller, false, &root).await;
    }
    Ok(Json(root))
}

/// The name of the rule chain to create.
#[derive(Deserialize, utoipa::ToSchema)]
struct DefaultRuleChainCreateRequest {
    /// Name.
    name: Option<String>,
}

/// Creates a rule chain with the nodes of the default root chain.
#[utoipa::path(post, path = "/api/ruleChain/device/default", tag = "rule-chain",
    operation_id = "setDeviceDefaultRuleChain", request_body = DefaultRuleChainCreateRequest,
    responses((status = 200, body = RuleChain)))]
async fn create_default(
    ApiCall { api, caller }: ApiCall,
    JsonBody(request): JsonBody<DefaultRuleChainCreateRequest>,
) -> ApiResult<Json<RuleChain>> {
    let name = request.name.filter(|name| !name.is_empty());
    let name = name.ok_or_else(|| missing("name"))?;
    let chains = &api.services.rule_chains;
    let by = api.services.saved_by(&caller).await?;
    let chain = chains.create_default(caller.tenant, &name, &by).await?;
    notify_rule_engine(&api, &caller, true, &chain).await;
    Ok(Json(chain))
}

/// Returns nodes and connections of a rule chain.
#[utoipa::path(get, path = "/api/ruleChain/{ruleChainId}/metadata", tag = "rule-chain",
    operation_id = "getRuleChainMetaData", params(("ruleChainId" = Uuid, Path)),
    responses((status = 200, body = RuleChainMetaData)))]
async fn metadata(
    ApiCall { api, caller }: ApiCall,
    PathIds([id]): PathIds<1>,
) -> ApiResult<Json<RuleChainMetaData>> {
    api.load::<RuleChain>(&caller, id, AccessOperation::Read).await?;
    let chains = &api.services.rule_chains;
    Ok(Json(chains.metadata(caller.tenant, RuleChainId(id)).await?))
}

#[derive(Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(rename_all = "camelCase")]
struct UpdateRelatedParams {
    /// Whether connections of other chains follow renamed labels; `true` by default.
    #[serde(default, deserialize_with = "flag")]
    update_related: Option<bool>,
}

/// Replaces nodes and connections of a rule chain.
#[utoipa::path(post, path = "/api/ruleChain/metadata", tag = "rule-chain", operation_id = "saveRuleChainMetaData",
    params(UpdateRelatedParams), request_body = RuleChainMetaData,
    responses((status = 200, body = RuleChainMetaData)))]
async fn save_metadata(
    ApiCall { api, caller }: ApiCall,
    QueryParams(params): QueryParams<UpdateRelatedParams>,
    JsonBody(metadata): JsonBody<RuleChainMetaData>,
) -> ApiResult<Json<RuleChainMetaData>> {
    let id = metadata.rule_chain_id.ok_or_else(|| missing("ruleChainId"))?;
    let chain = api
        .load::<RuleChain>(&caller, id.0, AccessOperation::Write)
        .await?;
    let update_related = params.update_related.unwrap_or(true);
    let chains = &api.services.rule_chains;
    let by = api.services.saved_by(&caller).await?;
    let saved = chains
        .save_metadata(caller.tenant, metadata, update_related, &by)
        .await?;
    notify_rule_engine(&api, &caller, false, &chain).await;
    Ok(Json(saved))
}

/// Returns a page of what was saved of the nodes of a rule chain, the newest first. Not in ThingsBoard.
#[utoipa::path(get, path = "/api/ruleChain/{ruleChainId}/versions", tag = "rule-chain",
    operation_id = "getRuleChainVersions", params(("ruleChainId" = Uuid, Path), PageParams),
    responses((status = 200, body = PageData<EntityVersion>)))]
async fn versions(
    ApiCall { api, caller }: ApiCall,
    PathIds([id]): PathIds<1>,
    QueryParams(page): QueryParams<PageParams>,
) -> ApiResult<Json<PageData<EntityVersion>>> {
    let chain = api.load::<RuleChain>(&caller, id, AccessOperation::Read).await?;
    let chains = &api.services.rule_chains;
    Ok(Json(chains.versions(&chain, &page.link()?).await?))
}

/// Returns a rule chain with its nodes as it was saved as a version. Not in ThingsBoard.
#[utoipa::path(get, path = "/api/ruleChain/{ruleChainId}/versions/{version}", tag = "rule-chain",
    operation_id = "getRuleChainVersion", params(("ruleChainId" = Uuid, Path), ("version" = i64, Path)),
    responses((status = 200, body = RuleChainVersion)))]
async fn version(
    ApiCall { api, caller }: ApiCall,
    PathVersion { id, version }: PathVersion,
) -> ApiResult<Json<RuleChainVersion>> {
    let chain = api.load::<RuleChain>(&caller, id, AccessOperation::Read).await?;
    Ok(Json(api.services.rule_chains.version(&chain, version).await?))
}

/// Returns the output labels of a rule chain.
#[utoipa::path(get, path = "/api/ruleChain/{ruleChainId}/output/labels", tag = "rule-chain",
    operation_id = "getRuleChainOutputLabels", params(("ruleChainId" = Uuid, Path)),
    responses((status = 200, body = Vec<String>)))]
async fn output_labels(
    ApiCall { api, caller }: ApiCall,
    PathIds([id]): PathIds<1>,
) -> ApiResult<Json<BTreeSet<String>>> {
    api.load::<RuleChain>(&caller, id, AccessOperation::Read).await?;
    let chains = &api.services.rule_chains;
    Ok(Json(chains.output_labels(caller.tenant, RuleChainId(id)).await?))
}

/// Returns the nodes that pass messages to a rule chain, with the labels of their connections.
#[utoipa::path(get, path = "/api/ruleChain/{ruleChainId}/output/labels/usage", tag = "rule-chain",
    operation_id = "getRuleChainOutputLabelsUsage", params(("ruleChainId" = Uuid, Path)),
    responses((status = 200, body = Vec<OutputLabelsUsage>)))]
async fn output_labels_usage(
    ApiCall { api, caller }: ApiCall,
    PathIds([id]): PathIds<1>,
) -> ApiResult<Json<Vec<OutputLabelsUsage>>> {
    api.load::<RuleChain>(&caller, id, AccessOperation::Read).await?;
    let chains = &api.services.rule_chains;
    let usage = chains.output_labels_usage(caller.tenant, RuleChainId(id)).await?;
    Ok(Json(usage))
}

/// Parses a rule chain type; `CORE` by default.
pub(super) fn chain_type(name: Option<&str>) -> ApiResult<RuleChainType> {
    match name.filter(|name| !name.trim().is_empty()) {
        None => Ok(RuleChainType::Core),
        Some(name) => RuleChainType::from_name(name)
            .ok_or_else(|| ApiError::bad_request(format!("Unknown rule chain type '{name}'"))),
    }
}

#[derive(Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(rename_all = "camelCase")]
struct ChainListParams {
    /// `CORE` or `EDGE`; `CORE` by default.
    #[serde(rename = "type")]
    chain_type: Option<String>,
    /// Comma-joined ids, instead of a page.
    rule_chain_ids: Option<String>,
}

/// Returns a page of rule chains of one type, or with `ruleChainIds` those of them that the tenant has.
#[utoipa::path(get, path = "/api/ruleChains", tag = "rule-chain", operation_id = "getRuleChains",
    params(PageParams, ChainListParams), responses((status = 200, body = inline(Either<PageData<RuleChain>, Vec<RuleChain>>))))]
async fn list(
    ApiCall { api, caller }: ApiCall,
    QueryParams(page): QueryParams<PageParams>,
    QueryParams(params): QueryParams<ChainListParams>,
) -> ApiResult<Json<Either<PageData<RuleChain>, Vec<RuleChain>>>> {
    if params.rule_chain_ids.is_some() {
        let Json(chains) = by_ids(ApiCall { api, caller }, QueryParams(params)).await?;
        return Ok(Json(Either::Right(chains)));
    }
    let chain_type = chain_type(params.chain_type.as_deref())?;
    let chains = &api.entities.rule_chains;
    let page = chains
        .list(caller.tenant, Some(chain_type), &page.link()?)
        .await?;
    Ok(Json(Either::Left(page)))
}

/// Returns those of the rule chains that the tenant has.
#[utoipa::path(get, path = "/api/ruleChains/list", tag = "rule-chain", operation_id = "getRuleChainsByIds",
    params(ChainListParams), responses((status = 200, body = Vec<RuleChain>)))]
async fn by_ids(
    ApiCall { api, caller }: ApiCall,
    QueryParams(params): QueryParams<ChainListParams>,
) -> ApiResult<Json<Vec<RuleChain>>> {
    let ids = params.rule_chain_ids.unwrap_or_default();
    let ids = parse_uuids("ruleChainIds", &ids, RuleChainId)?;
    Ok(Json(api.entities.rule_chains.by_ids(caller.tenant, &ids).await?))
}

/// Most rule chains in one export.
const MOST_EXPORTED: u32 = 1_000;

#[derive(Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
struct ChainExportParams {
    /// Most rule chains to export.
    limit: u32,
}

/// Exports rule chains with nodes and connections, for an import elsewhere.
#[utoipa::path(get, path = "/api/ruleChains/export", tag = "rule-chain", operation_id = "exportRuleChains",
    params(ChainExportParams), responses((status = 200, body = RuleChainData)))]
async fn export(
    ApiCall { api, caller }: ApiCall,
    QueryParams(params): QueryParams<ChainExportParams>,
) -> ApiResult<Json<RuleChainData>> {
    if params.limit < 1 {
        return Err(ApiError::bad_request(
            "Incorrect page link page size '0'. Page size must be greater than zero.",
        ));
    }
    let limit = params.limit.min(MOST_EXPORTED);
    Ok(Json(api.services.rule_chains.export(caller.tenant, limit).await?))
}

#[derive(Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
struct ChainImportParams {
    /// Whether chains replace existing ones with the same name; `false` by default.
    #[serde(default, deserialize_with = "flag")]
    overwrite: Option<bool>,
}

/// Creates rule chains with nodes and connections.
#[utoipa::path(post, path = "/api/ruleChains/import", tag = "rule-chain", operation_id = "importRuleChains",
    params(ChainImportParams), request_body = RuleChainData,
    responses((status = 200, body = Vec<RuleChainImportResult>)))]
async fn import(
    ApiCall { api, caller }: ApiCall,
    QueryParams(params): QueryParams<ChainImportParams>,
    JsonBody(data): JsonBody<RuleChainData>,
) -> ApiResult<Json<Vec<RuleChainImportResult>>> {
    let overwrite = params.overwrite.unwrap_or(false);
    let chains = &api.services.rule_chains;
    let by = api.services.saved_by(&caller).await?;
    Ok(Json(chains.import(caller.tenant, data, overwrite, &by).await?))
}

/// Returns the last message that a node in debug mode has received, as test input for scripts; empty if there is none.
#[utoipa::path(get, path = "/api/ruleNode/{ruleNodeId}/debugIn", tag = "rule-chain",
    operation_id = "getLatestRuleNodeDebugInput", params(("ruleNodeId" = Uuid, Path)),
    responses((status = 200, body = serde_json::Value)))]
async fn debug_input(ApiCall { api, caller }: ApiCall, PathIds([id]): PathIds<1>) -> ApiResult<Response> {
    let id = RuleNodeId(id);
    api.check(&caller, id, AccessOperation::Read).await?;
    let received = EventFilter {
        texts: vec![(EventText::Name, EVENT_IN.to_owned())],
        ..EventFilter::of(EventKind::DebugRuleNode)
    };
    let events = &api.entities.events;
    let page = events
        .list(caller.tenant, id.into(), &received, &PageLink::first(1))
        .await?;
    Ok(match page.data.first() {
        Some(event) => Json(event.body_json()).into_response(),
        None => ().into_response(),
    })
}
