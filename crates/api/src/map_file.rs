//! The map that the operator provides: a PMTiles archive, of which clients ask for one range of bytes after the other.

use std::fs::{self, Metadata};
use std::io::{self, Read as _, SeekFrom};
use std::ops::Range;
use std::path::Path;
use std::time::UNIX_EPOCH;

use axum::body::Body;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use bytes::{Bytes, BytesMut};
use chrono::{DateTime, Utc};
use fieldline_core::logging::LogGate;
use fieldline_model::TenantId;
use futures::stream;
use tokio::fs::File;
use tokio::io::{AsyncReadExt as _, AsyncSeekExt as _};
use tracing::warn;

use crate::error::{ApiError, ApiResult, ErrorCode};
use crate::memory;
use crate::state::ApiState;

/// Most bytes of the file that are read at a time.
const PIECE: usize = 64 << 10;
/// Memory of an answer, bytes: a piece that is read, one that is sent, and the reader's own.
const ANSWER_BYTES: usize = 3 * PIECE;
/// Length of the fixed part at the beginning of an archive.
const HEADER: usize = 127;
const MAGIC: &[u8] = b"PMTiles\x03";
/// Where the header says how the directories and the tiles are compressed, and what kind of tiles they are.
const COMPRESSIONS: Range<usize> = 97..99;
const TILE_TYPE: usize = 99;
/// Unknown, none, gzip: what comes after them is unknown to browsers.
const LAST_READABLE_COMPRESSION: u8 = 2;
const VECTORS: u8 = 1;

static UNREADABLE_GATE: LogGate = LogGate::new(1);

/// Describes why a file cannot be the map, if it cannot.
pub fn map_file_problem(path: &Path) -> Option<String> {
    let shown = path.display();
    match read_header(path) {
        Err(error) => Some(format!("cannot read {shown}: {error}")),
        Ok(header) => flaw(&header).map(|flaw| format!("{shown} {flaw}")),
    }
}

fn read_header(path: &Path) -> io::Result<Vec<u8>> {
    // To open a pipe would wait for its writer.
    if !fs::metadata(path)?.is_file() {
        return Err(io::Error::other("it is not a file"));
    }
    let mut header = Vec::with_capacity(HEADER);
    fs::File::open(path)?
        .take(HEADER as u64)
        .read_to_end(&mut header)?;
    Ok(header)
}

/// Says what the user interface could not draw.
fn flaw(header: &[u8]) -> Option<&'static str> {
    if header.len() < HEADER || !header.starts_with(MAGIC) {
        return Some("is no PMTiles archive of version 3");
    }
    if header[TILE_TYPE] != VECTORS {
        return Some("has no vector tiles (MVT)");
    }
    if header[COMPRESSIONS]
        .iter()
        .any(|method| *method > LAST_READABLE_COMPRESSION)
    {
        return Some("must be compressed by gzip or not at all, browsers know no other method");
    }
    None
}

/// Answers with the range of the map that the client asks for, or with all of it. It is read while it is sent.
pub(crate) async fn send(
    api: &ApiState,
    tenant: TenantId,
    method: &Method,
    request: &HeaderMap,
) -> ApiResult<Response> {
    let path = api
        .map_file
        .as_deref()
        .ok_or_else(|| ApiError::not_found("This server has no map"))?;
    // Opened anew each time: another file may have taken its place.
    let (mut file, metadata) = match open(path).await {
        Ok(opened) => opened,
        Err(error) => {
            log_unreadable(path, &error);
            return Err(ApiError::not_found("The map cannot be read"));
        }
    };
    let version = FileVersion::of(&metadata);
    let mut headers = version.headers();
    if version.is_known(request) {
        return Ok((StatusCode::NOT_MODIFIED, headers).into_response());
    }
    let size = metadata.len();
    let wanted = match version.range(method, request) {
        Some(text) => wanted(text, size),
        None => Wanted::Whole,
    };
    let (status, range) = match wanted {
        Wanted::Whole => (StatusCode::OK, 0..size),
        Wanted::Part(range) => {
            let shown = format!("bytes {}-{}/{size}", range.start, range.end - 1);
            set(&mut headers, header::CONTENT_RANGE, &shown);
            (StatusCode::PARTIAL_CONTENT, range)
        }
        Wanted::Nothing => {
            let error = ApiError::with_status(
                StatusCode::RANGE_NOT_SATISFIABLE,
                ErrorCode::BadRequestParams,
                format!("The map has {size} bytes"),
            );
            let mut refused = error.into_response();
            set(
                refused.headers_mut(),
                header::CONTENT_RANGE,
                &format!("bytes */{size}"),
            );
            return Ok(refused);
        }
    };
    let length = range.end - range.start;
    headers.insert(header::CONTENT_LENGTH, length.into());
    if method == Method::HEAD {
        return Ok((status, headers).into_response());
    }
    let share = api.memory.answers.take(tenant, ANSWER_BYTES)?;
    if let Err(error) = file.seek(SeekFrom::Start(range.start)).await {
        log_unreadable(path, &error);
        return Err(ApiError::new(ErrorCode::General, "The map cannot be read"));
    }
    let pieces = stream::try_unfold((file, length), next_piece);
    let body = Body::from_stream(memory::with_memory_share(pieces, share));
    Ok((status, headers, body).into_response())
}

