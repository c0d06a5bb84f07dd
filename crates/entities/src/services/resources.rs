//! Resources: files that people upload, of tenants and of the system, and images among them.

mod embedded;
mod exchange;
mod files;
mod lwm2m;
mod picture;

use std::sync::Arc;

use fieldline_core::events::EntityChange;
use fieldline_model::entity::{
    EntityDraft, IMAGE_PREFIX, RESOURCE_PREFIX, ResourceReference, ResourceSubType, ResourceType,
    StoredEntity as _, StoredFile, TbResourceInfo,
};
use fieldline_model::{EntityKey, EntityType, TbResourceId, TenantId};
use serde_json::{Value, json};

pub use embedded::{ResourceLinks, used_links};
pub(super) use embedded::{keep_dashboard_images, keep_image, keep_widget_images};
pub use exchange::ImportedResource;
pub use files::{ResourceUpload, UploadedData};
pub use picture::PREVIEW_MEMORY;

use super::{ServiceContext, ServiceError, ServiceResult, validate};
use files::Room;
use lwm2m::ObjectModel;
use picture::PictureHead;

/// Most numbers that are tried behind a key that is taken.
const MAX_NUMBER: u32 = 10_000;
/// Letters and digits of a public key.
const PUBLIC_KEY_LETTERS: usize = 32;
/// Largest descriptor, in bytes.
const MAX_DESCRIPTOR: usize = 65_536;
/// Entities of each type that are named where a resource is in use.
const MAX_REFERENCES: u32 = 10;
/// How long an upload that nobody finished is kept: those under way are younger.
const ABANDONED_AFTER_MS: i64 = 3_600_000 * 6;

/// Rules about resources. The tenant of each call is the owner: the null id for the system's.
#[derive(Clone)]
pub struct ResourceService(Arc<ServiceContext>);

/// What is said of an image besides its data.
#[derive(Debug, Clone, Default)]
pub struct ImageFields {
    /// Title; the name of the file where it is missing.
    pub title: Option<String>,
    /// Name of the file.
    pub file_name: Option<String>,
    /// Name within links; made from the name of the file where it is missing.
    pub key: Option<String>,
    /// What it is more exactly.
    pub sub_type: Option<ResourceSubType>,
    /// Whether everybody who knows the public key may read it.
    pub is_public: bool,
    /// Name within public links; made up where it is missing or taken.
    pub public_key: Option<String>,
}

impl ResourceService {
    pub(super) fn new(context: &Arc<ServiceContext>) -> Self {
        Self(Arc::clone(context))
    }

    /// Begins to store a file of at most `max` bytes, which takes the place of that of a resource or is a new one's.
    ///
    /// # Errors
    /// The store failed.
    pub async fn begin(
        &self,
        tenant: TenantId,
        replaced: Option<&TbResourceInfo>,
        max: u64,
    ) -> ServiceResult<ResourceUpload> {
        let room = Room::of(&self.0, tenant, size_of(replaced), max).await?;
        ResourceUpload::begin(&self.0, tenant, room).await
    }

    /// The file goes on.
    ///
    /// # Errors
    /// There is more than there may be, or the store failed: the upload is to be abandoned.
    pub async fn write(&self, upload: &mut ResourceUpload, data: &[u8]) -> ServiceResult<()> {
        upload.write(&self.0, data).await
    }

    /// The file is whole.
    ///
    /// # Errors
    /// It is empty, or the store failed. Nothing of it is left then.
    pub async fn finish(&self, upload: ResourceUpload) -> ServiceResult<UploadedData> {
        upload.finish(&self.0).await
    }

    /// Forgets what was uploaded by halves.
    pub async fn abandon(&self, upload: ResourceUpload) {
        upload.abandon(&self.0).await;
    }

    /// Forgets a file that no resource gets.
    pub async fn discard(&self, data: UploadedData) {
        files::discard(&self.0, data.id).await;
    }

    /// Stores data that is in memory.
    ///
    /// # Errors
    /// There is no room for it, or the store failed.
    pub async fn store(
        &self,
        tenant: TenantId,
        replaced: Option<&TbResourceInfo>,
        data: &[u8],
    ) -> ServiceResult<UploadedData> {
        let room = Room::of(&self.0, tenant, size_of(replaced), u64::MAX).await?;
        files::store(&self.0, tenant, room, data).await
    }

