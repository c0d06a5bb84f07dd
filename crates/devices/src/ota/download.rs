//! What devices download: their package, chunk by chunk.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use fieldline_core::events::{ChangeKind, EntityChange, EntityListener};
use fieldline_core::ports::{
    OTA_PIECE, OtaPackageStore, OtaUpdateStore, StoreError, StoreErrorKind, StoreResult,
};
use fieldline_model::entity::{ChecksumAlgorithm, OtaKind, OtaPackageInfo};
use fieldline_model::{DeviceId, EntityId, EntityType, OtaPackageId, TenantId};
use futures::stream::{self, Stream};
use quick_cache::Weighter;
use quick_cache::sync::Cache;
use tokio::time::Instant;

use super::Options;
use crate::directory::DeviceHandle;

/// What a device shall download.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OtaOffer {
    /// Nothing.
    None,
    /// Something from elsewhere: the URL is in its attributes.
    Elsewhere,
    /// This.
    Image(Arc<OtaImage>),
}

/// A package with data. Its data never changes.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names are their own documentation")]
pub struct OtaImage {
    pub tenant: TenantId,
    pub id: OtaPackageId,
    pub kind: OtaKind,
    pub title: String,
    pub version: String,
    pub file_name: String,
    pub content_type: String,
    /// Bytes.
    pub size: u64,
    pub checksum_algorithm: Option<ChecksumAlgorithm>,
    pub checksum: Option<String>,
}

impl OtaImage {
    /// A package, if it has data.
    pub fn of(package: OtaPackageInfo) -> Option<Self> {
        if !package.has_data || package.link().is_some() {
            return None;
        }
        Some(Self {
            tenant: package.tenant_id,
            id: package.id,
            kind: package.kind?,
            title: package.title,
            version: package.version,
            file_name: package.file_name.unwrap_or_default(),
            content_type: package.content_type.unwrap_or_default(),
            size: u64::try_from(package.data_size?).ok()?,
            checksum_algorithm: package.checksum_algorithm,
            checksum: package.checksum,
        })
    }

    /// How many pieces its data is stored in.
    pub fn pieces(&self) -> u32 {
        u32::try_from(self.size.div_ceil(OTA_PIECE as u64)).unwrap_or(u32::MAX)
    }

    /// How many bytes a chunk has: fewer than `size` at the end, none behind it. `size` 0 stands for all there is.
    pub fn chunk_len(&self, size: u32, number: u32) -> u64 {
        if size == 0 {
            return self.size;
        }
        let start = u64::from(size) * u64::from(number);
        self.size.saturating_sub(start).min(size.into())
    }
}

#[derive(Clone)]
struct PieceWeighter;

impl Weighter<(OtaPackageId, u32), Bytes> for PieceWeighter {
    fn weight(&self, _: &(OtaPackageId, u32), piece: &Bytes) -> u64 {
        piece.len().max(1) as u64
    }
}

/// Devices of which is remembered what they shall download.
const OFFERS: usize = 10_000;
/// How long that is taken for true.
const OFFERED_FOR: Duration = Duration::from_secs(10);

/// Hands packages to devices. Pieces that are asked for often stay in memory, within a bound. To be registered as a listener of
/// entity events.
pub struct OtaDownloads {
    packages: Arc<dyn OtaPackageStore>,
    updates: Arc<dyn OtaUpdateStore>,
    cache: Cache<(OtaPackageId, u32), Bytes, PieceWeighter>,
    offers: Cache<(DeviceId, OtaKind), (Instant, OtaOffer)>,
    /// Counts what may have changed what devices shall download.
    changes: AtomicU64,
}

impl OtaDownloads {
    /// From these stores.
    pub fn new(
        packages: Arc<dyn OtaPackageStore>,
        updates: Arc<dyn OtaUpdateStore>,
        options: &Options,
    ) -> Arc<Self> {
        let pieces = options.cache.as_usize() / OTA_PIECE;
        Arc::new(Self {
            packages,
            updates,
            cache: Cache::with_weighter(pieces.max(16), options.cache.0, PieceWeighter),
            offers: Cache::new(OFFERS),
            changes: AtomicU64::new(0),
        })
    }

    /// What a device shall download that is in the middle of it: for some seconds what it was offered last, unless that has
    /// changed.
    pub async fn offer_again(&self, device: &DeviceHandle, kind: OtaKind) -> StoreResult<OtaOffer> {
        let key = (device.id, kind);
        if let Some((at, offer)) = self.offers.get(&key)
            && at.elapsed() < OFFERED_FOR
        {
            return Ok(offer);
        }
        let since = self.changes.load(Ordering::SeqCst);
        let offer = self.offer(device, kind).await?;
        self.offers.insert(key, (Instant::now(), offer.clone()));
        // Whoever has changed it since either takes this out or is seen here.
        if self.changes.load(Ordering::SeqCst) != since {
            self.offers.remove(&key);
        }
        Ok(offer)
    }

