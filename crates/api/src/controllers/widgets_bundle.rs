//! Bundles of widget types.

use axum::Json;
use axum::response::{IntoResponse as _, Response};
use fieldline_core::any_entity::AnyEntity;
use fieldline_core::ports::WidgetLibraryView;
use fieldline_entities::access::{AccessOperation, Principal};
use fieldline_model::entity::{EntityDraft, WidgetsBundle};
use fieldline_model::page::{PageData, PageLink};
use fieldline_model::{EntityType, WidgetTypeId};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use utoipa_axum::routes;
use uuid::Uuid;

use super::Either;
use crate::audit::AuditRule;
use crate::caller::ApiCall;
use crate::endpoint::{ApiRoutes, ST, STC};
use crate::error::{ApiError, ApiResult};
use crate::extract::{JsonBody, PageParams, PathIds, QueryPairs, QueryParams, flag};
use crate::resources::InlineParams;
use crate::state::ApiState;

/// Bundles read at once where all are asked for.
const PAGE: u32 = 1_000;
/// Most bundles that are named in one request.
const MAX_IDS: usize = 1_000;

pub(super) fn routes() -> ApiRoutes {
    ApiRoutes::default()
        .add(STC.reads(routes!(get)))
        .add(ST.changes(routes!(save), AuditRule::Save(EntityType::WidgetsBundle)))
        .add(ST.changes(routes!(delete), AuditRule::Delete(EntityType::WidgetsBundle)))
        .add(ST.changes(routes!(set_types), AuditRule::Nothing))
        .add(ST.changes(routes!(set_types_by_fqn), AuditRule::Nothing))
        .add(STC.reads(routes!(list)))
        .add(STC.reads(routes!(all)))
        .add(STC.reads(routes!(by_ids)))
}

/// Returns the bundle with this id.
#[utoipa::path(get, path = "/api/widgetsBundle/{widgetsBundleId}", tag = "widgets-bundle",
    operation_id = "getWidgetsBundleById", params(("widgetsBundleId" = Uuid, Path), InlineParams),
    responses((status = 200, body = WidgetsBundle)))]
async fn get(
    ApiCall { api, caller }: ApiCall,
    PathIds([id]): PathIds<1>,
    QueryParams(params): QueryParams<InlineParams>,
) -> ApiResult<Response> {
    let mut bundle = api
        .load::<WidgetsBundle>(&caller, id, AccessOperation::Read)
        .await?;
    let share = params.apply(&api, &caller, &mut bundle.image).await?;
    let answer = Json(bundle).into_response();
    drop(share);
    Ok(answer)
}

/// Creates a bundle, or updates it if it has an id. Those that a system administrator saves are shared by all tenants.
#[utoipa::path(post, path = "/api/widgetsBundle", tag = "widgets-bundle", operation_id = "saveWidgetsBundle",
    request_body = WidgetsBundle, responses((status = 200, body = WidgetsBundle)))]
async fn save(
    ApiCall { api, caller }: ApiCall,
    JsonBody(draft): JsonBody<EntityDraft<WidgetsBundle>>,
) -> ApiResult<Json<WidgetsBundle>> {
    if let Some(id) = draft.id {
        api.load::<WidgetsBundle>(&caller, id.0, AccessOperation::Write)
            .await?;
    }
    let created = draft.id.is_none();
    let saved = api.services.widgets.save_bundle(caller.tenant, draft).await?;
    let entity = AnyEntity::WidgetsBundle(saved.clone());
    api.services.actions.push_saved(&caller, created, &entity).await;
    Ok(Json(saved))
}

/// Deletes a bundle; its widget types stay.
#[utoipa::path(delete, path = "/api/widgetsBundle/{widgetsBundleId}", tag = "widgets-bundle",
    operation_id = "deleteWidgetsBundle", params(("widgetsBundleId" = Uuid, Path)), responses((status = 200)))]
async fn delete(ApiCall { api, caller }: ApiCall, PathIds([id]): PathIds<1>) -> ApiResult<()> {
    let bundle = api
        .load::<WidgetsBundle>(&caller, id, AccessOperation::Delete)
        .await?;
    api.services.widgets.delete_bundle(&bundle).await?;
    let entity = AnyEntity::WidgetsBundle(bundle);
    api.services.actions.push_deleted(&caller, &entity).await;
    Ok(())
}

/// Replaces the widget types of a bundle by those with these ids, in this order.
#[utoipa::path(post, path = "/api/widgetsBundle/{widgetsBundleId}/widgetTypes", tag = "widgets-bundle",
    operation_id = "updateWidgetsBundleWidgetTypes", params(("widgetsBundleId" = Uuid, Path)),
    request_body = Vec<Uuid>, responses((status = 200)))]
async fn set_types(
    ApiCall { api, caller }: ApiCall,
    PathIds([id]): PathIds<1>,
    JsonBody(body): JsonBody<Value>,
) -> ApiResult<()> {
    let bundle = api
        .load::<WidgetsBundle>(&caller, id, AccessOperation::Write)
        .await?;
    let types: Vec<WidgetTypeId> = listed::<Uuid>(body)?.into_iter().map(WidgetTypeId).collect();
    Ok(api.services.widgets.set_types(&bundle, &types).await?)
}

