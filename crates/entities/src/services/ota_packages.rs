//! OTA packages, and what may be assigned to devices.

use std::sync::Arc;

use bytes::BytesMut;
use fieldline_core::events::EntityChange;
use fieldline_core::ports::{OTA_PIECE, StoreErrorKind};
use fieldline_devices::ota::ChecksumHasher;
use fieldline_model::entity::{ChecksumAlgorithm, OtaKind, OtaPackageInfo, SaveOtaPackageInfoRequest};
use fieldline_model::{DeviceProfileId, EntityId, EntityKey, EntityType, OtaPackageId, TenantId, new_uuid};
use uuid::Uuid;

use super::{ServiceContext, ServiceError, ServiceErrorKind, ServiceResult, saving, validate};

/// Longest checksum, in characters.
const MAX_CHECKSUM: usize = 1_020;
/// Pieces of an upload, in a row and then in between, before which it is looked whether there is room for them.
const QUOTA_CHECK_PIECES: u32 = 64;
/// How long an upload that nobody finished is kept: those under way are younger.
const ABANDONED_AFTER_MS: i64 = 3_600_000 * 6;

/// Rules about OTA packages.
#[derive(Clone)]
pub struct OtaPackageService(Arc<ServiceContext>);

/// A file that is uploaded.
#[derive(Debug, Clone, Default)]
pub struct UploadedFile {
    /// Its name.
    pub name: Option<String>,
    /// Type of its content.
    pub content_type: Option<String>,
    /// The checksum that it shall have, in hexadecimal digits.
    pub checksum: Option<String>,
}

impl OtaPackageService {
    pub(super) fn new(context: &Arc<ServiceContext>) -> Self {
        Self(Arc::clone(context))
    }

    /// Creates a package without data, or updates what may change of it where it has an id.
    ///
    /// # Errors
    /// A rule is broken, or there is such a title and version.
    pub async fn save_info(
        &self,
        tenant: TenantId,
        request: SaveOtaPackageInfoRequest,
    ) -> ServiceResult<OtaPackageInfo> {
        let mut package = request.info;
        if request.uses_url && package.url.as_deref().is_none_or(|url| url.trim().is_empty()) {
            return Err(ServiceError::invalid("Ota package URL should be specified!"));
        }
        package.tenant_id = tenant;
        package.name = package.title.clone();
        self.check(&package).await?;
        let stores = &*self.0.stores.ota_packages;
        let old = match package.id {
            Some(id) => Some(stores.get(tenant, id).await?.ok_or_else(|| gone(id))?),
            None => None,
        };
        if let Some(old) = &old {
            check_update(&package, old)?;
        }
        let saved = saving::save(&self.0, stores, package, old.as_ref()).await;
        let saved = saved.map_err(in_store_words)?;
        self.publish_saved(&saved);
        Ok(saved)
    }

    /// Begins to upload the data of a package. No more is stored than the tenant has room for, and `max` bytes.
    ///
    /// # Errors
    /// The package has a URL, or the store failed.
    pub async fn upload(
        &self,
        package: OtaPackageInfo,
        algorithm: ChecksumAlgorithm,
        max: u64,
    ) -> ServiceResult<OtaUpload> {
        let tenant = package.tenant_id;
        if package.link().is_some() {
            return Err(ServiceError::invalid("Updating otaPackage URL is prohibited!"));
        }
        // What is there already was counted when it came.
        let room = match package.has_data {
            true => None,
            false => self.room(tenant).await?,
        };
        let id = new_uuid();
        let now = self.0.now();
        self.0.stores.ota_packages.begin_upload(tenant, id, now).await?;
        Ok(OtaUpload {
            service: self.clone(),
            package,
            algorithm,
            checksum: ChecksumHasher::new(algorithm),
            id,
            max,
            room,
            size: 0,
            pieces: 0,
            pending: BytesMut::new(),
            is_same: true,
        })
    }

