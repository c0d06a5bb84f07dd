//! The files of the user interface that are packed into the program.

use std::io::Read as _;

use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};

use crate::headers;

/// One file with the path under which it is served.
#[derive(Debug)]
pub(crate) struct PackedFile {
    pub(crate) path: &'static str,
    /// A quoted hash of the content.
    pub(crate) etag: &'static str,
    pub(crate) content: PackedContent,
}

/// The bytes of a file. Text is kept compressed only, and is inflated for the rare client that accepts neither form.
#[derive(Debug)]
pub(crate) enum PackedContent {
    Plain(&'static [u8]),
    Compressed {
        gzip: &'static [u8],
        brotli: Option<&'static [u8]>,
    },
}

/// All packed files, sorted by path; empty if the program was built without the user interface.
pub(crate) static FILES: &[PackedFile] = include!(concat!(env!("OUT_DIR"), "/packed.rs"));

/// Finds a file by its path, such as `/assets/index-1a2b.js`, among files that are sorted by path.
pub(crate) fn find(files: &'static [PackedFile], path: &str) -> Option<&'static PackedFile> {
    let place = files.binary_search_by(|file| file.path.cmp(path)).ok()?;
    files.get(place)
}

impl PackedFile {
    /// Answers a request with the file, or with 304 if the client has it.
    pub(crate) fn respond(&self, request: &HeaderMap) -> Response {
        let mut answer = if is_known(request, self.etag) {
            StatusCode::NOT_MODIFIED.into_response()
        } else {
            self.body(request)
        };
        let head = answer.headers_mut();
        head.insert(header::ETAG, HeaderValue::from_static(self.etag));
        head.insert(
            header::CACHE_CONTROL,
            HeaderValue::from_static(headers::cache_control(self.path)),
        );
        head.insert(header::VARY, HeaderValue::from_static("Accept-Encoding"));
        answer
    }

    fn body(&self, request: &HeaderMap) -> Response {
        let (encoding, bytes) = match self.content {
            PackedContent::Plain(bytes) => (None, Body::from(bytes)),
            PackedContent::Compressed {
                brotli: Some(brotli), ..
            } if accepts(request, "br") => (Some("br"), Body::from(brotli)),
            PackedContent::Compressed { gzip, .. } if accepts(request, "gzip") => {
                (Some("gzip"), Body::from(gzip))
            }
            PackedContent::Compressed { gzip, .. } => {
                let mut plain = Vec::new();
                if let Err(error) = flate2::read::GzDecoder::new(gzip).read_to_end(&mut plain) {
                    tracing::error!(path = self.path, %error, "a packed file is damaged");
                    return StatusCode::INTERNAL_SERVER_ERROR.into_response();
                }
                (None, Body::from(plain))
            }
        };
        let mut answer = bytes.into_response();
        let head = answer.headers_mut();
        head.insert(
            header::CONTENT_TYPE,
            HeaderValue::from_static(headers::content_type(self.path)),
        );
        if let Some(encoding) = encoding {
            head.insert(header::CONTENT_ENCODING, HeaderValue::from_static(encoding));
        }
        answer
    }
}

/// Whether the client names an entity tag in `If-None-Match`.
fn is_known(request: &HeaderMap, etag: &str) -> bool {
    let names = request.get_all(header::IF_NONE_MATCH).iter();
    names
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .any(|name| name.trim().trim_start_matches("W/") == etag)
}

/// Whether the client accepts an encoding. `q=0` refuses one; other weights do not matter for two forms of one text.
fn accepts(request: &HeaderMap, encoding: &str) -> bool {
    let names = request.get_all(header::ACCEPT_ENCODING).iter();
    names
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .any(|item| {
            let mut parts = item.split(';').map(str::trim);
            let named = parts
                .next()
                .is_some_and(|name| name.eq_ignore_ascii_case(encoding));
            named && !parts.any(|weight| matches!(weight, "q=0" | "q=0.0" | "q=0.00" | "q=0.000"))
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(name: header::HeaderName, value: &'static str) -> HeaderMap {
        HeaderMap::from_iter([(name, HeaderValue::from_static(value))])
    }

    #[test]
    fn an_encoding_is_accepted_unless_its_weight_is_zero() {
        assert!(accepts(&head(header::ACCEPT_ENCODING, "gzip, deflate, br"), "br"));
        assert!(accepts(&head(header::ACCEPT_ENCODING, "BR;q=0.5"), "br"));
        assert!(!accepts(&head(header::ACCEPT_ENCODING, "gzip, br;q=0"), "br"));
        assert!(!accepts(&HeaderMap::new(), "gzip"));
    }

    #[test]
    fn a_known_entity_tag_is_found_among_several() {
        let request = head(header::IF_NONE_MATCH, "\"a\", W/\"b\"");
        assert!(is_known(&request, "\"b\""));
        assert!(!is_known(&request, "\"c\""));
    }

    #[test]
    fn a_client_without_compression_gets_plain_text() {
        let gzip: &'static [u8] = &[
            0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3, 0x01, 2, 0, 0xfd, 0xff, b'h', b'i', 0xac, 0x2a, 0x93, 0xd8,
            2, 0, 0, 0,
        ];
        let file = PackedFile {
            path: "/a.txt",
            etag: "\"1\"",
            content: PackedContent::Compressed {
                gzip,
                brotli: Some(b"br"),
            },
        };
        let plain = file.respond(&HeaderMap::new());
        assert_eq!(plain.status(), StatusCode::OK);
        assert!(plain.headers().get(header::CONTENT_ENCODING).is_none());
        let packed = file.respond(&head(header::ACCEPT_ENCODING, "gzip"));
        assert_eq!(packed.headers()[header::CONTENT_ENCODING], "gzip");
        let known = file.respond(&head(header::IF_NONE_MATCH, "\"1\""));
        assert_eq!(known.status(), StatusCode::NOT_MODIFIED);
    }
}