    /// Creates an image, or gives a stored one other data.
    ///
    /// # Errors
    /// The data is no image, or a rule is broken. The data is not kept then.
    pub async fn save_image(
        &self,
        image: ImageFields,
        stored: Option<TbResourceInfo>,
        data: UploadedData,
    ) -> ServiceResult<TbResourceInfo> {
        save_image(&self.0, image, stored, data).await
    }

    /// Creates a resource that is no image.
    ///
    /// # Errors
    /// A rule is broken. The data is not kept then.
    pub async fn create(
        &self,
        draft: EntityDraft<TbResourceInfo>,
        data: UploadedData,
    ) -> ServiceResult<TbResourceInfo> {
        let tenant = data.tenant;
        let mut resource = draft.into_new(TbResourceId::new(), self.0.now());
        resource.tenant_id = tenant;
        let id = data.id;
        let saved = self.try_create(resource, data).await;
        if saved.is_err() {
            files::discard(&self.0, id).await;
        }
        saved
    }

    async fn try_create(
        &self,
        mut resource: TbResourceInfo,
        data: UploadedData,
    ) -> ServiceResult<TbResourceInfo> {
        let kind = kind_of(&resource)?;
        resource.version = None;
        resource.is_public = false;
        resource.public_resource_key = None;
        resource.lwm2m_object = None;
        if kind == ResourceType::Lwm2mModel {
            self.describe_model(&mut resource, &data).await?;
        }
        let wanted = resource
            .resource_key
            .take()
            .filter(|key| !key.is_empty())
            .or_else(|| resource.file_name.clone())
            .unwrap_or_default();
        resource.resource_key = Some(wanted.clone());
        check(&resource)?;
        resource.resource_key = Some(free_key(&self.0, resource.tenant_id, kind, &wanted).await?);
        store_with(&self.0, resource, &data, None, true).await
    }

    /// Fills in what a model says of its object.
    async fn describe_model(&self, resource: &mut TbResourceInfo, data: &UploadedData) -> ServiceResult<()> {
        let name = resource.file_name.clone().unwrap_or_default();
        let unreadable = || ServiceError::invalid(format!("Failed to parse file {name}"));
        if data.size > lwm2m::MAX_MODEL {
            return Err(unreadable());
        }
        let xml = files::read(&self.0, data.tenant, data.id, data.size).await?;
        let model = ObjectModel::parse(&xml).ok_or_else(unreadable)?;
        resource.resource_key = Some(model.key());
        resource.title = model.title();
        resource.lwm2m_object = model.shown();
        Ok(())
    }

    /// Gives a stored resource that is no image other data.
    ///
    /// # Errors
    /// Its data cannot be replaced, or a rule is broken. The data is not kept then.
    pub async fn replace_data(
        &self,
        mut resource: TbResourceInfo,
        file_name: Option<String>,
        data: UploadedData,
    ) -> ServiceResult<TbResourceInfo> {
        let saved = async {
            let kind = kind_of(&resource)?;
            if lwm2m::is_model(Some(kind)) || !(kind.is_updatable() || resource.tenant_id.is_null()) {
                return Err(ServiceError::invalid("This type of resource can't be updated"));
            }
            if file_name.is_some() {
                resource.file_name = file_name;
            }
            check(&resource)?;
            store_with(&self.0, resource, &data, None, false).await
        };
        let saved = saved.await;
        if saved.is_err() {
            files::discard(&self.0, data.id).await;
        }
        saved
    }

    /// Saves what is known of a stored resource besides its data.
    ///
    /// # Errors
    /// A rule is broken, or somebody else has just changed it.
    pub async fn save_info(&self, resource: TbResourceInfo) -> ServiceResult<TbResourceInfo> {
        check(&resource)?;
        let saved = self.0.stores.resources.update(resource).await?;
        self.0
            .publish_change(EntityChange::saved(saved.tenant_id, saved.id));
        Ok(saved)
    }

