//! What a device is answered, and how that becomes a message.

use std::hash::Hasher as _;

use bytes::Bytes;
use fieldline_codec::coap::{
    CoapBlock, CoapCode, CoapEncoder, CoapMessageType, CoapOptionNumber, CoapToken, MAX_BLOCK_EXPONENT,
};
use rustc_hash::FxHasher;

use crate::payload::PayloadFormat;

/// Number of JSON among content formats.
const JSON: u32 = 50;
/// Number of bytes among content formats.
const OCTETS: u32 = 42;
/// When a device may try again that was turned away for want of room, seconds.
const RETRY_S: u32 = 5;

/// Called once a reply was sent.
pub(super) type ReplyCallback = Box<dyn FnOnce() + Send>;

/// An answer to a request, or a notification.
pub(super) struct CoapReply {
    pub(super) code: CoapCode,
    pub(super) body: Bytes,
    pub(super) format: Option<u32>,
    /// Number of a notification.
    pub(super) observe: Option<u32>,
    pub(super) block1: Option<CoapBlock>,
    pub(super) size1: Option<u32>,
    pub(super) resource_block: Option<ResourceBlock>,
    pub(super) on_sent: Option<ReplyCallback>,
}

/// What is known of a body where the resource has cut it itself, and it is a single block.
#[derive(Debug, Clone, Copy)]
pub(super) struct ResourceBlock {
    pub(super) block: CoapBlock,
    /// Bytes of the whole.
    pub(super) total: u32,
    pub(super) tag: [u8; 8],
}

impl CoapReply {
    /// Without a body.
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

    /// With a body that is written like this.
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

    /// With bytes.
    pub(super) fn octets(body: impl Into<Bytes>) -> Self {
        Self {
            body: body.into(),
            format: Some(OCTETS),
            ..Self::empty(CoapCode::CONTENT)
        }
    }

    /// An error with words for whoever looks at it (RFC 7252 §5.5.2).
    pub(super) fn refusal(code: CoapCode, why: impl Into<Bytes>) -> Self {
        Self {
            body: why.into(),
            ..Self::empty(code)
        }
    }

    /// The block of the body that is sent, and its option where there is more than one or one was asked for; `None` for a block
    /// beyond the end.
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

    /// The message, with the block of the body and its option.
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

    /// Tells blocks of one body from those of another.
    fn etag(&self) -> [u8; 4] {
        let mut hasher = FxHasher::default();
        hasher.write(&self.body);
        let hash = hasher.finish();
        ((hash >> 32) as u32 ^ hash as u32).to_be_bytes()
    }
}
