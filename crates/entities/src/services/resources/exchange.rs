//! Resources on their way from one installation to another.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use fieldline_model::TenantId;
use fieldline_model::entity::{EntityDraft, ResourceExportData, ResourceType, TbResourceInfo};

use super::embedded::ResourceLinks;
use super::{ImageFields, ResourceService, files, save_image_bytes};
use crate::services::{ServiceError, ServiceResult};

/// Most resources that come along with a dashboard or a widget type.
const MAX_RESOURCES: usize = 1_000;

/// What became of a resource that was imported.
#[derive(Debug, Clone, PartialEq)]
pub enum ImportedResource {
    /// It is new.
    Created(TbResourceInfo),
    /// One of its key has its data now.
    Updated(TbResourceInfo),
    /// There was one with such data.
    Known(TbResourceInfo),
}

impl ImportedResource {
    /// The resource.
    pub fn info(&self) -> &TbResourceInfo {
        match self {
            Self::Created(info) | Self::Updated(info) | Self::Known(info) => info,
        }
    }
}

/// A resource as it goes elsewhere, without its data.
pub(super) fn exported(resource: &TbResourceInfo) -> ResourceExportData {
    ResourceExportData {
        link: Some(resource.link()),
        title: Some(resource.title.clone()),
        kind: resource.resource_type,
        sub_type: resource.resource_sub_type,
        resource_key: resource.resource_key.clone(),
        file_name: resource.file_name.clone(),
        public_resource_key: resource.public_resource_key.clone(),
        is_public: resource.is_public,
        media_type: resource.media_type().map(str::to_owned),
        data: None,
    }
}

impl ResourceService {
    /// A resource as it goes elsewhere, without its data.
    pub fn export_head(&self, resource: &TbResourceInfo) -> ResourceExportData {
        exported(resource)
    }

    /// The resources of a dashboard or a widget type with their data. Callers bound and count what they ask for.
    ///
    /// # Errors
    /// The store failed.
    pub async fn export_all(&self, resources: &[TbResourceInfo]) -> ServiceResult<Vec<ResourceExportData>> {
        let mut out = Vec::with_capacity(resources.len());
        for resource in resources {
            let data = self.read(resource).await?;
            let mut exported = exported(resource);
            exported.data = Some(STANDARD.encode(data));
            if resource.resource_type == Some(ResourceType::Image) {
                // An import shall not replace another image of that key.
                exported.resource_key = None;
            }
            out.push(exported);
        }
        Ok(out)
    }

    /// Imports an image: one of the same key gets its data.
    ///
    /// # Errors
    /// It is no image, or a rule is broken.
    pub async fn import_image(
        &self,
        tenant: TenantId,
        exported: ResourceExportData,
    ) -> ServiceResult<ImportedResource> {
        let data = decoded(&exported)?;
        let key = exported.resource_key.clone().filter(|key| !key.is_empty());
        let resources = &self.0.stores.resources;
        let stored = match &key {
            Some(key) => resources.by_key(tenant, ResourceType::Image, key).await?,
            None => None,
        };
        let is_known = stored.is_some();
        let stored = stored.map(|mut stored| {
            let title = exported.title.clone().filter(|title| !title.is_empty());
            stored.title = title.unwrap_or(stored.title);
            stored.is_public = exported.is_public;
            stored
        });
        let image = image_fields(exported);
        let saved = save_image_bytes(&self.0, tenant, image, stored, &data).await?;
        Ok(match is_known {
            true => ImportedResource::Updated(saved),
            false => ImportedResource::Created(saved),
        })
    }

    /// Imports what came along with a dashboard or a widget type. What is there already is used. What was imported is told even if
    /// a later one breaks a rule.
    pub async fn import_all(
        &self,
        tenant: TenantId,
        resources: Vec<ResourceExportData>,
    ) -> (Vec<ImportedResource>, ServiceResult<ResourceLinks>) {
        let mut links = ResourceLinks::default();
        if resources.len() > MAX_RESOURCES {
            let count = resources.len();
            let refused = format!("{MAX_RESOURCES} resources can be imported at once, not {count}");
            return (Vec::new(), Err(ServiceError::invalid(refused)));
        }
        let mut imported = Vec::with_capacity(resources.len());
        for resource in resources {
            let old = resource.link.clone();
            let one = match self.import_one(tenant, resource).await {
                Ok(one) => one,
                Err(error) => return (imported, Err(error)),
            };
            if let Some(old) = old {
                links.0.insert(old, one.info().link());
            }
            imported.push(one);
        }
        (imported, Ok(links))
    }

    async fn import_one(
        &self,
        tenant: TenantId,
        mut exported: ResourceExportData,
    ) -> ServiceResult<ImportedResource> {
        let kind = exported
            .kind
            .ok_or_else(|| ServiceError::invalid("Resource type should be specified!"))?;
        let data = decoded(&exported)?;
        exported.data = None;
        let stores = &self.0.stores.resources;
        let tag = files::etag(&data);
        if let Some(known) = stores.by_etag(tenant, kind, &tag).await? {
            return Ok(ImportedResource::Known(known));
        }
        if kind == ResourceType::Image {
            let image = ImageFields {
                key: None,
                ..image_fields(exported)
            };
            let saved = save_image_bytes(&self.0, tenant, image, None, &data).await?;
            return Ok(ImportedResource::Created(saved));
        }
        if tenant.is_null()
            && let Some(key) = &exported.resource_key
            && let Some(mut stored) = stores.by_key(tenant, kind, key).await?
        {
            stored.title = exported.title.unwrap_or(stored.title);
            let data = self.store(tenant, Some(&stored), &data).await?;
            let saved = self.replace_data(stored, None, data).await?;
            return Ok(ImportedResource::Updated(saved));
        }
        let data = self.store(tenant, None, &data).await?;
        let title = exported.title.filter(|title| !title.is_empty());
        let draft = EntityDraft::from(TbResourceInfo {
            title: title.or_else(|| exported.file_name.clone()).unwrap_or_default(),
            resource_type: Some(kind),
            resource_sub_type: exported.sub_type,
            resource_key: exported.resource_key,
            file_name: exported.file_name,
            ..TbResourceInfo::default()
        });
        Ok(ImportedResource::Created(self.create(draft, data).await?))
    }
}

fn image_fields(exported: ResourceExportData) -> ImageFields {
    ImageFields {
        title: exported.title,
        file_name: exported.file_name,
        key: exported.resource_key,
        sub_type: exported.sub_type,
        is_public: exported.is_public,
        public_key: exported.public_resource_key,
    }
}

fn decoded(exported: &ResourceExportData) -> ServiceResult<Vec<u8>> {
    let data = exported.data.as_deref().unwrap_or_default();
    STANDARD
        .decode(data)
        .map_err(|error| ServiceError::invalid(format!("The data of a resource is no base64: {error}")))
}
