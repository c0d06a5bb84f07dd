//! Upload and download of resources: piece by piece, and so that nothing of a tenant's runs in another's browser.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Json;
use axum::body::Body;
use axum::extract::{FromRequest as _, Multipart, Request};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::{Bytes, BytesMut};
use fieldline_core::any_entity::{AnyEntity, EntityKind as _};
use fieldline_core::memory_pool::MemoryShare;
use fieldline_core::ports::{EntityStores, RESOURCE_PIECE, StoreError, StoreErrorKind};
use fieldline_entities::access::{AccessOperation, Principal, allows};
use fieldline_entities::services::{ImportedResource, ResourceLinks, UploadedData, used_links};
use fieldline_model::TenantId;
use fieldline_model::entity::{
    Authority, IMAGE_PREFIX, ResourceExportData, ResourceReference, ResourceType, TbResourceInfo,
    UnknownResourceName,
};
use futures::stream::{self, Stream, StreamExt as _, TryStreamExt as _};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

use crate::compression::{gzip, takes_gzip};
use crate::error::{ApiError, ApiResult, ErrorCode};
use crate::extract::flag;
use crate::memory;
use crate::ota::{FormPreamble, bounded};
use crate::state::ApiState;

/// Longest text beside the file of a form, in bytes.
const MAX_TEXT: usize = 65_536;
/// Most texts beside it.
const MAX_TEXTS: usize = 16;
/// Memory of a download, bytes: a piece as it is stored, as it is sent, and the one before it.
const DOWNLOAD_BYTES: usize = 4 * RESOURCE_PIECE;
/// Most bytes of resources that go with a dashboard or a widget type.
const MAX_EXPORT: u64 = 16 << 20;
/// Nothing may be loaded or run by what is shown.
const NOTHING: &str = "default-src 'none'";
/// The same of a drawing that somebody opens by itself: it may look as it does, and its scripts stay dead.
const DRAWING: &str = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; sandbox";
const SVG: &str = "image/svg+xml";

/// Parses the name of a type or subtype.
pub(crate) fn parse<T: std::str::FromStr<Err = UnknownResourceName>>(name: &str) -> ApiResult<T> {
    name.parse()
        .map_err(|error: UnknownResourceName| ApiError::bad_request(error.to_string()))
}

/// A form with a file, which is stored already.
pub(crate) struct ReceivedForm {
    /// Its data.
    pub(crate) data: UploadedData,
    /// Name of the file.
    pub(crate) file_name: Option<String>,
    /// Type of its content, as the client says.
    pub(crate) content_type: Option<String>,
    /// The other parts.
    texts: BTreeMap<String, String>,
}

impl ReceivedForm {
    /// Another part, if it is there and not empty.
    pub(crate) fn text(&mut self, name: &str) -> Option<String> {
        self.texts.remove(name).filter(|text| !text.is_empty())
    }
}

/// Stores the part `file` of a form, which takes the place of the data of a resource or is a new one's.
pub(crate) async fn receive(
    api: &ApiState,
    tenant: TenantId,
    replaced: Option<&TbResourceInfo>,
    request: Request,
) -> ApiResult<ReceivedForm> {
    let preamble = Arc::new(FormPreamble::default());
    let request = bounded(request, Arc::clone(&preamble));
    let mut form = Multipart::from_request(request, &()).await.map_err(|rejection| {
        let status = rejection.status();
        ApiError::with_status(status, ErrorCode::BadRequestParams, rejection.body_text())
    })?;
    let mut stored = None;
    let read = read_parts(api, tenant, replaced, &mut form, &preamble, &mut stored).await;
    match (read, stored) {
        (Ok((texts, file_name, content_type)), Some(data)) => Ok(ReceivedForm {
            data,
            file_name,
            content_type,
            texts,
        }),
        (Ok(_), None) => Err(ApiError::bad_request("Required part 'file' is not present.")),
        (Err(error), stored) => {
            if let Some(data) = stored {
                api.services.resources.discard(data).await;
            }
            Err(error)
        }
    }
}

