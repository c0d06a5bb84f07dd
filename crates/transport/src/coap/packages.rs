//! Firmware and software: each block is read off the store when it is asked for, so that nothing is kept for a device that
//! downloads.

use fieldline_codec::coap::{Block, Code, MAX_BLOCK_EXPONENT};
use fieldline_core::devices::DeviceHandle;
use fieldline_core::ota::{Image, Offer};
use fieldline_model::entity::OtaKind;

use super::reply::{Cut, Reply};
use super::request::Request;
use super::resources::store_failed;
use super::server::Shared;

/// Answers with the block that is asked for of the chunk that is asked for; without a size that is all there is.
pub(super) async fn download(
    shared: &Shared,
    device: &DeviceHandle,
    request: &Request,
    kind: OtaKind,
) -> Result<Reply, Reply> {
    let offer = shared.services.downloads.offer(device, kind).await;
    let Offer::Image(image) = offer.map_err(|error| store_failed(&error))? else {
        return Err(Reply::empty(Code::NOT_FOUND));
    };
    let is_meant = |name, value: &str| request.argument(name).is_none_or(|wanted| wanted == value);
    let number = |name| match request.argument(name).filter(|text| !text.is_empty()) {
        Some(text) => text.parse::<u32>().map_err(|_| Reply::empty(Code::BAD_REQUEST)),
        None => Ok(0),
    };
    let (size, chunk) = (number("size")?, number("chunk")?);
    if !is_meant("title", &image.title) || !is_meant("version", &image.version) {
        return Err(Reply::empty(Code::BAD_REQUEST));
    }
    let (start, length) = (u64::from(size) * u64::from(chunk), image.chunk_len(size, chunk));
    let wanted = request.block2;
    let exponent = wanted.map_or(MAX_BLOCK_EXPONENT, Block::exponent);
    let number = wanted.map_or(0, Block::number);
    let first = Block::new(number, false, exponent).ok_or_else(|| Reply::empty(Code::BAD_REQUEST))?;
    let offset = first.offset() as u64;
    if offset > 0 && offset >= length {
        return Err(Reply::empty(Code::BAD_REQUEST));
    }
    let end = length.min(offset + first.size() as u64);
    let downloads = &shared.services.downloads;
    let read = downloads.range(&image, start + offset, start + end).await;
    let mut reply = Reply::octets(read.map_err(|error| store_failed(&error))?);
    let more = end < length;
    if more || wanted.is_some() {
        let total = u32::try_from(length).unwrap_or(u32::MAX);
        reply.cut = Block::new(number, more, exponent).map(|block| Cut {
            block,
            total,
            tag: tag(&image),
        });
    }
    Ok(reply)
}

/// Tells blocks of one package from those of another, which may be assigned in the middle of a download.
fn tag(image: &Image) -> [u8; 8] {
    let (_, random) = image.id.0.as_u64_pair();
    random.to_be_bytes()
}
