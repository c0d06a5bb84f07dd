//! Answers that are sent compressed to those who accept it.

use std::io::{Read as _, Write as _};

use axum::http::{HeaderMap, header};
use bytes::Bytes;
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;

/// Whether the client accepts gzip.
pub(crate) fn takes_gzip(request: &HeaderMap) -> bool {
    let accepted = request
        .get(header::ACCEPT_ENCODING)
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default();
    accepted.split(',').any(|coding| {
        let mut parts = coding.split(';').map(str::trim);
        parts.next() == Some("gzip") && !parts.any(|weight| matches!(weight, "q=0" | "q=0.0"))
    })
}

/// Compresses quickly, for data that is sent once.
pub(crate) fn gzip(data: &[u8]) -> Option<Bytes> {
    pack(data, Compression::fast())
}

/// Compresses well, for data that is kept.
pub(crate) fn gzip_small(data: &[u8]) -> Option<Bytes> {
    pack(data, Compression::best())
}

fn pack(data: &[u8], level: Compression) -> Option<Bytes> {
    let mut packer = GzEncoder::new(Vec::with_capacity(data.len() / 3), level);
    packer.write_all(data).ok()?;
    packer.finish().ok().map(Bytes::from)
}

/// Inflates what `gzip_small` made.
pub(crate) fn inflate(packed: &[u8]) -> Option<Bytes> {
    let mut plain = Vec::new();
    GzDecoder::new(packed).read_to_end(&mut plain).ok()?;
    Some(plain.into())
}
