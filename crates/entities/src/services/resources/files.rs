//! Data of resources on its way into the store and back.

use bytes::{Bytes, BytesMut};
use fieldline_core::ports::RESOURCE_PIECE;
use fieldline_model::{TenantId, new_uuid};
use sha2::{Digest as _, Sha256};
use uuid::Uuid;

use crate::services::ota_packages::display_size;
use crate::services::{ServiceContext, ServiceError, ServiceResult};

/// Pieces of an upload, in a row and then in between, before which it is looked whether there is room for them.
const QUOTA_CHECK_PIECES: u32 = 64;

/// How much a tenant may store.
#[derive(Debug, Clone, Copy)]
pub(super) struct Room {
    /// Bytes that one file may have.
    largest: u64,
    total: Option<TotalRoom>,
}

/// How much all resources of a tenant may have.
#[derive(Debug, Clone, Copy)]
struct TotalRoom {
    limit: u64,
    /// The same and what is about to be replaced.
    ceiling: u64,
    /// Bytes that are left of that.
    left: u64,
}

impl Room {
    /// What the tenant's profile leaves for a file that takes the place of one of so many bytes.
    pub(super) async fn of(
        context: &ServiceContext,
        tenant: TenantId,
        replaced: u64,
        most: u64,
    ) -> ServiceResult<Self> {
        let mut room = Self {
            largest: most,
            total: None,
        };
        if tenant.is_null() {
            return Ok(room);
        }
        let stores = &context.stores;
        let Some(profile) = stores.profile_of(tenant).await? else {
            return Ok(room);
        };
        match profile.limit("maxResourceSize") {
            0 => {}
            limit => room.largest = most.min(limit),
        }
        match profile.limit("maxResourcesInBytes") {
            0 => {}
            limit => {
                let used = stores.resources.data_bytes(tenant).await?;
                let ceiling = limit.saturating_add(replaced);
                room.total = Some(TotalRoom {
                    limit,
                    ceiling,
                    left: ceiling.saturating_sub(used),
                });
            }
        }
        Ok(room)
    }

    /// Bytes that all resources may have.
    pub(super) fn total(&self) -> Option<u64> {
        self.total.map(|total| total.limit)
    }

    fn check(&self, size: u64) -> ServiceResult<()> {
        if size > self.largest {
            return Err(ServiceError::invalid(format!(
                "Resource exceeds the maximum size of {}",
                display_size(self.largest)
            )));
        }
        match self.total {
            Some(total) if size > total.left => Err(full(total.limit)),
            _ => Ok(()),
        }
    }
}

/// The answer where a tenant has no room for more.
pub(super) fn full(limit: u64) -> ServiceError {
    ServiceError::invalid(format!(
        "Resources total size exceeds the maximum of {}",
        display_size(limit)
    ))
}

/// A file on its way into the store. Not more of it is in memory than a piece and its beginning.
pub struct ResourceUpload {
    tenant: TenantId,
    id: Uuid,
    room: Room,
    size: u64,
    pieces: u32,
    pending: BytesMut,
    head: Bytes,
    hash: Sha256,
}

/// A whole file that is of no resource yet: it is to be saved with one, or discarded.
#[derive(Debug)]
pub struct UploadedData {
    pub(super) tenant: TenantId,
    pub(super) id: Uuid,
    pub(super) size: u64,
    pub(super) etag: String,
    /// Its first piece.
    pub(super) head: Bytes,
    pub(super) room: Room,
}

impl ResourceUpload {
    /// Begins a file.
    pub(super) async fn begin(context: &ServiceContext, tenant: TenantId, room: Room) -> ServiceResult<Self> {
        let id = new_uuid();
        let resources = &context.stores.resources;
        resources.begin_file(tenant, id, context.now()).await?;
        Ok(Self {
            tenant,
            id,
            room,
            size: 0,
            pieces: 0,
            pending: BytesMut::new(),
            head: Bytes::new(),
            hash: Sha256::new(),
        })
    }

