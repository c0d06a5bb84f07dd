//! Widget types: what dashboards draw their widgets with.

use axum::Json;
use axum::response::{IntoResponse as _, Response};
use fieldline_core::any_entity::AnyEntity;
use fieldline_core::memory_pool::MemoryShare;
use fieldline_core::ports::{WidgetLibraryView, WidgetTypeFilter};
use fieldline_entities::access::{AccessOperation, Principal};
use fieldline_model::entity::{
    EntityDraft, WidgetType, WidgetTypeDetails, WidgetTypeInfo, WidgetsBundle, WidgetsBundleName,
};
use fieldline_model::page::PageData;
use fieldline_model::{EntityType, TenantId, WidgetTypeId, WidgetsBundleId};
use serde::Deserialize;
use utoipa_axum::routes;
use uuid::Uuid;

use super::Either;
use crate::audit::AuditRule;
use crate::caller::ApiCall;
use crate::endpoint::{ApiRoutes, ST, STC};
use crate::error::{ApiError, ApiResult};
use crate::extract::{JsonBody, PageParams, PathIds, QueryParams, flag, missing};
use crate::resources;
use crate::state::ApiState;

/// What the data of a widget may be.
const DATA_TYPES: [&str; 5] = ["timeseries", "latest", "rpc", "alarm", "static"];

pub(super) fn routes() -> ApiRoutes {
    ApiRoutes::default()
        .add(STC.reads(routes!(by_name)))
        .add(ST.reads(routes!(get)))
        .add(ST.reads(routes!(info)))
        .add(ST.changes(routes!(save), AuditRule::Save(EntityType::WidgetType)))
        .add(ST.changes(routes!(delete), AuditRule::Delete(EntityType::WidgetType)))
        .add(STC.reads(routes!(list)))
        .add(STC.reads(routes!(of_bundle)))
        .add(STC.reads(routes!(details_of_bundle)))
        .add(ST.reads(routes!(fqns_of_bundle)))
        .add(STC.reads(routes!(infos_of_bundle)))
}

/// Which widget types a list is about. A bundle is named by its id, or by its alias and whether it is the system's.
#[derive(Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(rename_all = "camelCase")]
struct WidgetTypeListParams {
    /// The bundle.
    widgets_bundle_id: Option<Uuid>,
    /// Whether the bundle of that alias is the system's.
    #[serde(default, deserialize_with = "flag")]
    is_system: Option<bool>,
    /// Alias of a bundle.
    bundle_alias: Option<String>,
    /// Whether only the tenant's own are listed.
    #[serde(default, deserialize_with = "flag")]
    tenant_only: Option<bool>,
    /// Whether the text is looked for in descriptions and tags, too.
    #[serde(default, deserialize_with = "flag")]
    full_search: Option<bool>,
    /// Whether symbols of SCADA drawings come first.
    #[serde(default, deserialize_with = "flag")]
    scada_first: Option<bool>,
    /// `ALL`, `ACTUAL` or `DEPRECATED`.
    deprecated_filter: Option<String>,
    /// What their data is: `timeseries`, `latest`, `rpc`, `alarm`, `static`, with commas between them.
    widget_type_list: Option<String>,
}

impl WidgetTypeListParams {
    fn filter(&self, tenant: TenantId, bundle: Option<WidgetsBundleId>) -> ApiResult<WidgetTypeFilter> {
        let given = |text: &'_ Option<String>| text.clone().filter(|text| !text.is_empty());
        let deprecated = match given(&self.deprecated_filter).as_deref() {
            None | Some("ALL") => None,
            Some("ACTUAL") => Some(false),
            Some("DEPRECATED") => Some(true),
            Some(other) => {
                return Err(ApiError::bad_request(format!(
                    "deprecatedFilter is ALL, ACTUAL or DEPRECATED, not '{other}'"
                )));
            }
        };
        let mut data_types = Vec::new();
        for name in given(&self.widget_type_list)
            .as_deref()
            .unwrap_or_default()
            .split(',')
        {
            match DATA_TYPES.iter().find(|known| known.eq_ignore_ascii_case(name)) {
                Some(known) => data_types.push((*known).to_owned()),
                None if name.is_empty() => {}
                None => {
                    return Err(ApiError::bad_request(format!(
                        "Unknown type of widgets '{name}': there are {}",
                        DATA_TYPES.join(", ")
                    )));
                }
            }
        }
        Ok(WidgetTypeFilter {
            view: WidgetLibraryView {
                tenant,
                own_only: self.tenant_only == Some(true),
                full_search: self.full_search == Some(true),
                scada_first: self.scada_first == Some(true),
            },
            deprecated,
            data_types,
            bundle,
        })
    }