    /// How many more bytes of packages the tenant may have, and may have in all.
    async fn room(&self, tenant: TenantId) -> ServiceResult<Option<(u64, u64)>> {
        let stores = &self.0.stores;
        let profile = stores.profile_of(tenant).await?;
        match profile.map_or(0, |profile| profile.limit("maxOtaPackagesInBytes")) {
            0 => Ok(None),
            limit => {
                let used = stores.ota_packages.data_bytes(tenant).await?;
                Ok(Some((limit.saturating_sub(used), limit)))
            }
        }
    }

    /// Deletes a package with its data.
    ///
    /// # Errors
    /// It is assigned to a device or a profile.
    pub async fn delete(&self, package: &OtaPackageInfo) -> ServiceResult<()> {
        let (tenant, id) = (package.tenant_id, package.id);
        let deleted = self.0.stores.ota_packages.delete(tenant, id).await;
        deleted.map_err(in_store_words)?;
        self.0.publish_change(EntityChange::deleted(tenant, id));
        let subject = EntityKey {
            tenant,
            entity: id.into(),
        };
        Ok(self.0.delete_links(subject).await?)
    }

    /// Deletes what was uploaded by halves before the program began, when nobody can be uploading; returns how many uploads.
    ///
    /// # Errors
    /// The store failed.
    pub async fn discard_unfinished(&self) -> ServiceResult<u64> {
        Ok(self.0.stores.ota_packages.discard_before(i64::MAX).await?)
    }

    /// Deletes what was uploaded by halves long ago; returns how many uploads.
    ///
    /// # Errors
    /// The store failed.
    pub async fn discard_abandoned(&self) -> ServiceResult<u64> {
        let before = self.0.now().saturating_sub(ABANDONED_AFTER_MS);
        Ok(self.0.stores.ota_packages.discard_before(before).await?)
    }

    fn publish_saved(&self, package: &OtaPackageInfo) {
        let id = package.id;
        self.0.publish_change(EntityChange::saved(package.tenant_id, id));
    }

    async fn check(&self, package: &OtaPackageInfo) -> ServiceResult<()> {
        validate::lengths(&[
            ("title", Some(&package.title)),
            ("version", Some(&package.version)),
            ("tag", package.tag.as_deref()),
            ("url", package.url.as_deref()),
            ("file name", package.file_name.as_deref()),
            ("contentType", package.content_type.as_deref()),
        ])?;
        let checksum = package.checksum.as_deref().unwrap_or_default();
        if checksum.chars().count() > MAX_CHECKSUM || checksum.contains('\0') {
            return Err(ServiceError::invalid(format!(
                "Validation error: checksum length must be equal or less than {MAX_CHECKSUM}"
            )));
        }
        validate::json_object("additionalInfo", package.additional_info.as_ref())?;
        validate::required("OtaPackage title", &package.title)?;
        if let Some(profile) = package.device_profile_id {
            let profiles = &self.0.stores.device_profiles;
            if profiles.get(package.tenant_id, profile).await?.is_none() {
                return Err(ServiceError::invalid(
                    "OtaPackage is referencing to non-existent device profile!",
                ));
            }
        }
        if package.kind.is_none() {
            return Err(ServiceError::invalid("Type should be specified!"));
        }
        if package.version.is_empty() {
            return Err(ServiceError::invalid("OtaPackage version should be specified!"));
        }
        Ok(())
    }
}

/// Data of a package on its way into the store. Not more of it is in memory than a piece.
pub struct OtaUpload {
    service: OtaPackageService,
    package: OtaPackageInfo,
    algorithm: ChecksumAlgorithm,
    checksum: ChecksumHasher,
    id: Uuid,
    max: u64,
    room: Option<(u64, u64)>,
    size: u64,
    pieces: u32,
    pending: BytesMut,
    /// So far it is what the package has already.
    is_same: bool,
}

