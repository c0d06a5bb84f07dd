//! Resources that are no images: scripts, key stores, models of LwM2M objects and other files.

use axum::Json;
use axum::extract::{Path, Request};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use fieldline_core::ports::ResourceFilter;
use fieldline_entities::access::{AccessOperation, Principal};
use fieldline_model::entity::{ActionType, EntityDraft, ResourceType, TbResource, TbResourceInfo};
use fieldline_model::page::{PageData, PageLink};
use fieldline_model::{EntityType, TbResourceId};
use serde::Deserialize;
use serde_json::{Value, json};
use utoipa_axum::routes;
use uuid::Uuid;

use super::Either;
use super::image::ForceParams;
use crate::audit::AuditRule;
use crate::caller::ApiCall;
use crate::endpoint::{ApiRoutes, MaxUpload, ST, STC, T};
use crate::error::{ApiError, ApiResult, ErrorBody};
use crate::extract::{JsonBody, PageParams, PathIds, QueryParams, parse_uuids};
use crate::resources::{self, ReceivedForm, ResourceDeletion, SentFile};
use crate::state::ApiState;

/// Models that are read at once where all are asked for.
const MAX_MODELS: u32 = 1_000;

pub(super) fn routes() -> ApiRoutes {
    ApiRoutes::default()
        .add(ST.reads(routes!(download)))
        .add(STC.reads(routes!(download_by_key)))
        .add(ST.reads(routes!(download_lwm2m)))
        .add(ST.reads(routes!(download_pkcs12)))
        .add(ST.reads(routes!(download_jks)))
        .add(STC.reads(routes!(download_script)))
        .add(ST.reads(routes!(info)))
        .add(ST.reads(routes!(info_by_key)))
        .add(ST.reads(routes!(get)))
        .add(ST.changes(routes!(save), AuditRule::Save(EntityType::TbResource)))
        .add(
            ST.changes(routes!(upload), AuditRule::File(ActionType::Added))
                .max_upload(MaxUpload::Resource),
        )
        .add(
            ST.changes(routes!(replace), AuditRule::File(ActionType::Updated))
                .max_upload(MaxUpload::Resource),
        )
        .add(ST.changes(routes!(save_info), AuditRule::File(ActionType::Updated)))
        .add(ST.reads(routes!(list)))
        .add(ST.reads(routes!(by_ids)))
        .add(T.reads(routes!(list_own)))
        .add(T.reads(routes!(lwm2m_page)))
        .add(T.reads(routes!(lwm2m_objects)))
        .add(ST.changes(routes!(delete), AuditRule::Delete(EntityType::TbResource)))
}

async fn load(
    api: &ApiState,
    caller: &Principal,
    id: Uuid,
    operation: AccessOperation,
) -> ApiResult<TbResourceInfo> {
    Ok(api.load::<TbResourceInfo>(caller, id, operation).await?)
}

/// The same of one that is no image, which have endpoints of their own.
async fn load_no_image(
    api: &ApiState,
    caller: &Principal,
    id: Uuid,
    operation: AccessOperation,
) -> ApiResult<TbResourceInfo> {
    let found = load(api, caller, id, operation).await?;
    match found.resource_type {
        Some(ResourceType::Image) => Err(ApiError::bad_request("Image resource type is not supported")),
        _ => Ok(found),
    }
}

async fn send(api: &ApiState, headers: &HeaderMap, resource: &TbResourceInfo) -> ApiResult<Response> {
    let sent = SentFile {
        resource,
        preview: false,
        inline: false,
    };
    resources::send(api, headers, sent).await
}

/// Downloads the data of a resource.
#[utoipa::path(get, path = "/api/resource/{resourceId}/download", tag = "resource", operation_id = "downloadResource",
    params(("resourceId" = Uuid, Path)),
    responses((status = 200, body = Vec<u8>, content_type = "application/octet-stream"), (status = 304)))]
async fn download(
    ApiCall { api, caller }: ApiCall,
    PathIds([id]): PathIds<1>,
    headers: HeaderMap,
) -> ApiResult<Response> {
    let found = load(&api, &caller, id, AccessOperation::Read).await?;
    send(&api, &headers, &found).await
}

fn type_of(name: &str) -> ApiResult<ResourceType> {
    resources::parse(&name.to_uppercase())
}