/// Replaces the widget types of a bundle by those with these fully qualified names, in this order.
#[utoipa::path(post, path = "/api/widgetsBundle/{widgetsBundleId}/widgetTypeFqns", tag = "widgets-bundle",
    operation_id = "updateWidgetsBundleWidgetFqns", params(("widgetsBundleId" = Uuid, Path)),
    request_body = Vec<String>, responses((status = 200)))]
async fn set_types_by_fqn(
    ApiCall { api, caller }: ApiCall,
    PathIds([id]): PathIds<1>,
    JsonBody(body): JsonBody<Value>,
) -> ApiResult<()> {
    let bundle = api
        .load::<WidgetsBundle>(&caller, id, AccessOperation::Write)
        .await?;
    Ok(api
        .services
        .widgets
        .set_types_by_fqn(&bundle, &listed(body)?)
        .await?)
}

/// The list of a body. It is read after access is checked, so that nobody learns from an error what others have.
fn listed<T: DeserializeOwned>(body: Value) -> ApiResult<Vec<T>> {
    serde_json::from_value(body)
        .map_err(|error| ApiError::bad_request(format!("A list is expected: {error}")))
}

#[derive(Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(rename_all = "camelCase")]
struct BundleListParams {
    /// Ids with commas between them, in the place of a page.
    widgets_bundle_ids: Option<String>,
    /// Whether only the tenant's own are listed.
    #[serde(default, deserialize_with = "flag")]
    tenant_only: Option<bool>,
    /// Whether the text is looked for in descriptions, too.
    #[serde(default, deserialize_with = "flag")]
    full_search: Option<bool>,
    /// Whether bundles of symbols of SCADA drawings come first.
    #[serde(default, deserialize_with = "flag")]
    scada_first: Option<bool>,
}

/// Returns a page of the bundles that the caller sees; all of them without a page, and those of the ids that are named.
#[utoipa::path(get, path = "/api/widgetsBundles", tag = "widgets-bundle", operation_id = "getWidgetsBundles",
    params(PageParams, BundleListParams),
    responses((status = 200, body = Either<PageData<WidgetsBundle>, Vec<WidgetsBundle>>)))]
async fn list(
    ApiCall { api, caller }: ApiCall,
    QueryPairs(pairs): QueryPairs,
    QueryParams(page): QueryParams<PageParams>,
    QueryParams(params): QueryParams<BundleListParams>,
) -> ApiResult<Json<Either<PageData<WidgetsBundle>, Vec<WidgetsBundle>>>> {
    if let Some(ids) = &params.widgets_bundle_ids {
        return Ok(Json(Either::Right(named(&api, &caller, ids).await?)));
    }
    if !pairs.iter().any(|(name, _)| name == "pageSize" || name == "page") {
        return Ok(Json(Either::Right(every(&api, &caller).await?)));
    }
    let view = WidgetLibraryView {
        tenant: caller.tenant,
        own_only: params.tenant_only == Some(true),
        full_search: params.full_search == Some(true),
        scada_first: params.scada_first == Some(true),
    };
    let found = api.entities.widgets_bundles.list(&view, &page.link()?).await?;
    Ok(Json(Either::Left(found)))
}

/// Returns all bundles that the caller sees.
#[utoipa::path(get, path = "/api/widgetsBundles/all", tag = "widgets-bundle", operation_id = "getAllWidgetsBundles",
    responses((status = 200, body = Vec<WidgetsBundle>)))]
async fn all(ApiCall { api, caller }: ApiCall) -> ApiResult<Json<Vec<WidgetsBundle>>> {
    Ok(Json(every(&api, &caller).await?))
}

/// Returns the bundles with these ids that the caller sees.
#[utoipa::path(get, path = "/api/widgetsBundles/list", tag = "widgets-bundle", operation_id = "getWidgetsBundlesByIds",
    params(BundleListParams), responses((status = 200, body = Vec<WidgetsBundle>)))]
async fn by_ids(
    ApiCall { api, caller }: ApiCall,
    QueryParams(params): QueryParams<BundleListParams>,
) -> ApiResult<Json<Vec<WidgetsBundle>>> {
    let ids = params.widgets_bundle_ids.unwrap_or_default();
    Ok(Json(named(&api, &caller, &ids).await?))
}

async fn every(api: &ApiState, caller: &Principal) -> ApiResult<Vec<WidgetsBundle>> {
    let view = WidgetLibraryView {
        tenant: caller.tenant,
        ..WidgetLibraryView::default()
    };
    let mut link = PageLink::first(PAGE);
    link.sort_property = Some("title".to_owned());
    let page = api.entities.widgets_bundles.list(&view, &link).await?;
    Ok(page.data)
}

/// Those of a list of ids that the caller sees, in its order.
async fn named(api: &ApiState, caller: &Principal, ids: &str) -> ApiResult<Vec<WidgetsBundle>> {
    let mut found = Vec::new();
    for (place, id) in ids.split(',').filter(|id| !id.is_empty()).enumerate() {
        if place == MAX_IDS {
            return Err(ApiError::bad_request(format!(
                "At most {MAX_IDS} widget bundles can be named at once"
            )));
        }
        let id: Uuid = id
            .trim()
            .parse()
            .map_err(|_| ApiError::bad_request(format!("Invalid UUID string: {id}")))?;
        match api.load::<WidgetsBundle>(caller, id, AccessOperation::Read).await {
            Ok(bundle) => found.push(bundle),
            Err(fieldline_entities::access::AccessError::NotFound(_)) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(found)
}
