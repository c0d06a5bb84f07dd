//! What a device is answered, and how that becomes a message.

use std::hash::Hasher as _;

use bytes::Bytes;
use fieldline_codec::coap::{Block, Code, Encoder, Kind, MAX_BLOCK_EXPONENT, OptionNumber, Token};
use rustc_hash::FxHasher;

use crate::payload::Format;

/// Number of JSON among content formats.
const JSON: u32 = 50;
/// Number of bytes among content formats.
const OCTETS: u32 = 42;
/// When a device may try again that was turned away for want of room, seconds.
const RETRY_S: u32 = 5;

/// Called once a reply was sent.
pub(super) type After = Box<dyn FnOnce() + Send>;

/// An answer to a request, or a notification.
pub(super) struct Reply {
    pub(super) code: Code,
    pub(super) body: Bytes,
    pub(super) format: Option<u32>,
    /// Number of a notification.
    pub(super) observe: Option<u32>,
    pub(super) block1: Option<Block>,
    pub(super) size1: Option<u32>,
    pub(super) cut: Option<Cut>,
    pub(super) after: Option<After>,
}

/// What is known of a body where the resource has cut it itself, and it is a single block.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cut {
    pub(super) block: Block,
    /// Bytes of the whole.
    pub(super) total: u32,
    pub(super) tag: [u8; 8],
}

impl Reply {
    /// Without a body.
    pub(super) const fn empty(code: Code) -> Self {
        Self {
            code,
            body: Bytes::new(),
            format: None,
            observe: None,
            block1: None,
            size1: None,
            cut: None,
            after: None,
        }
    }

    /// With a body that is written like this.
    pub(super) fn content(code: Code, body: impl Into<Bytes>, format: Format<'_>) -> Self {
        Self {
            body: body.into(),
            format: Some(match format {
                Format::Json => JSON,
                Format::Protobuf(_) | Format::Either(_) => OCTETS,
            }),
            ..Self::empty(code)
        }
    }

    /// With bytes.
    pub(super) fn octets(body: impl Into<Bytes>) -> Self {
        Self {
            body: body.into(),
            format: Some(OCTETS),
            ..Self::empty(Code::CONTENT)
        }
    }

    /// An error with words for whoever looks at it (RFC 7252 §5.5.2).
    pub(super) fn refusal(code: Code, why: impl Into<Bytes>) -> Self {
        Self {
            body: why.into(),
            ..Self::empty(code)
        }
    }

    /// The block of the body that is sent, and its option where there is more than one or one was asked for; `None` for a block
    /// beyond the end.
    pub(super) fn block(&self, wanted: Option<Block>) -> Option<(Bytes, Option<Block>)> {
        let exponent = wanted.map_or(MAX_BLOCK_EXPONENT, Block::exponent);
        let first = Block::new(wanted.map_or(0, Block::number), false, exponent)?;
        let (start, size) = (first.offset(), first.size());
        if start > 0 && start >= self.body.len() {
            return None;
        }
        let end = self.body.len().min(start + size);
        let more = end < self.body.len();
        let option = (more || wanted.is_some()).then_some(Block::new(first.number(), more, exponent)?);
        Some((self.body.slice(start..end), option))
    }

    /// The message, with the block of the body and its option.
    pub(super) fn encode(
        &self,
        (kind, id, token): (Kind, u16, Token),
        payload: &[u8],
        block2: Option<(Block, u32)>,
    ) -> Bytes {
        let mut encoder = Encoder::new(kind, self.code, id, token);
        match &self.cut {
            Some(cut) => encoder.option(OptionNumber::ETAG, &cut.tag),
            None if block2.is_some() => encoder.option(OptionNumber::ETAG, &self.etag()),
            None => {}
        }
        if let Some(number) = self.observe {
            encoder.option_uint(OptionNumber::OBSERVE, number);
        }
        if let Some(format) = self.format.filter(|_| !payload.is_empty()) {
            encoder.option_uint(OptionNumber::CONTENT_FORMAT, format);
        }
        if self.code == Code::SERVICE_UNAVAILABLE {
            encoder.option_uint(OptionNumber::MAX_AGE, RETRY_S);
        }
        if let Some((block, _)) = block2 {
            encoder.option_uint(OptionNumber::BLOCK2, block.encode());
        }
        if let Some(block) = self.block1 {
            encoder.option_uint(OptionNumber::BLOCK1, block.encode());
        }
        if let Some((_, size)) = block2 {
            encoder.option_uint(OptionNumber::SIZE2, size);
        }
        if let Some(size) = self.size1 {
            encoder.option_uint(OptionNumber::SIZE1, size);
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