type FormTexts = (BTreeMap<String, String>, Option<String>, Option<String>);

async fn read_parts(
    api: &ApiState,
    tenant: TenantId,
    replaced: Option<&TbResourceInfo>,
    form: &mut Multipart,
    preamble: &FormPreamble,
    stored: &mut Option<UploadedData>,
) -> ApiResult<FormTexts> {
    let resources = &api.services.resources;
    let malformed = |error: axum::extract::multipart::MultipartError| match preamble.refusal() {
        Some(refusal) => refusal,
        None => ApiError::with_status(error.status(), ErrorCode::BadRequestParams, error.body_text()),
    };
    let mut texts = BTreeMap::new();
    let (mut file_name, mut content_type) = (None, None);
    while let Some(mut field) = form.next_field().await.map_err(malformed)? {
        let name = field.name().unwrap_or_default().to_owned();
        if name != "file" {
            let mut text = BytesMut::new();
            while let Some(data) = field.chunk().await.map_err(malformed)? {
                if text.len() + data.len() > MAX_TEXT || texts.len() >= MAX_TEXTS {
                    return Err(ApiError::bad_request(format!("The part '{name}' is too long")));
                }
                text.extend_from_slice(&data);
            }
            let text = String::from_utf8(text.into())
                .map_err(|_| ApiError::bad_request(format!("The part '{name}' is no text")))?;
            texts.insert(name, text);
            continue;
        }
        if stored.is_some() {
            return Err(ApiError::bad_request("There are two parts 'file'"));
        }
        file_name = field.file_name().map(str::to_owned);
        content_type = field.content_type().map(str::to_owned);
        let max = api.options.max_resource.0;
        let mut upload = resources.begin(tenant, replaced, max).await?;
        preamble.set_in_file(true);
        loop {
            let written = match field.chunk().await {
                Ok(Some(data)) => resources.write(&mut upload, &data).await.map_err(ApiError::from),
                Ok(None) => break,
                Err(error) => Err(malformed(error)),
            };
            if let Err(error) = written {
                resources.abandon(upload).await;
                return Err(error);
            }
        }
        preamble.set_in_file(false);
        *stored = Some(resources.finish(upload).await?);
    }
    Ok((texts, file_name, content_type))
}

/// Finds the resource of a scope and key, if the caller may do that with it.
pub(crate) async fn find(
    api: &ApiState,
    caller: &Principal,
    (scope, kind, key): (&str, ResourceType, &str),
    operation: AccessOperation,
) -> ApiResult<TbResourceInfo> {
    let owner = match scope {
        "tenant" => caller.tenant,
        "system" => TenantId::NULL,
        _ => return Err(ApiError::item_not_found()),
    };
    let found = api.entities.resources.by_key(owner, kind, key).await?;
    let found = found.ok_or_else(ApiError::item_not_found)?;
    match is_open(caller, &found) && allows(caller, operation, &found.resource()) {
        true => Ok(found),
        false => Err(ApiError::denied()),
    }
}

/// Whether a resource is of a type that the caller may know of.
fn is_open(caller: &Principal, resource: &TbResourceInfo) -> bool {
    caller.authority != Authority::CustomerUser
        || resource
            .resource_type
            .is_some_and(ResourceType::open_to_customers)
}

/// Which bytes of a resource are sent, and how.
pub(crate) struct SentFile<'a> {
    /// The resource.
    pub(crate) resource: &'a TbResourceInfo,
    /// Whether the smaller picture is meant.
    pub(crate) preview: bool,
    /// Whether browsers shall show it rather than save it.
    pub(crate) inline: bool,
}