/// Downloads the data of a resource of a type, scope and key, as links name it.
#[utoipa::path(get, path = "/api/resource/{resourceType}/{scope}/{key}", tag = "resource",
    operation_id = "downloadResourceIfChanged",
    params(("resourceType" = String, Path), ("scope" = String, Path, description = "`tenant` or `system`"),
        ("key" = String, Path)),
    responses((status = 200, body = Vec<u8>, content_type = "application/octet-stream"), (status = 304)))]
async fn download_by_key(
    ApiCall { api, caller }: ApiCall,
    Path((kind, scope, key)): Path<(String, String, String)>,
    headers: HeaderMap,
) -> ApiResult<Response> {
    let named = (scope.as_str(), type_of(&kind)?, key.as_str());
    let found = resources::find(&api, &caller, named, AccessOperation::Read).await?;
    send(&api, &headers, &found).await
}

/// Declares an endpoint that downloads a resource of a type by its id.
macro_rules! typed_download {
    ($name:ident, $path:literal, $operation:literal, $content:literal, $doc:literal) => {
        #[doc = $doc]
        #[utoipa::path(get, path = $path, tag = "resource", operation_id = $operation,
                    params(("resourceId" = Uuid, Path)),
                    responses((status = 200, body = Vec<u8>, content_type = $content), (status = 304)))]
        async fn $name(
            ApiCall { api, caller }: ApiCall,
            PathIds([id]): PathIds<1>,
            headers: HeaderMap,
        ) -> ApiResult<Response> {
            let found = load(&api, &caller, id, AccessOperation::Read).await?;
            send(&api, &headers, &found).await
        }
    };
}

typed_download!(
    download_lwm2m,
    "/api/resource/lwm2m/{resourceId}/download",
    "downloadLwm2mResourceIfChanged",
    "application/xml",
    "Downloads the model of an LwM2M object."
);
typed_download!(
    download_pkcs12,
    "/api/resource/pkcs12/{resourceId}/download",
    "downloadPkcs12ResourceIfChanged",
    "application/x-pkcs12",
    "Downloads a key store of the kind PKCS #12."
);
typed_download!(
    download_jks,
    "/api/resource/jks/{resourceId}/download",
    "downloadJksResourceIfChanged",
    "application/x-java-keystore",
    "Downloads a Java key store."
);
typed_download!(
    download_script,
    "/api/resource/js/{resourceId}/download",
    "downloadJsResourceIfChanged",
    "application/javascript",
    "Downloads a script of widgets."
);

/// Returns what is known of a resource.
#[utoipa::path(get, path = "/api/resource/info/{resourceId}", tag = "resource", operation_id = "getResourceInfoById",
    params(("resourceId" = Uuid, Path)), responses((status = 200, body = TbResourceInfo)))]
async fn info(
    ApiCall { api, caller }: ApiCall,
    PathIds([id]): PathIds<1>,
) -> ApiResult<Json<TbResourceInfo>> {
    Ok(Json(load(&api, &caller, id, AccessOperation::Read).await?))
}

/// Returns what is known of the resource of a type, scope and key.
#[utoipa::path(get, path = "/api/resource/{resourceType}/{scope}/{key}/info", tag = "resource",
    operation_id = "getResourceInfo",
    params(("resourceType" = String, Path), ("scope" = String, Path, description = "`tenant` or `system`"),
        ("key" = String, Path)),
    responses((status = 200, body = TbResourceInfo)))]
async fn info_by_key(
    ApiCall { api, caller }: ApiCall,
    Path((kind, scope, key)): Path<(String, String, String)>,
) -> ApiResult<Json<TbResourceInfo>> {
    let named = (scope.as_str(), type_of(&kind)?, key.as_str());
    let found = resources::find(&api, &caller, named, AccessOperation::Read).await?;
    Ok(Json(found))
}

/// Returns a resource with its data as base64 in `data`.
#[utoipa::path(get, path = "/api/resource/{resourceId}", tag = "resource", operation_id = "getResourceById",
    params(("resourceId" = Uuid, Path)), responses((status = 200, body = TbResource)))]
async fn get(ApiCall { api, caller }: ApiCall, PathIds([id]): PathIds<1>) -> ApiResult<Response> {
    let found = load(&api, &caller, id, AccessOperation::Read).await?;
    resources::send_with_data(&api, &found, &found)
}

/// Creates a resource with its data as base64, or updates it if it has an id.
#[utoipa::path(post, path = "/api/resource", tag = "resource", operation_id = "saveResource",
    request_body = TbResource, responses((status = 200, body = TbResourceInfo)))]
