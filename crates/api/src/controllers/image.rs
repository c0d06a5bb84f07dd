//! Images: resources that are pictures.

use axum::Json;
use axum::extract::{Path, Request, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use fieldline_core::ports::ResourceFilter;
use fieldline_entities::access::{AccessOperation, Principal};
use fieldline_entities::services::{ImageFields, ImportedResource};
use fieldline_model::entity::{
    ActionType, ResourceExportData, ResourceSubType, ResourceType, TbResourceInfo,
};
use fieldline_model::page::PageData;
use serde::Deserialize;
use utoipa_axum::routes;

use super::Either;
use crate::audit::AuditRule;
use crate::caller::ApiCall;
use crate::endpoint::{ANYBODY, ApiRoutes, MaxUpload, ST, STC};
use crate::error::{ApiError, ApiResult, ErrorBody};
use crate::extract::{JsonBody, PageParams, QueryParams, flag, parse_flag};
use crate::resources::{self, ResourceDeletion, SentFile};
use crate::state::{ApiState, SharedApi};

pub(super) fn routes() -> ApiRoutes {
    let saved = AuditRule::File(ActionType::Updated);
    ApiRoutes::default()
        .add(
            ST.changes(routes!(upload), AuditRule::File(ActionType::Added))
                .max_upload(MaxUpload::Resource),
        )
        .add(
            ST.changes(routes!(replace), saved)
                .max_upload(MaxUpload::Resource),
        )
        .add(ST.changes(routes!(save_info), saved))
        .add(ST.changes(routes!(set_public), saved))
        .add(STC.reads(routes!(download)))
        .add(STC.reads(routes!(preview)))
        .add(ANYBODY.reads(routes!(download_public)))
        .add(ST.reads(routes!(info)))
        .add(ST.reads(routes!(export)))
        .add(ST.changes(routes!(import), AuditRule::File(ActionType::Added)))
        .add(ST.reads(routes!(list)))
        .add(ST.changes(routes!(delete), AuditRule::File(ActionType::Deleted)))
}

type ImagePath = Path<(String, String)>;

fn named<'a>(scope: &'a str, key: &'a str) -> (&'a str, ResourceType, &'a str) {
    (scope, ResourceType::Image, key)
}

/// Uploads an image as the part `file` of a form, with the parts `title` and `imageSubType` where they are known.
#[utoipa::path(post, path = "/api/image", tag = "image", operation_id = "uploadImage",
    request_body(content = Vec<u8>, content_type = "multipart/form-data"),
    responses((status = 200, body = TbResourceInfo)))]
async fn upload(ApiCall { api, caller }: ApiCall, request: Request) -> ApiResult<Json<TbResourceInfo>> {
    let mut form = resources::receive(&api, caller.tenant, None, request).await?;
    let sub_type = form.text("imageSubType");
    let sub_type = sub_type.map(|name| resources::parse::<ResourceSubType>(&name));
    let sub_type = match sub_type.transpose() {
        Ok(sub_type) => sub_type,
        Err(error) => {
            api.services.resources.discard(form.data).await;
            return Err(error);
        }
    };
    let image = ImageFields {
        title: form.text("title"),
        file_name: form.file_name,
        sub_type,
        is_public: true,
        ..ImageFields::default()
    };
    let saved = api.services.resources.save_image(image, None, form.data).await?;
    resources::push_saved(&api, &caller, true, &saved).await;
    Ok(Json(saved))
}

/// Gives an image other data: the part `file` of a form. Its key, its title and whether it is public stay.
#[utoipa::path(put, path = "/api/images/{type}/{key}", tag = "image", operation_id = "updateImage",
    params(("type" = String, Path, description = "`tenant` or `system`"), ("key" = String, Path)),
    request_body(content = Vec<u8>, content_type = "multipart/form-data"),
    responses((status = 200, body = TbResourceInfo)))]
async fn replace(
    ApiCall { api, caller }: ApiCall,
    Path((scope, key)): ImagePath,
    request: Request,
) -> ApiResult<Json<TbResourceInfo>> {
    let stored = resources::find(&api, &caller, named(&scope, &key), AccessOperation::Write).await?;
    let form = resources::receive(&api, stored.tenant_id, Some(&stored), request).await?;
    let image = ImageFields {
        file_name: form.file_name,
        ..ImageFields::default()
    };
    let saved = api
        .services
        .resources
        .save_image(image, Some(stored), form.data)
        .await?;
    resources::push_saved(&api, &caller, false, &saved).await;
    Ok(Json(saved))
}