/// Answers with the bytes of a resource, or with 304 if the client has them.
pub(crate) async fn send(api: &ApiState, request: &HeaderMap, sent: SentFile<'_>) -> ApiResult<Response> {
    let resource = sent.resource;
    let whole = (resource.stored.file, resource.stored.size);
    let small = resource.stored.preview.filter(|_| sent.preview);
    let (file, size) = small.unwrap_or(whole);
    let etag = match small {
        Some(_) => resource.of_preview("etag"),
        None => resource.etag.as_deref(),
    };
    let etag = etag.unwrap_or_default();
    let media_type = match resource.resource_type {
        Some(ResourceType::Image) if small.is_some() => resource.of_preview("mediaType"),
        // What people say of other files does not count: it could be a page.
        Some(ResourceType::General) | None => None,
        Some(_) => resource.media_type(),
    };
    let media_type = media_type.unwrap_or("application/octet-stream");
    let mut headers = HeaderMap::new();
    let mut set = |name: HeaderName, text: &str| {
        // A name that is not valid in a header is left out.
        if let Ok(value) = HeaderValue::from_bytes(text.as_bytes()) {
            headers.insert(name, value);
        }
    };
    set(header::ETAG, &format!("\"{etag}\""));
    set(header::CACHE_CONTROL, "no-cache");
    set(
        header::CONTENT_SECURITY_POLICY,
        if media_type == SVG { DRAWING } else { NOTHING },
    );
    set(header::X_CONTENT_TYPE_OPTIONS, "nosniff");
    if is_known(request, etag) {
        return Ok((StatusCode::NOT_MODIFIED, headers).into_response());
    }
    set(header::CONTENT_TYPE, media_type);
    if !sent.inline {
        let name = resource.file_name.as_deref().unwrap_or("file");
        set(header::CONTENT_DISPOSITION, &disposition(name));
        set(HeaderName::from_static("x-filename"), name);
    }
    let tenant = resource.tenant_id;
    let length = usize::try_from(size).unwrap_or(usize::MAX);
    let pool = if sent.inline {
        &api.memory.public
    } else {
        &api.memory.answers
    };
    if length <= RESOURCE_PIECE {
        let share = pool.take(tenant, 2 * length)?;
        let piece = api.entities.resources.piece(tenant, file, 0).await?;
        let mut data = piece.ok_or_else(changed)?;
        if media_type == SVG {
            set(header::VARY, "Accept-Encoding");
            if takes_gzip(request)
                && let Some(packed) = gzip(&data)
            {
                set(header::CONTENT_ENCODING, "gzip");
                data = packed;
            }
        }
        let data = stream::once(async move { Ok::<_, StoreError>(data) });
        let body = Body::from_stream(memory::with_memory_share(data, share));
        return Ok((headers, body).into_response());
    }
    let share = pool.take(tenant, DOWNLOAD_BYTES)?;
    headers.insert(header::CONTENT_LENGTH, size.into());
    let data = memory::with_memory_share(pieces(&api.entities, tenant, file, size), share);
    Ok((headers, Body::from_stream(data)).into_response())
}

fn changed() -> StoreError {
    StoreError::new(StoreErrorKind::NotFound, "The data of the resource has changed")
}

/// The pieces of a file, one after the other.
fn pieces(
    entities: &EntityStores,
    tenant: TenantId,
    file: Uuid,
    size: u64,
) -> impl Stream<Item = Result<Bytes, StoreError>> + Send + 'static {
    let resources = Arc::clone(&entities.resources);
    stream::try_unfold((0_u32, size), move |(number, left)| {
        let resources = Arc::clone(&resources);
        async move {
            if left == 0 {
                return Ok(None);
            }
            let piece = resources.piece(tenant, file, number).await?;
            let piece = piece.ok_or_else(changed)?;
            let left = left.saturating_sub(piece.len() as u64);
            Ok(Some((piece, (number + 1, left))))
        }
    })
}

/// Whether the client says that it has the data of this tag.
fn is_known(request: &HeaderMap, etag: &str) -> bool {
    let named = request
        .get(header::IF_NONE_MATCH)
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default();
    named.split(',').any(|tag| {
        let tag = tag.trim();
        let tag = tag.strip_prefix("W/").unwrap_or(tag).trim_matches('"');
        tag == "*" || (!tag.is_empty() && tag == etag)
    })
}