    /// What refers to a resource, as far as it is looked for: images everywhere, scripts in widget types and dashboards, other
    /// files in rule chains.
    ///
    /// # Errors
    /// The store failed.
    pub async fn references(&self, resource: &TbResourceInfo) -> ServiceResult<Vec<ResourceReference>> {
        const EVERYWHERE: &[EntityType] = &[
            EntityType::WidgetType,
            EntityType::WidgetsBundle,
            EntityType::DeviceProfile,
            EntityType::AssetProfile,
            EntityType::Dashboard,
        ];
        let (kinds, text): (&[EntityType], String) = match resource.resource_type {
            Some(ResourceType::Image) => (EVERYWHERE, format!("{IMAGE_PREFIX}{}", resource.link())),
            Some(ResourceType::JsModule) => (
                &[EntityType::WidgetType, EntityType::Dashboard],
                format!("{RESOURCE_PREFIX}{}", resource.link()),
            ),
            Some(ResourceType::General) => (&[EntityType::RuleChain], resource.id.0.to_string()),
            _ => return Ok(Vec::new()),
        };
        // As it stands within JSON.
        let text = Value::String(text).to_string();
        let text = text.trim_matches('"');
        let resources = &self.0.stores.resources;
        Ok(resources
            .references(resource.tenant_id, kinds, text, MAX_REFERENCES)
            .await?)
    }

    /// Deletes a resource with its data.
    ///
    /// # Errors
    /// The store failed.
    pub async fn delete(&self, resource: &TbResourceInfo) -> ServiceResult<()> {
        let (tenant, id) = (resource.tenant_id, resource.id);
        self.0.stores.resources.delete(tenant, id).await?;
        self.0.publish_change(EntityChange::deleted(tenant, id));
        let entity = id.into();
        Ok(self.0.delete_links(EntityKey { tenant, entity }).await?)
    }

    /// The whole data of a resource. Callers bound and count what they ask for.
    ///
    /// # Errors
    /// The store failed, or the data has been replaced just now.
    pub async fn read(&self, resource: &TbResourceInfo) -> ServiceResult<Vec<u8>> {
        let StoredFile { file, size, .. } = resource.stored;
        files::read(&self.0, resource.tenant_id, file, size).await
    }

    /// The resources that these links are to, as a tenant reads them; links to none are left out.
    ///
    /// # Errors
    /// The store failed.
    pub async fn linked(&self, tenant: TenantId, links: &[String]) -> ServiceResult<Vec<TbResourceInfo>> {
        let mut found: Vec<TbResourceInfo> = Vec::new();
        for link in links {
            if let Some(resource) = embedded::resolve(&self.0, tenant, link).await?
                && !found.iter().any(|known| known.id == resource.id)
            {
                found.push(resource);
            }
        }
        found.sort_by(|a, b| {
            (a.resource_type, &a.resource_key, a.id.0).cmp(&(b.resource_type, &b.resource_key, b.id.0))
        });
        Ok(found)
    }

    /// Puts links in the place of ids of scripts that a document has at a path: how former versions named them.
    ///
    /// # Errors
    /// The store failed.
    pub async fn link_scripts(
        &self,
        tenant: TenantId,
        document: &mut Value,
        path: &[&str],
    ) -> ServiceResult<()> {
        let mut found = Vec::new();
        embedded::scripts_by_id(document, path, &mut found);
        for place in found {
            let id = place.get("id").and_then(Value::as_str);
            let Some(id) = id.and_then(|id| id.parse().ok()).map(TbResourceId) else {
                continue;
            };
            let known = self.0.stores.resources.visible(tenant, &[id]).await?;
            let link = known
                .first()
                .map(|known| format!("{RESOURCE_PREFIX}{}", known.link()))
                .unwrap_or_default();
            *place = Value::String(link);
        }
        Ok(())
    }

    /// Deletes what was uploaded by halves before the program began, when nobody can be uploading; returns how many files.
    ///
    /// # Errors
    /// The store failed.
    pub async fn discard_unfinished(&self) -> ServiceResult<u64> {
        Ok(self.0.stores.resources.discard_files_before(i64::MAX).await?)
    }

    /// Deletes what was uploaded by halves long ago; returns how many files.
    ///
    /// # Errors
    /// The store failed.
    pub async fn discard_abandoned(&self) -> ServiceResult<u64> {
        let before = self.0.now().saturating_sub(ABANDONED_AFTER_MS);
        Ok(self.0.stores.resources.discard_files_before(before).await?)
    }
}

fn size_of(replaced: Option<&TbResourceInfo>) -> u64 {
    replaced.map_or(0, |resource| {
        let preview = resource.stored.preview.map_or(0, |(_, size)| size);
        resource.stored.size.saturating_add(preview)
    })
}