/// Changes the title of an image.
#[utoipa::path(put, path = "/api/images/{type}/{key}/info", tag = "image", operation_id = "updateImageInfo",
    params(("type" = String, Path, description = "`tenant` or `system`"), ("key" = String, Path)),
    request_body = TbResourceInfo, responses((status = 200, body = TbResourceInfo)))]
async fn save_info(
    ApiCall { api, caller }: ApiCall,
    Path((scope, key)): ImagePath,
    JsonBody(request): JsonBody<TbResourceInfo>,
) -> ApiResult<Json<TbResourceInfo>> {
    let mut stored = resources::find(&api, &caller, named(&scope, &key), AccessOperation::Write).await?;
    stored.title = request.title;
    let saved = api.services.resources.save_info(stored).await?;
    resources::push_saved(&api, &caller, false, &saved).await;
    Ok(Json(saved))
}

/// Says whether everybody who knows the public key of an image may read it.
#[utoipa::path(put, path = "/api/images/{type}/{key}/public/{isPublic}", tag = "image",
    operation_id = "updateImagePublicStatus",
    params(("type" = String, Path, description = "`tenant` or `system`"), ("key" = String, Path),
        ("isPublic" = bool, Path)),
    responses((status = 200, body = TbResourceInfo)))]
async fn set_public(
    ApiCall { api, caller }: ApiCall,
    Path((scope, key, is_public)): Path<(String, String, String)>,
) -> ApiResult<Json<TbResourceInfo>> {
    let is_public = parse_flag(&is_public)
        .map_err(ApiError::bad_request)?
        .ok_or_else(|| crate::extract::missing("isPublic"))?;
    let mut stored = resources::find(&api, &caller, named(&scope, &key), AccessOperation::Write).await?;
    stored.is_public = is_public;
    let saved = api.services.resources.save_info(stored).await?;
    resources::push_saved(&api, &caller, false, &saved).await;
    Ok(Json(saved))
}

/// Returns the bytes of an image.
#[utoipa::path(get, path = "/api/images/{type}/{key}", tag = "image", operation_id = "downloadImage",
    params(("type" = String, Path, description = "`tenant` or `system`"), ("key" = String, Path)),
    responses((status = 200, body = Vec<u8>, content_type = "image/*"), (status = 304)))]
async fn download(
    ApiCall { api, caller }: ApiCall,
    Path((scope, key)): ImagePath,
    headers: HeaderMap,
) -> ApiResult<Response> {
    send(&api, &caller, (&scope, &key), &headers, false).await
}

/// Returns a smaller picture of an image, of at most 250 pixels; drawings and small images as they are.
#[utoipa::path(get, path = "/api/images/{type}/{key}/preview", tag = "image", operation_id = "downloadImagePreview",
    params(("type" = String, Path, description = "`tenant` or `system`"), ("key" = String, Path)),
    responses((status = 200, body = Vec<u8>, content_type = "image/*"), (status = 304)))]
async fn preview(
    ApiCall { api, caller }: ApiCall,
    Path((scope, key)): ImagePath,
    headers: HeaderMap,
) -> ApiResult<Response> {
    send(&api, &caller, (&scope, &key), &headers, true).await
}

async fn send(
    api: &ApiState,
    caller: &Principal,
    (scope, key): (&str, &str),
    headers: &HeaderMap,
    preview: bool,
) -> ApiResult<Response> {
    let image = resources::find(api, caller, named(scope, key), AccessOperation::Read).await?;
    let sent = SentFile {
        resource: &image,
        preview,
        inline: false,
    };
    resources::send(api, headers, sent).await
}

/// Returns the bytes of a public image.
#[utoipa::path(get, path = "/api/images/public/{publicResourceKey}", tag = "image",
    operation_id = "downloadPublicImage", params(("publicResourceKey" = String, Path)),
    responses((status = 200, body = Vec<u8>, content_type = "image/*"), (status = 304)))]
async fn download_public(
    State(api): State<SharedApi>,
    Path(key): Path<String>,
    headers: HeaderMap,
) -> ApiResult<Response> {
    let image = api.entities.resources.public_image(&key).await?;
    let image = image.ok_or_else(ApiError::item_not_found)?;
    let sent = SentFile {
        resource: &image,
        preview: false,
        inline: true,
    };
    resources::send(&api, &headers, sent).await
}