    /// The bundle that the list is about, if it names one.
    async fn bundle(&self, api: &ApiState, caller: &Principal) -> ApiResult<Option<WidgetsBundle>> {
        if let Some(id) = self.widgets_bundle_id {
            let found = api
                .load::<WidgetsBundle>(caller, id, AccessOperation::Read)
                .await?;
            return Ok(Some(found));
        }
        let Some(alias) = &self.bundle_alias else {
            return Ok(None);
        };
        let owner = scope(caller, self.is_system == Some(true));
        let found = api.entities.widgets_bundles.by_alias(owner, alias).await?;
        found.map(Some).ok_or_else(ApiError::item_not_found)
    }

    /// The same where the list needs one.
    async fn required_bundle(&self, api: &ApiState, caller: &Principal) -> ApiResult<WidgetsBundleId> {
        let found = self.bundle(api, caller).await?;
        found
            .map(|bundle| bundle.id)
            .ok_or_else(|| missing("widgetsBundleId"))
    }
}

/// Who owns what is the system's, or the caller's own.
fn scope(caller: &Principal, is_system: bool) -> TenantId {
    if is_system { TenantId::NULL } else { caller.tenant }
}

#[derive(Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(rename_all = "camelCase")]
struct WidgetTypeNameParams {
    /// Fully qualified name with its scope: `system.name` or `tenant.name`.
    fqn: Option<String>,
    /// Whether the type is the system's; with `bundleAlias` and `alias` in the place of `fqn`.
    #[serde(default, deserialize_with = "flag")]
    is_system: Option<bool>,
    /// First half of the name in the former form.
    bundle_alias: Option<String>,
    /// Second half of it.
    alias: Option<String>,
}

/// Returns the widget type of a fully qualified name, which dashboards hold.
#[utoipa::path(get, path = "/api/widgetType", tag = "widget-type", operation_id = "getWidgetTypeByFqn",
    params(WidgetTypeNameParams), responses((status = 200, body = WidgetType)))]
async fn by_name(
    ApiCall { api, caller }: ApiCall,
    QueryParams(params): QueryParams<WidgetTypeNameParams>,
) -> ApiResult<Json<WidgetType>> {
    let (owner, name) = match (&params.fqn, &params.bundle_alias, &params.alias) {
        (Some(fqn), _, _) => match fqn.split_once('.') {
            Some(("system", name)) => (TenantId::NULL, name.to_owned()),
            Some(("tenant", name)) => (caller.tenant, name.to_owned()),
            _ => return Err(ApiError::bad_request("Invalid fqn!")),
        },
        (None, Some(bundle), Some(alias)) => (
            scope(&caller, params.is_system == Some(true)),
            format!("{bundle}.{alias}"),
        ),
        _ => return Err(missing("fqn")),
    };
    let found = api.entities.widget_types.by_fqn(owner, &name).await?;
    Ok(Json(found.ok_or_else(ApiError::item_not_found)?.into()))
}

#[derive(Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(rename_all = "camelCase")]
struct WidgetTypeExportParams {
    /// Whether to return the images and other resources that it uses, as an export does.
    #[serde(default, deserialize_with = "flag")]
    include_resources: Option<bool>,
}

/// Returns the widget type with this id, with all that is stored of it.
#[utoipa::path(get, path = "/api/widgetType/{widgetTypeId}", tag = "widget-type", operation_id = "getWidgetTypeById",
    params(("widgetTypeId" = Uuid, Path), WidgetTypeExportParams),
    responses((status = 200, body = WidgetTypeDetails)))]
async fn get(
    ApiCall { api, caller }: ApiCall,
    PathIds([id]): PathIds<1>,
    QueryParams(params): QueryParams<WidgetTypeExportParams>,
) -> ApiResult<Response> {
    let info = api
        .load::<WidgetTypeInfo>(&caller, id, AccessOperation::Read)
        .await?;
    let owner = info.base.tenant_id;
    let found = api.entities.widget_types.get(owner, WidgetTypeId(id)).await?;
    let mut details = found.ok_or_else(ApiError::item_not_found)?;
    if params.include_resources != Some(true) {
        return Ok(Json(details).into_response());
    }
    let share = add_resources(&api, &caller, &mut details).await?;
    let answer = Json(details).into_response();
    drop(share);
    Ok(answer)
}