fn kind_of(resource: &TbResourceInfo) -> ServiceResult<ResourceType> {
    match resource.resource_type {
        Some(ResourceType::Image) => Err(ServiceError::invalid("Image resource type is not supported")),
        Some(kind) => Ok(kind),
        None => Err(ServiceError::invalid("Resource type should be specified!")),
    }
}

fn check(resource: &TbResourceInfo) -> ServiceResult<()> {
    validate::required("Resource title", &resource.title)?;
    validate::lengths(&[
        ("title", Some(&resource.title)),
        ("resourceKey", resource.resource_key.as_deref()),
        ("file name", resource.file_name.as_deref()),
    ])?;
    let name = resource.file_name.as_deref().unwrap_or_default();
    if name.is_empty() {
        return Err(ServiceError::invalid("Resource file name should be specified!"));
    }
    let key = resource.resource_key.as_deref().unwrap_or_default();
    let is_forbidden = |char: char| matches!(char, '/' | '\\') || char.is_control();
    let is_wrong = |text: &str| text.contains(is_forbidden) || matches!(text, "." | "..");
    if is_wrong(name) || is_wrong(key) {
        return Err(ServiceError::invalid("File name contains forbidden symbols"));
    }
    validate::json_object("descriptor", resource.descriptor.as_ref())?;
    let descriptor = resource.descriptor.as_ref().map(Value::to_string);
    if descriptor.is_some_and(|text| text.len() > MAX_DESCRIPTOR) {
        return Err(ServiceError::invalid(format!(
            "descriptor must not have more than {MAX_DESCRIPTOR} bytes"
        )));
    }
    Ok(())
}

/// A key that is not taken: the name of a file, or the same with a number before its end.
async fn free_key(
    context: &ServiceContext,
    tenant: TenantId,
    kind: ResourceType,
    wanted: &str,
) -> ServiceResult<String> {
    let resources = &context.stores.resources;
    if resources.by_key(tenant, kind, wanted).await?.is_none() {
        return Ok(wanted.to_owned());
    }
    let (stem, end) = match wanted.rsplit_once('.') {
        Some((stem, end)) => (stem, format!(".{end}")),
        None => (wanted, String::new()),
    };
    let prefix = format!("{stem}_(");
    let taken = resources.keys(tenant, kind, &prefix, MAX_NUMBER).await?;
    let taken: std::collections::HashSet<String> = taken.into_iter().collect();
    (1..=MAX_NUMBER)
        .map(|number| format!("{prefix}{number}){end}"))
        .find(|key| !taken.contains(key))
        .ok_or_else(|| ServiceError::invalid(format!("There are too many resources called '{wanted}'")))
}

/// Saves a resource with a file and maybe a smaller picture of it.
async fn store_with(
    context: &ServiceContext,
    mut resource: TbResourceInfo,
    data: &UploadedData,
    preview: Option<&UploadedData>,
    is_new: bool,
) -> ServiceResult<TbResourceInfo> {
    resource.etag = Some(data.etag.clone());
    resource.stored = StoredFile {
        file: data.id,
        size: data.size,
        preview: preview.map(|preview| (preview.id, preview.size)),
    };
    let limit = data.room.total();
    let resources = &context.stores.resources;
    let saved = resources.save_with_file(resource, is_new, limit).await?;
    let saved = saved.ok_or_else(|| files::full(limit.unwrap_or_default()))?;
    context.publish_change(EntityChange::saved(saved.tenant_id, saved.id));
    Ok(saved)
}

/// See [`ResourceService::save_image`].
async fn save_image(
    context: &ServiceContext,
    image: ImageFields,
    stored: Option<TbResourceInfo>,
    data: UploadedData,
) -> ServiceResult<TbResourceInfo> {
    let mut preview = None;
    let saved = try_save_image(context, image, stored, &data, &mut preview).await;
    if saved.is_err() {
        files::discard(context, data.id).await;
        if let Some(preview) = preview {
            files::discard(context, preview.id).await;
        }
    }
    saved
}

