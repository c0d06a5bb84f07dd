//! Firmware and software downloads. Each block is read from the store when it is requested, so the only state kept for
//! a download is how much of it is already counted against the rate limits.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use fieldline_codec::coap::{CoapBlock, CoapCode, MAX_BLOCK_EXPONENT};
use fieldline_devices::directory::DeviceHandle;
use fieldline_devices::ota::{OtaImage, OtaOffer};
use fieldline_model::DeviceId;
use fieldline_model::entity::OtaKind;
use quick_cache::sync::Cache;

use super::reply::{CoapReply, ResourceBlock};
use super::request::CoapRequest;
use super::resources::store_failed;
use super::server::CoapShared;

/// Downloads that are remembered. A block of a forgotten download is counted like a first block.
const DOWNLOADS: usize = 10_000;
/// How often the whole package may be sent before it is counted again, since blocks get lost.
const TIMES: u64 = 2;
/// Bytes of the largest block.
const LARGEST_BLOCK: u64 = 1 << (MAX_BLOCK_EXPONENT + 4);

/// The bytes that devices may still download without being counted. A download is one message to the rate limits,
/// however many blocks it has; a device that requests more than its allowance is counted for another message.
pub(super) struct DownloadAllowances(Cache<(DeviceId, OtaKind), Arc<AtomicU64>>);

impl DownloadAllowances {
    pub(super) fn new() -> Self {
        Self(Cache::new(DOWNLOADS))
    }

    /// Begins the allowance of a download of `length` bytes whose message was counted.
    fn begin(&self, device: DeviceId, kind: OtaKind, length: u64) {
        let in_blocks = length.next_multiple_of(LARGEST_BLOCK);
        let left = Arc::new(AtomicU64::new(in_blocks.saturating_mul(TIMES)));
        self.0.insert((device, kind), left);
    }

    /// Takes a block of `bytes` off the allowance. Returns whether there was enough left.
    fn try_consume(&self, device: DeviceId, kind: OtaKind, bytes: u64) -> bool {
        let left = self.0.get(&(device, kind));
        left.is_some_and(|left| {
            let less = |left: u64| left.checked_sub(bytes);
            left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less)
                .is_ok()
        })
    }
}

/// Answers with the requested block of the requested chunk; without a size, the whole package is one chunk. `admit`
/// counts a message; the caller has already counted the one of the first block.
pub(super) async fn download(
    shared: &CoapShared,
    device: &DeviceHandle,
    request: &CoapRequest,
    kind: OtaKind,
    admit: impl Fn() -> Result<(), CoapReply>,
) -> Result<CoapReply, CoapReply> {
    let (wanted, downloads) = (request.block2, &shared.services.downloads);
    let is_first = wanted.is_none_or(|block| block.number() == 0);
    let offer = match is_first {
        true => downloads.offer(device, kind).await,
        false => downloads.offer_again(device, kind).await,
    };
    let OtaOffer::Image(image) = offer.map_err(|error| store_failed(&error))? else {
        return Err(CoapReply::empty(CoapCode::NOT_FOUND));
    };
    let is_meant = |name, value: &str| request.argument(name).is_none_or(|wanted| wanted == value);
    let number = |name| match request.argument(name).filter(|text| !text.is_empty()) {
        Some(text) => text
            .parse::<u32>()
            .map_err(|_| CoapReply::empty(CoapCode::BAD_REQUEST)),
        None => Ok(0),
    };
    let (size, chunk) = (number("size")?, number("chunk")?);
    if !is_meant("title", &image.title) || !is_meant("version", &image.version) {
        return Err(CoapReply::empty(CoapCode::BAD_REQUEST));
    }
    let (start, length) = (u64::from(size) * u64::from(chunk), image.chunk_len(size, chunk));
    let exponent = wanted.map_or(MAX_BLOCK_EXPONENT, CoapBlock::exponent);
    let number = wanted.map_or(0, CoapBlock::number);
    let first =
        CoapBlock::new(number, false, exponent).ok_or_else(|| CoapReply::empty(CoapCode::BAD_REQUEST))?;
    let offset = first.offset() as u64;
    if offset > 0 && offset >= length {
        return Err(CoapReply::empty(CoapCode::BAD_REQUEST));
    }
    let end = length.min(offset + first.size() as u64);
    if is_first {
        shared.allowances.begin(device.id, kind, length);
    } else if !shared
        .allowances
        .try_consume(device.id, kind, first.size() as u64)
    {
        admit()?;
        shared.allowances.begin(device.id, kind, length);
    }
    let read = downloads.range(&image, start + offset, start + end).await;
    let mut reply = CoapReply::octets(read.map_err(|error| store_failed(&error))?);
    let more = end < length;
    if more || wanted.is_some() {
        let total = u32::try_from(length).unwrap_or(u32::MAX);
        reply.resource_block = CoapBlock::new(number, more, exponent).map(|block| ResourceBlock {
            block,
            total,
            tag: tag(&image),
        });
    }
    Ok(reply)
}

/// The ETag, which distinguishes blocks of one package from those of another that is assigned in the middle of a
/// download.
fn tag(image: &OtaImage) -> [u8; 8] {
    let (_, random) = image.id.0.as_u64_pair();
    random.to_be_bytes()
}