async fn save(
    ApiCall { api, caller }: ApiCall,
    JsonBody(body): JsonBody<TbResource>,
) -> ApiResult<Json<TbResourceInfo>> {
    let draft = EntityDraft::from(body.info);
    let stored = match draft.id {
        Some(id) => Some(load_no_image(&api, &caller, id.0, AccessOperation::Write).await?),
        None => None,
    };
    let data = body.data.filter(|data| !data.is_empty());
    let data = data
        .map(|data| STANDARD.decode(data))
        .transpose()
        .map_err(|error| ApiError::bad_request(format!("The data is no base64: {error}")))?;
    let service = &api.services.resources;
    let created = stored.is_none();
    let saved = match (stored, data) {
        (None, None) => return Err(ApiError::bad_request("Resource data should be specified")),
        (None, Some(data)) => {
            check_new(&draft)?;
            let data = service.store(caller.tenant, None, &data).await?;
            service.create(draft, data).await?
        }
        (Some(stored), data) => {
            let changed = changed(stored, &draft)?;
            match data {
                None => service.save_info(changed).await?,
                Some(data) => {
                    let data = service.store(changed.tenant_id, Some(&changed), &data).await?;
                    service
                        .replace_data(changed, draft.file_name.clone(), data)
                        .await?
                }
            }
        }
    };
    resources::push_saved(&api, &caller, created, &saved).await;
    Ok(Json(saved))
}

fn check_new(draft: &TbResourceInfo) -> ApiResult<()> {
    match draft.resource_type {
        None => Err(ApiError::bad_request("Resource type should be specified!")),
        Some(ResourceType::Image) => Err(ApiError::bad_request("Image resource type is not supported")),
        Some(_) => Ok(()),
    }
}

/// A stored resource with what may change of it.
fn changed(mut stored: TbResourceInfo, wanted: &TbResourceInfo) -> ApiResult<TbResourceInfo> {
    if stored.resource_type == Some(ResourceType::Lwm2mModel) {
        return Err(ApiError::bad_request("This type of resource can't be updated"));
    }
    stored.title.clone_from(&wanted.title);
    if wanted.descriptor.is_some() {
        stored.descriptor.clone_from(&wanted.descriptor);
    }
    Ok(stored)
}

/// Uploads a resource as the part `file` of a form, with the part `resourceType`, and `title`, `descriptor` and
/// `resourceSubType` where they are known.
#[utoipa::path(post, path = "/api/resource/upload", tag = "resource", operation_id = "uploadResource",
    request_body(content = Vec<u8>, content_type = "multipart/form-data"),
    responses((status = 200, body = TbResourceInfo)))]
async fn upload(ApiCall { api, caller }: ApiCall, request: Request) -> ApiResult<Json<TbResourceInfo>> {
    let mut form = resources::receive(&api, caller.tenant, None, request).await?;
    let resource = match described(&mut form) {
        Ok(resource) => resource,
        Err(error) => {
            api.services.resources.discard(form.data).await;
            return Err(error);
        }
    };
    let draft = EntityDraft::from(resource);
    let saved = api.services.resources.create(draft, form.data).await?;
    resources::push_saved(&api, &caller, true, &saved).await;
    Ok(Json(saved))
}

/// What a form says of its file.
fn described(form: &mut ReceivedForm) -> ApiResult<TbResourceInfo> {
    let kind = form
        .text("resourceType")
        .ok_or_else(|| ApiError::bad_request("Required part 'resourceType' is not present."))?;
    let kind: ResourceType = resources::parse(&kind)?;
    let sub_type = form.text("resourceSubType");
    let descriptor = match form.text("descriptor") {
        Some(text) => serde_json::from_str(&text)
            .map_err(|error| ApiError::bad_request(format!("descriptor is no JSON: {error}")))?,
        None => json!({ "mediaType": kind.media_type().or(form.content_type.as_deref()) }),
    };
    let resource = TbResourceInfo {
        title: form
            .text("title")
            .or_else(|| form.file_name.clone())
            .unwrap_or_default(),
        resource_type: Some(kind),
        resource_sub_type: sub_type.map(|name| resources::parse(&name)).transpose()?,
        file_name: form.file_name.clone(),
        descriptor: Some(descriptor),
        ..TbResourceInfo::default()
    };
    check_new(&resource)?;
    Ok(resource)
}

/// Gives a resource other data: the part `file` of a form.
#[utoipa::path(put, path = "/api/resource/{id}/data", tag = "resource", operation_id = "updateResourceData",
    params(("id" = Uuid, Path)), request_body(content = Vec<u8>, content_type = "multipart/form-data"),
    responses((status = 200, body = TbResourceInfo)))]