impl OtaUpload {
    /// The data goes on.
    ///
    /// # Errors
    /// There is more than there may be, or the store failed: the upload is to be abandoned.
    pub async fn write(&mut self, mut data: &[u8]) -> ServiceResult<()> {
        self.size = self.size.saturating_add(data.len() as u64);
        if self.size > self.max {
            return Err(ServiceError::invalid(format!(
                "OtaPackage data exceeds the maximum of {}",
                display_size(self.max)
            )));
        }
        if let Some((room, limit)) = self.room
            && self.size > room
        {
            return Err(full(limit));
        }
        self.checksum.update(data);
        while !data.is_empty() {
            let taken = (OTA_PIECE - self.pending.len()).min(data.len());
            let (now, rest) = data.split_at(taken);
            self.pending.extend_from_slice(now);
            data = rest;
            if self.pending.len() == OTA_PIECE {
                self.store_piece().await?;
            }
        }
        Ok(())
    }

    async fn store_piece(&mut self) -> ServiceResult<()> {
        let piece = self.pending.split().freeze();
        let number = self.pieces;
        self.pieces += 1;
        let stores = &self.service.0.stores.ota_packages;
        if self.package.has_data {
            // Nothing is stored twice: it is only compared.
            let id = self.package.id;
            let stored = stores.piece(self.package.tenant_id, id, number).await?;
            self.is_same &= stored == Some(piece);
            return Ok(());
        }
        // Others may be uploading, too. All is summed up, which a long upload does not do for every piece; what is attached
        // at last is within the limit.
        let is_looked_at = number < QUOTA_CHECK_PIECES || number.is_multiple_of(QUOTA_CHECK_PIECES);
        if let Some((_, limit)) = self.room
            && is_looked_at
            && piece.len() == OTA_PIECE
            && stores.data_bytes(self.package.tenant_id).await? + piece.len() as u64 > limit
        {
            return Err(full(limit));
        }
        Ok(stores.append(self.id, number, piece).await?)
    }

    /// Makes what was uploaded the data of the package.
    ///
    /// # Errors
    /// It is empty, is not what its checksum says, or the package has other data already. Nothing of it is left then.
    pub async fn finish(mut self, file: UploadedFile) -> ServiceResult<OtaPackageInfo> {
        let finished = self.try_finish(file).await;
        match finished {
            Ok(saved) if !self.package.has_data => {
                self.service.publish_saved(&saved);
                Ok(saved)
            }
            other => {
                self.abandon().await;
                other
            }
        }
    }

    async fn try_finish(&mut self, file: UploadedFile) -> ServiceResult<OtaPackageInfo> {
        if !self.pending.is_empty() {
            self.store_piece().await?;
        }
        if self.size == 0 {
            return Err(ServiceError::invalid("OtaPackage data should be specified!"));
        }
        let done = std::mem::replace(&mut self.checksum, ChecksumHasher::new(self.algorithm)).finish();
        let checksum = file.checksum.filter(|checksum| !checksum.is_empty());
        let package = OtaPackageInfo {
            file_name: file.name,
            content_type: file.content_type,
            checksum_algorithm: Some(self.algorithm),
            checksum: Some(checksum.unwrap_or_else(|| done.clone())),
            data_size: i64::try_from(self.size).ok(),
            ..self.package.clone()
        };
        self.service.check(&package).await?;
        let empty = |text: &Option<String>| text.as_deref().is_none_or(str::is_empty);
        if empty(&package.file_name) {
            return Err(ServiceError::invalid("OtaPackage file name should be specified!"));
        }
        if empty(&package.content_type) {
            return Err(ServiceError::invalid(
                "OtaPackage content type should be specified!",
            ));
        }
        if package.checksum.as_deref() != Some(&done) {
            return Err(ServiceError::invalid("Wrong otaPackage file!"));
        }
        check_update(&package, &self.package)?;
        if self.package.has_data {
            if !self.is_same {
                return Err(ServiceError::invalid("Updating otaPackage data is prohibited!"));
            }
            return Ok(self.package.clone());
        }
        let stores = &self.service.0.stores.ota_packages;
        let limit = self.room.map(|(_, limit)| limit);
        let attached = stores
            .attach(package, self.id, limit)
            .await
            .map_err(in_store_words)?;
        attached.ok_or_else(|| full(limit.unwrap_or_default()))
    }