/// The header that has a file saved under its name.
fn disposition(name: &str) -> String {
    let is_plain = |char: char| char.is_ascii_alphanumeric() || "!#$&+-.^_`|~()[] ,@=".contains(char);
    if name
        .chars()
        .all(|char| is_plain(char) && !" ,()[]@=".contains(char))
    {
        return format!("attachment;filename={name}");
    }
    let plain: String = name
        .chars()
        .map(|char| if is_plain(char) { char } else { '_' })
        .collect();
    let mut encoded = String::with_capacity(name.len());
    for byte in name.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' => encoded.push(char::from(byte)),
            byte => encoded.push_str(&format!("%{byte:02X}")),
        }
    }
    format!("attachment;filename=\"{plain}\";filename*=UTF-8''{encoded}")
}

/// Answers with a JSON object and the bytes of a resource as base64 in its `data`, encoded while they are read.
pub(crate) fn send_with_data(
    api: &ApiState,
    resource: &TbResourceInfo,
    shown: &impl Serialize,
) -> ApiResult<Response> {
    let mut head =
        serde_json::to_string(shown).map_err(|error| ApiError::new(ErrorCode::General, error.to_string()))?;
    head.pop();
    head.push_str(",\"data\":\"");
    let tenant = resource.tenant_id;
    let share = api.memory.answers.take(tenant, DOWNLOAD_BYTES)?;
    let (file, size) = (resource.stored.file, resource.stored.size);
    let data = pieces(&api.entities, tenant, file, size);
    let data = memory::with_memory_share(data, share);
    let once = |text: Bytes| stream::once(async move { Ok(text) });
    let data = data.map_ok(|piece| Bytes::from(STANDARD.encode(piece)));
    let body = once(head.into())
        .chain(data)
        .chain(once(Bytes::from_static(b"\"}")));
    let kind = [(header::CONTENT_TYPE, "application/json")];
    Ok((kind, Body::from_stream(body)).into_response())
}

/// What became of a resource that somebody wants to delete.
#[derive(Serialize, utoipa::ToSchema)]
#[schema(as = TbResourceDeleteResult)]
pub(crate) struct ResourceDeletion {
    /// Whether it is deleted.
    success: bool,
    /// What refers to it, by type of entity, where it is not.
    references: Option<BTreeMap<&'static str, Vec<ResourceReference>>>,
}

/// Deletes a resource, unless something refers to it and it is not forced.
pub(crate) async fn delete(
    api: &ApiState,
    caller: &Principal,
    resource: TbResourceInfo,
    force: bool,
) -> ApiResult<(StatusCode, Json<ResourceDeletion>)> {
    if !force {
        let found = api.services.resources.references(&resource).await?;
        if !found.is_empty() {
            let mut references: BTreeMap<&'static str, Vec<ResourceReference>> = BTreeMap::new();
            for reference in found {
                let kind = reference.id.entity_type.name();
                references.entry(kind).or_default().push(reference);
            }
            let refused = ResourceDeletion {
                success: false,
                references: Some(references),
            };
            return Ok((StatusCode::BAD_REQUEST, Json(refused)));
        }
    }
    api.services.resources.delete(&resource).await?;
    let entity = AnyEntity::TbResource(resource);
    api.services.actions.push_deleted(caller, &entity).await;
    let done = ResourceDeletion {
        success: true,
        references: None,
    };
    Ok((StatusCode::OK, Json(done)))
}

/// Reports that a resource was saved.
pub(crate) async fn push_saved(api: &ApiState, caller: &Principal, created: bool, resource: &TbResourceInfo) {
    let entity = AnyEntity::TbResource(resource.clone());
    api.services.actions.push_saved(caller, created, &entity).await;
}

/// Imports what comes along with a dashboard or a widget type, and says where it is now.
pub(crate) async fn import(
    api: &ApiState,
    caller: &Principal,
    resources: Vec<ResourceExportData>,
) -> ApiResult<ResourceLinks> {
    let imports = api.services.resources.import_all(caller.tenant, resources);
    let (imported, links) = imports.await;
    for one in imported {
        match one {
            ImportedResource::Created(info) => push_saved(api, caller, true, &info).await,
            ImportedResource::Updated(info) => push_saved(api, caller, false, &info).await,
            ImportedResource::Known(_) => {}
        }
    }
    Ok(links?)
}