async fn try_save_image(
    context: &ServiceContext,
    image: ImageFields,
    stored: Option<TbResourceInfo>,
    data: &UploadedData,
    preview: &mut Option<UploadedData>,
) -> ServiceResult<TbResourceInfo> {
    let tenant = data.tenant;
    let Some(mut head) = PictureHead::of(&data.head) else {
        return Err(ServiceError::invalid("The file is no image of a known format"));
    };
    let is_new = stored.is_none();
    let mut resource = stored.unwrap_or_else(|| {
        let mut new = TbResourceInfo {
            tenant_id: tenant,
            resource_type: Some(ResourceType::Image),
            ..TbResourceInfo::default()
        };
        new.set_identity(TbResourceId::new(), context.now());
        new
    });
    let given = |text: Option<String>| text.filter(|text| !text.is_empty());
    let file_name = given(image.file_name);
    if is_new {
        resource.title = given(image.title)
            .or_else(|| file_name.clone())
            .unwrap_or_default();
        resource.is_public = image.is_public;
        resource.resource_sub_type = Some(match image.sub_type {
            Some(sub_type @ (ResourceSubType::Image | ResourceSubType::ScadaSymbol)) => sub_type,
            None => ResourceSubType::Image,
            Some(_) => return Err(ServiceError::invalid("An image is an IMAGE or a SCADA_SYMBOL")),
        });
    }
    resource.file_name = file_name.or(resource.file_name);
    check(&resource)?;
    if is_new {
        let wanted = given(image.key)
            .or_else(|| resource.file_name.clone())
            .unwrap_or_default();
        resource.resource_key = Some(free_key(context, tenant, ResourceType::Image, &wanted).await?);
        check(&resource)?;
    }
    if resource.public_resource_key.is_none() {
        resource.public_resource_key = Some(public_key(context, given(image.public_key)).await?);
    }
    let mut small = None;
    // The size of some pictures stands behind the first piece.
    let is_behind = head.width == 0 && data.size > data.head.len() as u64;
    if data.size <= picture::MAX_DECODED_FILE
        && (is_behind || head.needs_preview(data.size))
        && let Some(turn) = picture::turn().await
    {
        let whole = files::read(context, tenant, data.id, data.size).await?;
        head = PictureHead::of(&whole).unwrap_or(head);
        if head.needs_preview(data.size) {
            small = picture::preview(head, whole, turn).await;
        }
    }
    let shown = match small {
        Some(small) => {
            let room = Room::of(context, TenantId::NULL, 0, u64::MAX).await?;
            let kept = files::store(context, tenant, room, &small.data).await?;
            let shown = json!({
                "mediaType": "image/png",
                "width": small.width,
                "height": small.height,
                "size": kept.size,
                "etag": kept.etag,
            });
            *preview = Some(kept);
            shown
        }
        None => json!({
            "mediaType": head.media_type,
            "width": head.width,
            "height": head.height,
            "size": data.size,
            "etag": data.etag,
        }),
    };
    resource.descriptor = Some(json!({
        "mediaType": head.media_type,
        "width": head.width,
        "height": head.height,
        "size": data.size,
        "etag": data.etag,
        "previewDescriptor": shown,
    }));
    store_with(context, resource, data, preview.as_ref(), is_new).await
}

/// A public key: that which is wanted if it is good and free.
async fn public_key(context: &ServiceContext, wanted: Option<String>) -> ServiceResult<String> {
    if let Some(wanted) = wanted
        && wanted.len() == PUBLIC_KEY_LETTERS
        && wanted.bytes().all(|byte| byte.is_ascii_alphanumeric())
        && !context.stores.resources.has_public_key(&wanted).await?
    {
        return Ok(wanted);
    }
    Ok(super::random_text(PUBLIC_KEY_LETTERS))
}

/// The same of data that is in memory.
async fn save_image_bytes(
    context: &ServiceContext,
    tenant: TenantId,
    image: ImageFields,
    stored: Option<TbResourceInfo>,
    data: &[u8],
) -> ServiceResult<TbResourceInfo> {
    // Nothing is stored of what is no image at all.
    if PictureHead::of(&data[..data.len().min(fieldline_core::ports::RESOURCE_PIECE)]).is_none() {
        return Err(ServiceError::invalid("The file is no image of a known format"));
    }
    let room = Room::of(context, tenant, size_of(stored.as_ref()), u64::MAX).await?;
    let data = files::store(context, tenant, room, data).await?;
    save_image(context, image, stored, data).await
}