async fn replace(
    ApiCall { api, caller }: ApiCall,
    PathIds([id]): PathIds<1>,
    request: Request,
) -> ApiResult<Json<TbResourceInfo>> {
    let stored = load_no_image(&api, &caller, id, AccessOperation::Write).await?;
    let form = resources::receive(&api, stored.tenant_id, Some(&stored), request).await?;
    let service = &api.services.resources;
    let saved = service.replace_data(stored, form.file_name, form.data).await?;
    resources::push_saved(&api, &caller, false, &saved).await;
    Ok(Json(saved))
}

/// Changes title and descriptor of a resource.
#[utoipa::path(put, path = "/api/resource/{id}/info", tag = "resource", operation_id = "updateResourceInfo",
    params(("id" = Uuid, Path)), request_body = TbResourceInfo, responses((status = 200, body = TbResourceInfo)))]
async fn save_info(
    ApiCall { api, caller }: ApiCall,
    PathIds([id]): PathIds<1>,
    JsonBody(wanted): JsonBody<TbResourceInfo>,
) -> ApiResult<Json<TbResourceInfo>> {
    let stored = load_no_image(&api, &caller, id, AccessOperation::Write).await?;
    let changed = changed(stored, &wanted)?;
    let saved = api.services.resources.save_info(changed).await?;
    resources::push_saved(&api, &caller, false, &saved).await;
    Ok(Json(saved))
}

#[derive(Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(rename_all = "camelCase")]
struct ResourceListParams {
    /// Comma-joined ids, in the place of a page.
    resource_ids: Option<String>,
    /// Only those of this type; without it all but scripts, images and dashboards.
    resource_type: Option<String>,
    /// Only those of this subtype, where there is a type.
    resource_sub_type: Option<String>,
}

/// Returns a page of the resources that the caller sees, or those of the ids that are named.
#[utoipa::path(get, path = "/api/resource", tag = "resource", operation_id = "getResources",
    params(PageParams, ResourceListParams),
    responses((status = 200, body = Either<PageData<TbResourceInfo>, Vec<TbResourceInfo>>)))]
async fn list(
    ApiCall { api, caller }: ApiCall,
    QueryParams(page): QueryParams<PageParams>,
    QueryParams(params): QueryParams<ResourceListParams>,
) -> ApiResult<Json<Either<PageData<TbResourceInfo>, Vec<TbResourceInfo>>>> {
    if let Some(ids) = &params.resource_ids {
        return Ok(Json(Either::Right(named(&api, &caller, ids).await?)));
    }
    let given = |text: Option<String>| text.filter(|text| !text.is_empty());
    let (kinds, sub_types) = match given(params.resource_type) {
        Some(kind) => {
            let sub_type = given(params.resource_sub_type);
            let sub_type = sub_type.map(|name| resources::parse(&name)).transpose()?;
            (vec![resources::parse(&kind)?], sub_type.into_iter().collect())
        }
        None => {
            let listed = ResourceType::ALL.iter().filter(|kind| !kind.open_to_customers());
            (listed.copied().collect(), Vec::new())
        }
    };
    let filter = ResourceFilter {
        tenant: caller.tenant,
        with_system: true,
        kinds,
        sub_types,
        keys: Vec::new(),
    };
    let found = api.entities.resources.list(&filter, &page.link()?).await?;
    Ok(Json(Either::Left(found)))
}

async fn named(api: &ApiState, caller: &Principal, ids: &str) -> ApiResult<Vec<TbResourceInfo>> {
    let ids = parse_uuids("resourceIds", ids, TbResourceId)?;
    let mut found = api.entities.resources.visible(caller.tenant, &ids).await?;
    found.sort_by_key(|resource| ids.iter().position(|id| *id == resource.id));
    Ok(found)
}

/// Returns those of the resources with these ids that the caller sees.
#[utoipa::path(get, path = "/api/resource/list", tag = "resource", operation_id = "getSystemOrTenantResourcesByIds",
    params(ResourceListParams), responses((status = 200, body = Vec<TbResourceInfo>)))]
async fn by_ids(
    ApiCall { api, caller }: ApiCall,
    QueryParams(params): QueryParams<ResourceListParams>,
) -> ApiResult<Json<Vec<TbResourceInfo>>> {
    let ids = params.resource_ids.unwrap_or_default();
    Ok(Json(named(&api, &caller, &ids).await?))
}