    pub(super) async fn write(&mut self, context: &ServiceContext, mut data: &[u8]) -> ServiceResult<()> {
        self.size = self.size.saturating_add(data.len() as u64);
        self.room.check(self.size)?;
        self.hash.update(data);
        while !data.is_empty() {
            let taken = (RESOURCE_PIECE - self.pending.len()).min(data.len());
            let (now, rest) = data.split_at(taken);
            self.pending.extend_from_slice(now);
            data = rest;
            if self.pending.len() == RESOURCE_PIECE {
                self.store_piece(context).await?;
            }
        }
        Ok(())
    }

    async fn store_piece(&mut self, context: &ServiceContext) -> ServiceResult<()> {
        let piece = self.pending.split().freeze();
        let number = self.pieces;
        self.pieces += 1;
        if number == 0 {
            self.head = piece.clone();
        }
        let resources = &context.stores.resources;
        // Others may be uploading, too. All is summed up, which a long upload does not do for every piece; what is saved at
        // last is within the limit.
        let is_looked_at = number < QUOTA_CHECK_PIECES || number.is_multiple_of(QUOTA_CHECK_PIECES);
        if let Some(total) = self.room.total
            && is_looked_at
            && piece.len() == RESOURCE_PIECE
            && resources.data_bytes(self.tenant).await? + piece.len() as u64 > total.ceiling
        {
            return Err(full(total.limit));
        }
        Ok(resources.append(self.id, number, piece).await?)
    }

    pub(super) async fn finish(mut self, context: &ServiceContext) -> ServiceResult<UploadedData> {
        if !self.pending.is_empty()
            && let Err(error) = self.store_piece(context).await
        {
            discard(context, self.id).await;
            return Err(error);
        }
        if self.size == 0 {
            discard(context, self.id).await;
            return Err(ServiceError::invalid("Resource data should be specified"));
        }
        let digest = self.hash.finalize();
        Ok(UploadedData {
            tenant: self.tenant,
            id: self.id,
            size: self.size,
            etag: hex(&digest),
            head: self.head,
            room: self.room,
        })
    }

    pub(super) async fn abandon(self, context: &ServiceContext) {
        discard(context, self.id).await;
    }
}

impl std::fmt::Debug for ResourceUpload {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ResourceUpload")
            .field("id", &self.id)
            .field("size", &self.size)
            .finish_non_exhaustive()
    }
}

/// The tag of data that is in memory.
pub(super) fn etag(data: &[u8]) -> String {
    hex(&Sha256::digest(data))
}

fn hex(digest: &[u8]) -> String {
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Stores data that is in memory.
pub(super) async fn store(
    context: &ServiceContext,
    tenant: TenantId,
    room: Room,
    data: &[u8],
) -> ServiceResult<UploadedData> {
    room.check(data.len() as u64)?;
    let mut upload = ResourceUpload::begin(context, tenant, room).await?;
    match upload.write(context, data).await {
        Ok(()) => upload.finish(context).await,
        Err(error) => {
            upload.abandon(context).await;
            Err(error)
        }
    }
}

/// Deletes a file that became no resource's. Where that fails, it goes with other leftovers.
pub(super) async fn discard(context: &ServiceContext, file: Uuid) {
    if let Err(error) = context.stores.resources.discard_file(file).await {
        tracing::warn!(%error, "an upload is left behind");
    }
}

/// The whole of a file, which has that many bytes.
pub(super) async fn read(
    context: &ServiceContext,
    tenant: TenantId,
    file: Uuid,
    size: u64,
) -> ServiceResult<Vec<u8>> {
    let mut data = Vec::with_capacity(usize::try_from(size).unwrap_or_default());
    let mut number = 0;
    while (data.len() as u64) < size {
        let piece = context.stores.resources.piece(tenant, file, number).await?;
        let Some(piece) = piece else {
            return Err(ServiceError::not_found("The data of the resource has changed"));
        };
        data.extend_from_slice(&piece);
        number += 1;
    }
    Ok(data)
}