fn log_unreadable(path: &Path, error: &io::Error) {
    if let Some(suppressed) = UNREADABLE_GATE.open() {
        warn!(path = %path.display(), %error, suppressed, "cannot read the map");
    }
}

async fn open(path: &Path) -> io::Result<(File, Metadata)> {
    let file = File::open(path).await?;
    let metadata = file.metadata().await?;
    Ok((file, metadata))
}

type Unread = (File, u64);

/// Reads the next piece of what is left.
async fn next_piece((mut file, left): Unread) -> io::Result<Option<(Bytes, Unread)>> {
    if left == 0 {
        return Ok(None);
    }
    let wanted = usize::try_from(left).unwrap_or(PIECE).min(PIECE);
    let mut piece = BytesMut::zeroed(wanted);
    let read = file.read(&mut piece[..]).await?;
    if read == 0 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    piece.truncate(read);
    Ok(Some((piece.freeze(), (file, left - read as u64))))
}

fn set(headers: &mut HeaderMap, name: HeaderName, text: &str) {
    if let Ok(value) = HeaderValue::from_str(text) {
        headers.insert(name, value);
    }
}

/// What tells a file from the one that was in its place before.
struct FileVersion {
    etag: String,
    modified: Option<String>,
}

impl FileVersion {
    fn of(metadata: &Metadata) -> Self {
        let modified = metadata.modified().ok();
        let nanos = modified
            .and_then(|time| time.duration_since(UNIX_EPOCH).ok())
            .map_or(0, |age| age.as_nanos());
        Self {
            etag: format!("\"{nanos:x}-{:x}\"", metadata.len()),
            modified: modified.map(|time| {
                let time: DateTime<Utc> = time.into();
                time.format("%a, %d %b %Y %H:%M:%S GMT").to_string()
            }),
        }
    }

    fn headers(&self) -> HeaderMap {
        let mut headers = HeaderMap::new();
        set(&mut headers, header::ETAG, &self.etag);
        if let Some(modified) = &self.modified {
            set(&mut headers, header::LAST_MODIFIED, modified);
        }
        set(&mut headers, header::ACCEPT_RANGES, "bytes");
        set(&mut headers, header::CACHE_CONTROL, "private, no-cache");
        set(&mut headers, header::CONTENT_TYPE, "application/vnd.pmtiles");
        set(
            &mut headers,
            header::CONTENT_SECURITY_POLICY,
            "default-src 'none'",
        );
        set(&mut headers, header::X_CONTENT_TYPE_OPTIONS, "nosniff");
        headers
    }

    /// Whether the client says that it has this version.
    fn is_known(&self, request: &HeaderMap) -> bool {
        match text(request, header::IF_NONE_MATCH) {
            Some(tags) => tags.split(',').any(|tag| {
                let tag = tag.trim();
                tag == "*" || tag.strip_prefix("W/").unwrap_or(tag) == self.etag
            }),
            None => {
                let since = text(request, header::IF_MODIFIED_SINCE);
                since.is_some() && since == self.modified.as_deref()
            }
        }
    }

    /// The range that counts: only of GET, and only of this version if the client names one.
    fn range<'a>(&self, method: &Method, request: &'a HeaderMap) -> Option<&'a str> {
        let version = text(request, header::IF_RANGE);
        let is_of_this = version.is_none_or(|version| {
            version == self.etag || self.modified.as_deref().is_some_and(|time| time == version)
        });
        text(request, header::RANGE).filter(|_| method == Method::GET && is_of_this)
    }
}

fn text(request: &HeaderMap, name: HeaderName) -> Option<&str> {
    request.get(name)?.to_str().ok()
}

/// What a client asks for of a file.
#[derive(Debug, PartialEq, Eq)]
enum Wanted {
    Whole,
    /// These bytes, at least one.
    Part(Range<u64>),
    /// Bytes behind the end.
    Nothing,
}

/// Reads the header `Range`. What is not one range of bytes is not followed, as HTTP permits.
fn wanted(range: &str, size: u64) -> Wanted {
    let ends = range
        .trim()
        .strip_prefix("bytes=")
        .and_then(|range| range.split_once('-'));
    let Some((from, to)) = ends else {
        return Wanted::Whole;
    };
    let (first, end) = match (number(from), number(to)) {
        (Some(first), Some(last)) if first <= last => (first, last.saturating_add(1).min(size)),
        (Some(first), None) if to.trim().is_empty() => (first, size),
        (None, Some(count)) if from.trim().is_empty() => (size.saturating_sub(count), size),
        _ => return Wanted::Whole,
    };
    if first < end {
        Wanted::Part(first..end)
    } else {
        Wanted::Nothing
    }
}