/// Returns a page of the tenant's own resources.
#[utoipa::path(get, path = "/api/resource/tenant", tag = "resource", operation_id = "getTenantResources",
    params(PageParams), responses((status = 200, body = PageData<TbResourceInfo>)))]
async fn list_own(
    ApiCall { api, caller }: ApiCall,
    QueryParams(page): QueryParams<PageParams>,
) -> ApiResult<Json<PageData<TbResourceInfo>>> {
    let filter = ResourceFilter {
        tenant: caller.tenant,
        ..ResourceFilter::default()
    };
    Ok(Json(api.entities.resources.list(&filter, &page.link()?).await?))
}

/// The models that a tenant sees.
fn models(caller: &Principal) -> ResourceFilter {
    ResourceFilter {
        tenant: caller.tenant,
        with_system: true,
        kinds: vec![ResourceType::Lwm2mModel],
        ..ResourceFilter::default()
    }
}

/// The objects of models, sorted by name or by id.
fn objects(found: PageData<TbResourceInfo>, property: Option<&str>, order: Option<&str>) -> Vec<Value> {
    let models = found.data.into_iter();
    let mut objects: Vec<Value> = models.filter_map(|model| model.lwm2m_object).collect();
    let text = |object: &Value| object["name"].as_str().unwrap_or_default().to_owned();
    match property {
        Some("name") => objects.sort_by_key(text),
        _ => objects.sort_by_key(|object| object["id"].as_u64()),
    }
    if order.is_some_and(|order| order.eq_ignore_ascii_case("DESC")) {
        objects.reverse();
    }
    objects
}

#[derive(Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(rename_all = "camelCase")]
struct ObjectParams {
    /// `id` or `name`.
    sort_property: Option<String>,
    /// `ASC` or `DESC`.
    sort_order: Option<String>,
    /// Comma-joined keys, such as `3_1.0`.
    object_ids: Option<String>,
}

/// Returns a page of LwM2M objects with what can be read of them.
#[utoipa::path(get, path = "/api/resource/lwm2m/page", tag = "resource", operation_id = "getLwm2mListObjectsPage",
    params(PageParams), responses((status = 200, body = Vec<Value>)))]
async fn lwm2m_page(
    ApiCall { api, caller }: ApiCall,
    QueryParams(page): QueryParams<PageParams>,
    QueryParams(params): QueryParams<ObjectParams>,
) -> ApiResult<Json<Vec<Value>>> {
    let mut link = page.sorted_by("title").link()?;
    link.page_size = link.page_size.min(MAX_MODELS);
    let found = api.entities.resources.list(&models(&caller), &link).await?;
    let (property, order) = (params.sort_property, params.sort_order);
    Ok(Json(objects(found, property.as_deref(), order.as_deref())))
}

/// Returns LwM2M objects with what can be read of them.
#[utoipa::path(get, path = "/api/resource/lwm2m", tag = "resource", operation_id = "getLwm2mListObjects",
    params(ObjectParams), responses((status = 200, body = Vec<Value>)))]
async fn lwm2m_objects(
    ApiCall { api, caller }: ApiCall,
    QueryParams(params): QueryParams<ObjectParams>,
) -> ApiResult<Json<Vec<Value>>> {
    let keys = params.object_ids.unwrap_or_default();
    let filter = ResourceFilter {
        keys: keys
            .split(',')
            .filter(|key| !key.is_empty())
            .take(MAX_MODELS as usize)
            .map(str::to_owned)
            .collect(),
        ..models(&caller)
    };
    let found = api
        .entities
        .resources
        .list(&filter, &PageLink::first(MAX_MODELS))
        .await?;
    let (property, order) = (params.sort_property, params.sort_order);
    Ok(Json(objects(found, property.as_deref(), order.as_deref())))
}

/// Deletes a resource. Where something refers to it and it is not forced, it stays, and the answer names what does.
#[utoipa::path(delete, path = "/api/resource/{resourceId}", tag = "resource", operation_id = "deleteResource",
    params(("resourceId" = Uuid, Path), ForceParams),
    responses((status = 200, body = ResourceDeletion), (status = 400, body = Either<ResourceDeletion, ErrorBody>)))]
async fn delete(
    ApiCall { api, caller }: ApiCall,
    PathIds([id]): PathIds<1>,
    QueryParams(params): QueryParams<ForceParams>,
) -> ApiResult<(StatusCode, Json<ResourceDeletion>)> {
    let found = load_no_image(&api, &caller, id, AccessOperation::Delete).await?;
    resources::delete(&api, &caller, found, params.force == Some(true)).await
}