/// Adds the resources that a widget type uses; returns the memory that they take.
async fn add_resources(
    api: &ApiState,
    caller: &Principal,
    details: &mut WidgetTypeDetails,
) -> ApiResult<MemoryShare> {
    let image = details.texts.image.as_deref();
    let (used, share) = resources::export(api, caller, image, &[&details.descriptor]).await?;
    details.resources = Some(used);
    Ok(share)
}

/// Returns what lists show of the widget type with this id.
#[utoipa::path(get, path = "/api/widgetTypeInfo/{widgetTypeId}", tag = "widget-type",
    operation_id = "getWidgetTypeInfoById", params(("widgetTypeId" = Uuid, Path)),
    responses((status = 200, body = WidgetTypeInfo)))]
async fn info(
    ApiCall { api, caller }: ApiCall,
    PathIds([id]): PathIds<1>,
) -> ApiResult<Json<WidgetTypeInfo>> {
    let mut info = api
        .load::<WidgetTypeInfo>(&caller, id, AccessOperation::Read)
        .await?;
    let bundles = api.entities.widgets_bundles.of_types(&[info.base.id]).await?;
    info.bundles = bundles
        .into_iter()
        .map(|(_, bundle): (_, WidgetsBundleName)| bundle)
        .collect();
    Ok(Json(info))
}

#[derive(Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(rename_all = "camelCase")]
struct SaveWidgetTypeParams {
    /// Whether a type of the same fully qualified name is updated where the body has no id.
    #[serde(default, deserialize_with = "flag")]
    update_existing_by_fqn: Option<bool>,
}

/// Creates a widget type, or updates it if it has an id. Those that a system administrator saves are shared by all tenants.
#[utoipa::path(post, path = "/api/widgetType", tag = "widget-type", operation_id = "saveWidgetType",
    params(SaveWidgetTypeParams), request_body = WidgetTypeDetails,
    responses((status = 200, body = WidgetTypeDetails)))]
async fn save(
    ApiCall { api, caller }: ApiCall,
    QueryParams(params): QueryParams<SaveWidgetTypeParams>,
    JsonBody(mut draft): JsonBody<EntityDraft<WidgetTypeDetails>>,
) -> ApiResult<Json<WidgetTypeDetails>> {
    if let Some(id) = draft.id {
        api.load::<WidgetTypeInfo>(&caller, id.0, AccessOperation::Write)
            .await?;
    }
    let created = draft.id.is_none();
    if let Some(brought) = draft.resources.take() {
        let links = resources::import(&api, &caller, brought).await?;
        links.rewrite_widget(&mut draft);
    }
    let service = &api.services.resources;
    service
        .link_scripts(caller.tenant, &mut draft.descriptor, &["resources", "*", "url"])
        .await?;
    let by_fqn = params.update_existing_by_fqn == Some(true);
    let saved = api
        .services
        .widgets
        .save_type(caller.tenant, draft, by_fqn)
        .await?;
    let entity = AnyEntity::WidgetType(WidgetTypeInfo::from(&saved));
    api.services.actions.push_saved(&caller, created, &entity).await;
    Ok(Json(saved))
}

/// Deletes a widget type. Dashboards that use it stay as they are.
#[utoipa::path(delete, path = "/api/widgetType/{widgetTypeId}", tag = "widget-type", operation_id = "deleteWidgetType",
    params(("widgetTypeId" = Uuid, Path)), responses((status = 200)))]
async fn delete(ApiCall { api, caller }: ApiCall, PathIds([id]): PathIds<1>) -> ApiResult<()> {
    let info = api
        .load::<WidgetTypeInfo>(&caller, id, AccessOperation::Delete)
        .await?;
    api.services.widgets.delete_type(&info).await?;
    let entity = AnyEntity::WidgetType(info);
    api.services.actions.push_deleted(&caller, &entity).await;
    Ok(())
}

/// Returns a page of the widget types that the caller sees, or those of a bundle in its order.
#[utoipa::path(get, path = "/api/widgetTypes", tag = "widget-type", operation_id = "getWidgetTypes",
    params(PageParams, WidgetTypeListParams),
    responses((status = 200, body = Either<PageData<WidgetTypeInfo>, Vec<WidgetType>>)))]