    /// Deletes what was uploaded. What cannot be deleted now is deleted later, with what nobody finished.
    pub async fn abandon(self) {
        if let Err(error) = self.service.0.stores.ota_packages.discard(self.id).await {
            tracing::warn!(%error, "cannot delete an upload, trying again later");
        }
    }
}

/// Checks packages that are assigned to a device, or to a profile.
pub(super) async fn check_assigned(
    context: &ServiceContext,
    tenant: TenantId,
    profile: Option<DeviceProfileId>,
    assigned: [(OtaKind, Option<EntityId>); 2],
) -> ServiceResult<()> {
    for (kind, id) in assigned {
        let Some(id) = id else { continue };
        let noun = kind.noun();
        let refuse = |message: String| Err(ServiceError::invalid(message));
        let package = match id.entity_type {
            EntityType::OtaPackage => {
                context
                    .stores
                    .ota_packages
                    .get(tenant, OtaPackageId(id.id))
                    .await?
            }
            _ => None,
        };
        let Some(package) = package else {
            return refuse(format!("Can't assign non-existent {noun}!"));
        };
        if package.kind != Some(kind) {
            let other = package.kind.map_or("", OtaKind::name);
            return refuse(format!("Can't assign {noun} with type: {other}"));
        }
        if !package.has_data {
            return refuse(format!("Can't assign {noun} with empty data!"));
        }
        if profile.is_none() || package.device_profile_id != profile {
            return refuse(format!("Can't assign {noun} with different deviceProfile!"));
        }
    }
    Ok(())
}

/// What stays as it is once it is there, in the words of the REST API.
fn check_update(new: &OtaPackageInfo, old: &OtaPackageInfo) -> ServiceResult<()> {
    fn kept<T: PartialEq>(new: &Option<T>, old: &Option<T>) -> bool {
        old.is_none() || new == old
    }
    let rules = [
        (new.kind == old.kind, "type"),
        (new.title == old.title, "otaPackage title"),
        (new.version == old.version, "otaPackage version"),
        (new.tag == old.tag, "otaPackage tag"),
        (
            new.device_profile_id == old.device_profile_id,
            "otaPackage deviceProfile",
        ),
        (kept(&new.file_name, &old.file_name), "otaPackage file name"),
        (
            kept(&new.content_type, &old.content_type),
            "otaPackage content type",
        ),
        // The reference calls these two the content type as well.
        (
            kept(&new.checksum_algorithm, &old.checksum_algorithm),
            "otaPackage content type",
        ),
        (kept(&new.checksum, &old.checksum), "otaPackage content type"),
        (kept(&new.data_size, &old.data_size), "otaPackage data size"),
        (kept(&new.url, &old.url), "otaPackage URL"),
    ];
    match rules.into_iter().find(|(holds, _)| !holds) {
        Some((_, what)) => Err(ServiceError::invalid(format!("Updating {what} is prohibited!"))),
        None => Ok(()),
    }
}

/// Conflicts of these stores say what the matter is, and break a rule.
fn in_store_words(error: fieldline_core::ports::StoreError) -> ServiceError {
    match error.kind() {
        StoreErrorKind::Conflict => ServiceError::new(ServiceErrorKind::Invalid, error.message().to_owned()),
        _ => error.into(),
    }
}

fn full(limit: u64) -> ServiceError {
    ServiceError::invalid(format!(
        "Ota packages total size exceeds the maximum of {}",
        display_size(limit)
    ))
}

fn gone(id: OtaPackageId) -> ServiceError {
    ServiceError::not_found(format!("Ota package with id [{id}] is not found"))
}

/// A size as people are told it: whole units, rounded down.
pub(super) fn display_size(bytes: u64) -> String {
    const UNITS: [(&str, u32); 3] = [("GB", 30), ("MB", 20), ("KB", 10)];
    match UNITS.into_iter().find(|(_, shift)| bytes >> shift > 0) {
        Some((unit, shift)) => format!("{} {unit}", bytes >> shift),
        None => format!("{bytes} bytes"),
    }
}

impl std::fmt::Debug for OtaUpload {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OtaUpload")
            .field("id", &self.id)
            .field("size", &self.size)
            .finish_non_exhaustive()
    }
}