    /// What a device shall download now.
    pub async fn offer(&self, device: &DeviceHandle, kind: OtaKind) -> StoreResult<OtaOffer> {
        self.offer_to(device.subject.tenant, device.id, kind).await
    }

    /// See [`Self::offer`].
    pub async fn offer_to(&self, tenant: TenantId, device: DeviceId, kind: OtaKind) -> StoreResult<OtaOffer> {
        let Some(id) = self.updates.assigned(tenant, device, kind).await? else {
            return Ok(OtaOffer::None);
        };
        let Some(package) = self.packages.get(tenant, id).await? else {
            return Ok(OtaOffer::None);
        };
        if package.link().is_some() {
            return Ok(OtaOffer::Elsewhere);
        }
        Ok(OtaImage::of(package).map_or(OtaOffer::None, |image| OtaOffer::Image(Arc::new(image))))
    }

    /// The `number`th chunk of so many bytes, from 0 on; fewer bytes at the end, none behind it. `size` 0 stands for all
    /// there is: the caller has looked at [`OtaImage::chunk_len`], as it is copied together in memory.
    pub async fn chunk(&self, image: &OtaImage, size: u32, number: u32) -> StoreResult<Bytes> {
        let start = u64::from(size) * u64::from(number);
        self.range(image, start, start + image.chunk_len(size, number))
            .await
    }

    /// The bytes from `start` to `end`, which must be there, copied together in memory.
    pub async fn range(&self, image: &OtaImage, start: u64, end: u64) -> StoreResult<Bytes> {
        let mut out = BytesMut::new();
        let mut at = start;
        while at < end {
            let part = self.part(image, at, end).await?;
            if at == start && at + part.len() as u64 == end {
                return Ok(part);
            }
            if out.is_empty() {
                out.reserve((end - start) as usize);
            }
            at += part.len() as u64;
            out.extend_from_slice(&part);
        }
        Ok(out.freeze())
    }

    /// So many bytes of the data from `start` on, not more than a piece at a time. They must be there: see
    /// [`OtaImage::chunk_len`].
    pub fn stream(
        self: Arc<Self>,
        image: Arc<OtaImage>,
        start: u64,
        length: u64,
    ) -> impl Stream<Item = StoreResult<Bytes>> + Send + 'static {
        let end = start + length;
        stream::try_unfold(start, move |at| {
            let (downloads, image) = (self.clone(), image.clone());
            async move {
                if at >= end {
                    return Ok(None);
                }
                let part = downloads.part(&image, at, end).await?;
                let next = at + part.len() as u64;
                Ok(Some((part, next)))
            }
        })
    }

    /// What one piece has of the bytes from `at` to `end`; never nothing.
    async fn part(&self, image: &OtaImage, at: u64, end: u64) -> StoreResult<Bytes> {
        let size = OTA_PIECE as u64;
        let number = u32::try_from(at / size).unwrap_or(u32::MAX);
        let piece = self.piece(image, number).await?;
        let from = (at % size) as usize;
        let to = (end - (at - from as u64)).min(size) as usize;
        if to > piece.len() || from >= to {
            return Err(damaged());
        }
        Ok(piece.slice(from..to))
    }

    /// A piece as it is stored; all but the last one have [`OTA_PIECE`] bytes.
    pub async fn piece(&self, image: &OtaImage, number: u32) -> StoreResult<Bytes> {
        let read = async {
            let piece = self.packages.piece(image.tenant, image.id, number).await?;
            piece.ok_or_else(damaged)
        };
        self.cache.get_or_insert_async(&(image.id, number), read).await
    }
}

impl EntityListener for OtaDownloads {
    fn on_change(&self, change: EntityChange) {
        let EntityId { entity_type, id } = change.subject.entity;
        match (entity_type, change.what) {
            (EntityType::Device, ChangeKind::Saved | ChangeKind::Deleted) => {
                self.changes.fetch_add(1, Ordering::SeqCst);
                for kind in [OtaKind::Firmware, OtaKind::Software] {
                    self.offers.remove(&(DeviceId(id), kind));
                }
            }
            (EntityType::DeviceProfile | EntityType::OtaPackage, ChangeKind::Saved | ChangeKind::Deleted)
            | (EntityType::Tenant, ChangeKind::Deleted) => {
                self.changes.fetch_add(1, Ordering::SeqCst);
                self.offers.clear();
            }
            _ => {}
        }
    }
}

/// It was deleted meanwhile, or is not what was uploaded.
fn damaged() -> StoreError {
    StoreError::new(StoreErrorKind::NotFound, "The data of the OTA package is gone!")
}