async fn list(
    ApiCall { api, caller }: ApiCall,
    QueryParams(page): QueryParams<PageParams>,
    QueryParams(params): QueryParams<WidgetTypeListParams>,
) -> ApiResult<Json<Either<PageData<WidgetTypeInfo>, Vec<WidgetType>>>> {
    if let Some(bundle) = params.bundle(&api, &caller).await? {
        return Ok(Json(Either::Right(types_of(&api, bundle.id).await?)));
    }
    let filter = params.filter(caller.tenant, None)?;
    let found = api.entities.widget_types.list(&filter, &page.link()?).await?;
    Ok(Json(Either::Left(found)))
}

async fn types_of(api: &ApiState, bundle: WidgetsBundleId) -> ApiResult<Vec<WidgetType>> {
    let found = api.entities.widget_types.of_bundle(bundle).await?;
    Ok(found.into_iter().map(WidgetType::from).collect())
}

/// Returns the widget types of a bundle in its order.
#[utoipa::path(get, path = "/api/widgetsBundle/{widgetsBundleId}/widgetTypes", tag = "widget-type",
    operation_id = "getBundleWidgetTypes", params(("widgetsBundleId" = Uuid, Path)),
    responses((status = 200, body = Vec<WidgetType>)))]
async fn of_bundle(
    ApiCall { api, caller }: ApiCall,
    PathIds([id]): PathIds<1>,
) -> ApiResult<Json<Vec<WidgetType>>> {
    let bundle = api
        .load::<WidgetsBundle>(&caller, id, AccessOperation::Read)
        .await?;
    Ok(Json(types_of(&api, bundle.id).await?))
}

/// Returns the widget types of a bundle in its order, with all that is stored of them.
#[utoipa::path(get, path = "/api/widgetTypesDetails", tag = "widget-type", operation_id = "getBundleWidgetTypesDetails",
    params(WidgetTypeListParams, WidgetTypeExportParams),
    responses((status = 200, body = Vec<WidgetTypeDetails>)))]
async fn details_of_bundle(
    ApiCall { api, caller }: ApiCall,
    QueryParams(params): QueryParams<WidgetTypeListParams>,
    QueryParams(export): QueryParams<WidgetTypeExportParams>,
) -> ApiResult<Response> {
    let bundle = params.required_bundle(&api, &caller).await?;
    let mut found = api.entities.widget_types.of_bundle(bundle).await?;
    let mut shares = Vec::new();
    if export.include_resources == Some(true) {
        for details in &mut found {
            shares.push(add_resources(&api, &caller, details).await?);
        }
    }
    let answer = Json(found).into_response();
    drop(shares);
    Ok(answer)
}

/// Returns the fully qualified names of the widget types of a bundle in its order, with their scopes.
#[utoipa::path(get, path = "/api/widgetTypeFqns", tag = "widget-type", operation_id = "getBundleWidgetTypeFqns",
    params(WidgetTypeListParams), responses((status = 200, body = Vec<String>)))]
async fn fqns_of_bundle(
    ApiCall { api, caller }: ApiCall,
    QueryParams(params): QueryParams<WidgetTypeListParams>,
) -> ApiResult<Json<Vec<String>>> {
    let bundle = params.required_bundle(&api, &caller).await?;
    let found = api.entities.widget_types.fqns_of_bundle(bundle).await?;
    let scoped = found.into_iter().map(|(owner, fqn)| match owner.is_null() {
        true => format!("system.{fqn}"),
        false => format!("tenant.{fqn}"),
    });
    Ok(Json(scoped.collect()))
}

/// Returns what lists show of the widget types of a bundle: a page of those of an id, all of those of an alias.
#[utoipa::path(get, path = "/api/widgetTypesInfos", tag = "widget-type", operation_id = "getBundleWidgetTypesInfos",
    params(PageParams, WidgetTypeListParams),
    responses((status = 200, body = Either<PageData<WidgetTypeInfo>, Vec<WidgetTypeInfo>>)))]
async fn infos_of_bundle(
    ApiCall { api, caller }: ApiCall,
    QueryParams(page): QueryParams<PageParams>,
    QueryParams(params): QueryParams<WidgetTypeListParams>,
) -> ApiResult<Json<Either<PageData<WidgetTypeInfo>, Vec<WidgetTypeInfo>>>> {
    let bundle = params.required_bundle(&api, &caller).await?;
    if params.widgets_bundle_id.is_none() {
        let found = api.entities.widget_types.of_bundle(bundle).await?;
        return Ok(Json(Either::Right(
            found.iter().map(WidgetTypeInfo::from).collect(),
        )));
    }
    let filter = params.filter(caller.tenant, Some(bundle))?;
    let found = api.entities.widget_types.list(&filter, &page.link()?).await?;
    Ok(Json(Either::Left(found)))
}