fn number(text: &str) -> Option<u64> {
    let text = text.trim();
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| text.parse().unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn archive() -> Vec<u8> {
        let mut header = MAGIC.to_vec();
        header.resize(HEADER, 0);
        header[COMPRESSIONS].fill(LAST_READABLE_COMPRESSION);
        header[TILE_TYPE] = VECTORS;
        header
    }

    #[test]
    fn ranges_are_cut_to_the_file() {
        for (range, expected) in [
            ("bytes=0-0", Wanted::Part(0..1)),
            ("bytes=0-16383", Wanted::Part(0..100)),
            ("bytes=10-19", Wanted::Part(10..20)),
            ("bytes=99-", Wanted::Part(99..100)),
            ("bytes=-10", Wanted::Part(90..100)),
            ("bytes=-1000", Wanted::Part(0..100)),
            ("bytes=0-99999999999999999999999", Wanted::Part(0..100)),
            ("bytes=0-18446744073709551615", Wanted::Part(0..100)),
            ("bytes=100-", Wanted::Nothing),
            ("bytes=100-200", Wanted::Nothing),
            ("bytes=99999999999999999999999-", Wanted::Nothing),
            ("bytes=-0", Wanted::Nothing),
        ] {
            assert_eq!(wanted(range, 100), expected, "{range}");
        }
        assert_eq!(wanted("bytes=0-", 0), Wanted::Nothing);
    }

    #[test]
    fn what_is_not_one_range_of_bytes_is_not_followed() {
        for range in [
            "",
            "bytes",
            "bytes=",
            "bytes=-",
            "bytes=a-b",
            "bytes=5-1",
            "bytes=+1-2",
            "bytes=0-1,3-4",
            "bytes=0--1",
            "lines=0-1",
        ] {
            assert_eq!(wanted(range, 100), Wanted::Whole, "{range}");
        }
    }

    #[test]
    fn only_an_archive_that_can_be_drawn_is_taken() {
        assert_eq!(flaw(&archive()), None);
        let changed = |at: usize, byte: u8| {
            let mut header = archive();
            header[at] = byte;
            header
        };
        for (header, named) in [
            (Vec::new(), "version 3"),
            (archive()[..HEADER - 1].to_vec(), "version 3"),
            (changed(0, b'p'), "version 3"),
            (changed(7, 2), "version 3"),
            (changed(TILE_TYPE, 2), "vector tiles"),
            (changed(COMPRESSIONS.start, 3), "gzip"),
            (changed(COMPRESSIONS.end - 1, 4), "gzip"),
        ] {
            let flaw = flaw(&header).unwrap_or_default();
            assert!(flaw.contains(named), "{named}: {flaw}");
        }
    }

    #[test]
    fn a_file_that_cannot_be_the_map_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let absent = folder.path().join("absent.pmtiles");
        let problem = map_file_problem(&absent).unwrap_or_default();
        assert!(
            problem.contains("cannot read") && problem.contains("absent.pmtiles"),
            "{problem}"
        );
        let problem = map_file_problem(folder.path()).unwrap_or_default();
        assert!(problem.contains("it is not a file"), "{problem}");
        let whole = folder.path().join("map.pmtiles");
        fs::write(&whole, archive()).unwrap();
        assert_eq!(map_file_problem(&whole), None);
    }

    #[test]
    fn a_version_is_known_by_its_tag_or_its_time() {
        let version = FileVersion {
            etag: "\"a-1\"".to_owned(),
            modified: Some("Sun, 06 Nov 1994 08:49:37 GMT".to_owned()),
        };
        let asked = |name: HeaderName, value: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(name, HeaderValue::from_static(value));
            headers
        };
        assert!(version.is_known(&asked(header::IF_NONE_MATCH, "\"b\", W/\"a-1\"")));
        assert!(!version.is_known(&asked(header::IF_NONE_MATCH, "\"b\"")));
        assert!(version.is_known(&asked(header::IF_MODIFIED_SINCE, "Sun, 06 Nov 1994 08:49:37 GMT")));
        assert!(!version.is_known(&HeaderMap::new()));

        let mut request = asked(header::RANGE, "bytes=0-1");
        assert_eq!(version.range(&Method::GET, &request), Some("bytes=0-1"));
        assert_eq!(version.range(&Method::HEAD, &request), None);
        request.insert(header::IF_RANGE, HeaderValue::from_static("\"a-1\""));
        assert_eq!(version.range(&Method::GET, &request), Some("bytes=0-1"));
        request.insert(header::IF_RANGE, HeaderValue::from_static("\"b\""));
        assert_eq!(version.range(&Method::GET, &request), None);
    }
}