/// Returns what is known of an image.
#[utoipa::path(get, path = "/api/images/{type}/{key}/info", tag = "image", operation_id = "getImageInfo",
    params(("type" = String, Path, description = "`tenant` or `system`"), ("key" = String, Path)),
    responses((status = 200, body = TbResourceInfo)))]
async fn info(
    ApiCall { api, caller }: ApiCall,
    Path((scope, key)): ImagePath,
) -> ApiResult<Json<TbResourceInfo>> {
    let found = resources::find(&api, &caller, named(&scope, &key), AccessOperation::Read).await?;
    Ok(Json(found))
}

/// Returns an image with its data, for another installation.
#[utoipa::path(get, path = "/api/images/{type}/{key}/export", tag = "image", operation_id = "exportImage",
    params(("type" = String, Path, description = "`tenant` or `system`"), ("key" = String, Path)),
    responses((status = 200, body = ResourceExportData)))]
async fn export(ApiCall { api, caller }: ApiCall, Path((scope, key)): ImagePath) -> ApiResult<Response> {
    let image = resources::find(&api, &caller, named(&scope, &key), AccessOperation::Read).await?;
    let head = api.services.resources.export_head(&image);
    resources::send_with_data(&api, &image, &head)
}

/// Imports an exported image. One of the same key gets its data.
#[utoipa::path(put, path = "/api/image/import", tag = "image", operation_id = "importImage",
    request_body = ResourceExportData, responses((status = 200, body = TbResourceInfo)))]
async fn import(
    ApiCall { api, caller }: ApiCall,
    JsonBody(exported): JsonBody<ResourceExportData>,
) -> ApiResult<Json<TbResourceInfo>> {
    let imported = api
        .services
        .resources
        .import_image(caller.tenant, exported)
        .await?;
    let created = matches!(imported, ImportedResource::Created(_));
    resources::push_saved(&api, &caller, created, imported.info()).await;
    Ok(Json(imported.info().clone()))
}

#[derive(Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(rename_all = "camelCase")]
struct ImageListParams {
    /// `IMAGE` or `SCADA_SYMBOL`.
    image_sub_type: Option<String>,
    /// Whether the system's images are listed, too.
    #[serde(default, deserialize_with = "flag")]
    include_system_images: Option<bool>,
}

/// Returns a page of images.
#[utoipa::path(get, path = "/api/images", tag = "image", operation_id = "getImages",
    params(PageParams, ImageListParams), responses((status = 200, body = PageData<TbResourceInfo>)))]
async fn list(
    ApiCall { api, caller }: ApiCall,
    QueryParams(page): QueryParams<PageParams>,
    QueryParams(params): QueryParams<ImageListParams>,
) -> ApiResult<Json<PageData<TbResourceInfo>>> {
    let sub_type = match params.image_sub_type.as_deref() {
        None | Some("") => ResourceSubType::Image,
        Some(name) => resources::parse(name)?,
    };
    let filter = ResourceFilter {
        tenant: caller.tenant,
        with_system: params.include_system_images == Some(true),
        kinds: vec![ResourceType::Image],
        sub_types: vec![sub_type],
        keys: Vec::new(),
    };
    Ok(Json(api.entities.resources.list(&filter, &page.link()?).await?))
}

#[derive(Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct ForceParams {
    /// Whether it is deleted although something refers to it.
    #[serde(default, deserialize_with = "flag")]
    pub(super) force: Option<bool>,
}

/// Deletes an image. Where something refers to it and it is not forced, it stays, and the answer names what does.
#[utoipa::path(delete, path = "/api/images/{type}/{key}", tag = "image", operation_id = "deleteImage",
    params(("type" = String, Path, description = "`tenant` or `system`"), ("key" = String, Path), ForceParams),
    responses((status = 200, body = ResourceDeletion), (status = 400, body = Either<ResourceDeletion, ErrorBody>)))]
async fn delete(
    ApiCall { api, caller }: ApiCall,
    Path((scope, key)): ImagePath,
    QueryParams(params): QueryParams<ForceParams>,
) -> ApiResult<(StatusCode, Json<ResourceDeletion>)> {
    let image = resources::find(&api, &caller, named(&scope, &key), AccessOperation::Delete).await?;
    resources::delete(&api, &caller, image, params.force == Some(true)).await
}
