//! Replies to a device, and their encoding.

use std::hash::Hasher as _;

use bytes::Bytes;
use fieldline_codec::coap::{
    CoapBlock, CoapCode, CoapEncoder, CoapMessageType, CoapOptionNumber, CoapToken, MAX_BLOCK_EXPONENT,
};
use rustc_hash::FxHasher;

use crate::payload::PayloadFormat;

/// Content format of JSON.
const JSON: u32 = 50;
/// Content format of bytes.
const OCTETS: u32 = 42;
/// Time after which a device that was refused with 5.03 may retry, seconds.
const RETRY_S: u32 = 5;

/// Called after a reply was sent.
pub(super) type ReplyCallback = Box<dyn FnOnce() + Send>;

/// A response to a request, or a notification.
pub(super) struct CoapReply {
    pub(super) code: CoapCode,
    pub(super) body: Bytes,
    pub(super) format: Option<u32>,
    /// Sequence number of a notification.
    pub(super) observe: Option<u32>,
    pub(super) block1: Option<CoapBlock>,
    pub(super) size1: Option<u32>,
    pub(super) resource_block: Option<ResourceBlock>,
    pub(super) on_sent: Option<ReplyCallback>,
}

/// The block option of a body that is a single block, cut by the resource itself.
#[derive(Debug, Clone, Copy)]
pub(super) struct ResourceBlock {
    pub(super) block: CoapBlock,
    /// Size of the whole body, bytes.
    pub(super) total: u32,
    pub(super) tag: [u8; 8],
}

impl CoapReply {
    /// A reply without a body.
    pub(super) const fn empty(code: CoapCode) -> Self {
        Self {
            code,
            body: Bytes::new(),
            format: None,
            observe: None,
            block1: None,
            size1: None,
            resource_block: None,
            on_sent: None,
        }
    }

    /// A reply with a body in this format.
    pub(super) fn content(code: CoapCode, body: impl Into<Bytes>, format: PayloadFormat<'_>) -> Self {
        Self {
            body: body.into(),
            format: Some(match format {
                PayloadFormat::Json => JSON,
                PayloadFormat::Protobuf(_) | PayloadFormat::Either(_) => OCTETS,
            }),
            ..Self::empty(code)
        }
    }

    /// A reply with bytes.
    pub(super) fn octets(body: impl Into<Bytes>) -> Self {
        Self {
            body: body.into(),
            format: Some(OCTETS),
            ..Self::empty(CoapCode::CONTENT)
        }
    }

    /// An error with a diagnostic message (RFC 7252 §5.5.2).
    pub(super) fn refusal(code: CoapCode, why: impl Into<Bytes>) -> Self {
        Self {
            body: why.into(),
            ..Self::empty(code)
        }
    }

    /// Returns the block of the body to send, and its option if the body has several blocks or a block was requested;
    /// `None` for a block beyond the end.
    pub(super) fn block(&self, wanted: Option<CoapBlock>) -> Option<(Bytes, Option<CoapBlock>)> {
        let exponent = wanted.map_or(MAX_BLOCK_EXPONENT, CoapBlock::exponent);
        let first = CoapBlock::new(wanted.map_or(0, CoapBlock::number), false, exponent)?;
        let (start, size) = (first.offset(), first.size());
        if start > 0 && start >= self.body.len() {
            return None;
        }
        let end = self.body.len().min(start + size);
        let more = end < self.body.len();
        let option = (more || wanted.is_some()).then_some(CoapBlock::new(first.number(), more, exponent)?);
        Some((self.body.slice(start..end), option))
    }

    /// Encodes the message, with the block of the body and its option.
    pub(super) fn encode(
        &self,
        (kind, id, token): (CoapMessageType, u16, CoapToken),
        payload: &[u8],
        block2: Option<(CoapBlock, u32)>,
    ) -> Bytes {
        let mut encoder = CoapEncoder::new(kind, self.code, id, token);
        match &self.resource_block {
            Some(cut) => encoder.option(CoapOptionNumber::ETAG, &cut.tag),
            None if block2.is_some() => encoder.option(CoapOptionNumber::ETAG, &self.etag()),
            None => {}
        }
        if let Some(number) = self.observe {
            encoder.option_uint(CoapOptionNumber::OBSERVE, number);
        }
        if let Some(format) = self.format.filter(|_| !payload.is_empty()) {
            encoder.option_uint(CoapOptionNumber::CONTENT_FORMAT, format);
        }
        if self.code == CoapCode::SERVICE_UNAVAILABLE {
            encoder.option_uint(CoapOptionNumber::MAX_AGE, RETRY_S);
        }
        if let Some((block, _)) = block2 {
            encoder.option_uint(CoapOptionNumber::BLOCK2, block.encode());
        }
        if let Some(block) = self.block1 {
            encoder.option_uint(CoapOptionNumber::BLOCK1, block.encode());
        }
        if let Some((_, size)) = block2 {
            encoder.option_uint(CoapOptionNumber::SIZE2, size);
        }
        if let Some(size) = self.size1 {
            encoder.option_uint(CoapOptionNumber::SIZE1, size);
        }
        encoder.finish(payload).into()
    }

    /// The ETag, which distinguishes blocks of one body from those of another.
    fn etag(&self) -> [u8; 4] {
        let mut hasher = FxHasher::default();
        hasher.write(&self.body);
        let hash = hasher.finish();
        ((hash >> 32) as u32 ^ hash as u32).to_be_bytes()
    }
}