/// The resources that a dashboard or a widget type uses, with their data, and the memory that they take.
pub(crate) async fn export(
    api: &ApiState,
    caller: &Principal,
    image: Option<&str>,
    documents: &[&Value],
) -> ApiResult<(Vec<ResourceExportData>, MemoryShare)> {
    let links = used_links(image, documents);
    let mut used = api.services.resources.linked(caller.tenant, &links).await?;
    used.retain(|resource| {
        is_open(caller, resource) && allows(caller, AccessOperation::Read, &resource.resource())
    });
    let size: u64 = used.iter().map(|resource| resource.stored.size).sum();
    if size > MAX_EXPORT {
        return Err(ApiError::bad_request(format!(
            "The resources have {size} bytes, and {MAX_EXPORT} can be exported at once: export some of them by themselves"
        )));
    }
    let share = api.memory.answers.take(caller.tenant, expanded(size))?;
    let exported = api.services.resources.export_all(&used).await?;
    Ok((exported, share))
}

/// Memory of data that becomes base64 in JSON.
fn expanded(size: u64) -> usize {
    usize::try_from(size.saturating_mul(4)).unwrap_or(usize::MAX)
}

#[derive(Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(rename_all = "camelCase")]
pub(crate) struct InlineParams {
    /// Whether the picture is returned with its data rather than as a link.
    #[serde(default, deserialize_with = "flag")]
    inline_images: Option<bool>,
}

impl InlineParams {
    /// Puts the data of an image in the place of its link, if it is asked for; returns the memory that it takes.
    pub(crate) async fn apply(
        &self,
        api: &ApiState,
        caller: &Principal,
        image: &mut Option<String>,
    ) -> ApiResult<Option<MemoryShare>> {
        match self.inline_images {
            Some(true) => inline(api, caller, image).await,
            _ => Ok(None),
        }
    }
}

/// Puts the data of an image in the place of its link.
async fn inline(
    api: &ApiState,
    caller: &Principal,
    image: &mut Option<String>,
) -> ApiResult<Option<MemoryShare>> {
    let Some(text) = image else { return Ok(None) };
    if !text.starts_with(IMAGE_PREFIX) {
        return Ok(None);
    }
    let links = used_links(Some(text), &[]);
    let found = api.services.resources.linked(caller.tenant, &links).await?;
    let Some(resource) = found.first() else {
        return Ok(None);
    };
    let share = api
        .memory
        .answers
        .take(caller.tenant, expanded(resource.stored.size))?;
    let data = api.services.resources.read(resource).await?;
    let sub_type = resource
        .resource_sub_type
        .map_or("IMAGE", |sub_type| sub_type.name());
    *text = format!(
        "tb-image:{}:{}:{};data:{};base64,{}",
        STANDARD.encode(resource.resource_key.as_deref().unwrap_or_default()),
        STANDARD.encode(&resource.title),
        STANDARD.encode(sub_type),
        resource.media_type().unwrap_or_default(),
        STANDARD.encode(data)
    );
    Ok(Some(share))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_name_cannot_end_its_header() {
        assert_eq!(
            disposition("map_(1).png"),
            "attachment;filename=\"map_(1).png\";filename*=UTF-8''map_%281%29.png"
        );
        assert_eq!(disposition("map.png"), "attachment;filename=map.png");
        let hostile = disposition("a\";\r\nx: y\".html");
        assert!(!hostile.contains('\r') && !hostile.contains("\";x"), "{hostile}");
    }

    #[test]
    fn a_tag_is_known_in_every_form() {
        let of = |text: &'static str| {
            HeaderMap::from_iter([(header::IF_NONE_MATCH, HeaderValue::from_static(text))])
        };
        for known in ["\"abc\"", "W/\"abc\"", "abc", "\"x\", \"abc\"", "*"] {
            assert!(is_known(&of(known), "abc"), "{known}");
        }
        for other in ["\"ab\"", "", "\"\""] {
            assert!(!is_known(&of(other), "abc"), "{other}");
        }
    }
}
