//! Upload and download of the data of OTA packages, piece by piece.

use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;

use axum::body::Body;
use axum::extract::{FromRequest as _, Multipart, Request};
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use fieldline_core::ports::OTA_PIECE;
use fieldline_devices::ota::OtaImage;
use fieldline_entities::services::UploadedFile;
use fieldline_model::entity::{ChecksumAlgorithm, OtaPackageInfo, UnknownOtaName};
use futures::stream::{self, StreamExt as _, TryStreamExt as _};
use serde::Deserialize;

use crate::error::{ApiError, ApiResult, ErrorCode};
use crate::memory;
use crate::state::ApiState;

/// Most bytes of a form before its file. More than one read of a connection, because the file may begin anywhere in
/// that.
const MAX_FORM_OVERHEAD: usize = 1 << 20;
/// Memory of a download, bytes: a piece as it is stored, as it is sent, and the one before it.
const DOWNLOAD_BYTES: usize = 4 * OTA_PIECE;
const TOO_LARGE: &str = "The form is too large before its part 'file'";

#[derive(Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(rename_all = "camelCase")]
pub(crate) struct OtaUploadParams {
    /// Expected checksum of the file; computed from it if absent.
    checksum: Option<String>,
    /// `MD5`, `SHA256`, `SHA384`, `SHA512`, `CRC32`, `MURMUR3_32` or `MURMUR3_128`.
    #[param(required = true, value_type = String)]
    checksum_algorithm: Option<String>,
}

/// Parses the name of a package type or of a checksum algorithm.
pub(crate) fn parse<T: FromStr<Err = UnknownOtaName>>(name: &str) -> ApiResult<T> {
    name.parse()
        .map_err(|error: UnknownOtaName| ApiError::bad_request(error.to_string()))
}

/// Stores the part `file` of a form as the data of a package.
pub(crate) async fn receive(
    api: &ApiState,
    package: OtaPackageInfo,
    params: OtaUploadParams,
    request: Request,
) -> ApiResult<OtaPackageInfo> {
    let algorithm = params.checksum_algorithm.as_deref().unwrap_or_default();
    if algorithm.is_empty() {
        return Err(crate::extract::missing("checksumAlgorithm"));
    }
    let algorithm: ChecksumAlgorithm = parse(algorithm)?;
    let head = Arc::new(FormPreamble::default());
    let request = bounded(request, head.clone());
    let mut form = Multipart::from_request(request, &()).await.map_err(|rejection| {
        let status = rejection.status();
        ApiError::with_status(status, ErrorCode::BadRequestParams, rejection.body_text())
    })?;
    let malformed = |error: axum::extract::multipart::MultipartError| {
        let status = error.status();
        ApiError::with_status(status, ErrorCode::BadRequestParams, error.body_text())
    };
    loop {
        let field = form
            .next_field()
            .await
            .map_err(|error| head.refusal().unwrap_or_else(|| malformed(error)));
        let Some(mut field) = field? else {
            return Err(ApiError::bad_request("Required part 'file' is not present."));
        };
        if field.name() != Some("file") {
            continue;
        }
        head.set_in_file(true);
        let file = UploadedFile {
            name: field.file_name().map(str::to_owned),
            content_type: field.content_type().map(str::to_owned),
            checksum: params.checksum,
        };
        let max = api.options.max_package.0;
        let mut upload = api.services.ota_packages.upload(package, algorithm, max).await?;
        loop {
            let written = match field.chunk().await {
                Ok(Some(data)) => upload.write(&data).await.map_err(ApiError::from),
                Ok(None) => return Ok(upload.finish(file).await?),
                Err(error) => Err(malformed(error)),
            };
            if let Err(error) = written {
                upload.abandon().await;
                return Err(error);
            }
        }
    }
}

/// State of the parts of a form beside its file.
#[derive(Default)]
pub(crate) struct FormPreamble {
    is_in_file: AtomicBool,
    is_too_large: AtomicBool,
}

impl FormPreamble {
    /// Says whether what comes is the file, which has a limit of its own.
    pub(crate) fn set_in_file(&self, is_in_file: bool) {
        self.is_in_file.store(is_in_file, Ordering::Relaxed);
    }

    /// The answer where the body was cut off because the other parts are too large.
    pub(crate) fn refusal(&self) -> Option<ApiError> {
        let status = StatusCode::PAYLOAD_TOO_LARGE;
        self.is_too_large
            .load(Ordering::Relaxed)
            .then(|| ApiError::with_status(status, ErrorCode::BadRequestParams, TOO_LARGE))
    }
}

/// Makes the body fail if the parts beside the file are larger than a form may have: the multipart reader buffers the
/// head of a part until it is complete. The body ends a moment after its last bytes, because the reader takes one that comes whole
/// between two looks for its first part for one without parts (<https://github.com/rwf2/multer/pull/70>).
pub(crate) fn bounded(request: Request, head: Arc<FormPreamble>) -> Request {
    let mut left = MAX_FORM_OVERHEAD;
    let mut has_waited = false;
    let later = stream::poll_fn(move |context| {
        if std::mem::replace(&mut has_waited, true) {
            return Poll::Ready(None);
        }
        context.waker().wake_by_ref();
        Poll::Pending
    });
    request.map(|body| {
        let bounded = body.into_data_stream().map(move |data| {
            let data = data?;
            if !head.is_in_file.load(Ordering::Relaxed) {
                left = left.checked_sub(data.len()).ok_or_else(|| {
                    head.is_too_large.store(true, Ordering::Relaxed);
                    axum::Error::new(TOO_LARGE)
                })?;
            }
            Ok::<_, axum::Error>(data)
        });
        Body::from_stream(bounded.chain(later))
    })
}

/// Returns the data of a package as a file, if it has any.
pub(crate) fn file(api: &ApiState, package: OtaPackageInfo) -> Option<Response> {
    let image = Arc::new(OtaImage::of(package)?);
    let share = match api.memory.answers.take(image.tenant, DOWNLOAD_BYTES) {
        Ok(share) => share,
        Err(refusal) => return Some(ApiError::from(refusal).into_response()),
    };
    let length = image.size;
    let data = api.downloads.clone().stream(image.clone(), 0, length);
    let data = memory::with_memory_share(data, share);
    let mut response = Body::from_stream(data).into_response();
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_LENGTH, length.into());
    let name = &image.file_name;
    let described = [
        (header::CONTENT_DISPOSITION, format!("attachment;filename={name}")),
        (HeaderName::from_static("x-filename"), name.clone()),
        (header::CONTENT_TYPE, image.content_type.clone()),
    ];
    for (header, text) in described {
        // A name that is not valid in a header is left out.
        if let Ok(value) = HeaderValue::from_bytes(text.as_bytes()) {
            headers.insert(header, value);
        }
    }
    Some(response)
}

/// Returns a package with its data as base64, encoded while it is read: pieces are multiples of three bytes.
pub(crate) fn whole(api: &ApiState, package: OtaPackageInfo) -> ApiResult<Response> {
    let mut head = serde_json::to_string(&package)
        .map_err(|error| ApiError::new(ErrorCode::General, error.to_string()))?;
    head.pop();
    let (head, tail, data) = match OtaImage::of(package) {
        Some(image) => {
            head.push_str(",\"data\":\"");
            let share = api.memory.answers.take(image.tenant, DOWNLOAD_BYTES)?;
            let length = image.size;
            let data = api.downloads.clone().stream(Arc::new(image), 0, length);
            let data = memory::with_memory_share(data, share);
            (head, "\"}", data.left_stream())
        }
        None => (head, ",\"data\":null}", stream::empty().right_stream()),
    };
    let once = |text: Bytes| stream::once(async move { Ok(text) });
    let data = data.map_ok(|piece| Bytes::from(STANDARD.encode(piece)));
    let body = once(head.into())
        .chain(data)
        .chain(once(Bytes::from_static(tail.as_bytes())));
    let kind = [(header::CONTENT_TYPE, "application/json")];
    Ok((kind, Body::from_stream(body)).into_response())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_form_that_comes_whole_between_two_looks_has_its_parts() {
        let form = "--x\r\ncontent-disposition: form-data; name=\"file\"\r\n\r\ndata\r\n--x--\r\n";
        let mut looks = 0;
        let body = stream::poll_fn(move |context| {
            looks += 1;
            match looks {
                1 => {
                    context.waker().wake_by_ref();
                    Poll::Pending
                }
                2 => Poll::Ready(Some(Ok::<_, axum::Error>(Bytes::from_static(form.as_bytes())))),
                _ => Poll::Ready(None),
            }
        });
        let request = Request::builder()
            .header(header::CONTENT_TYPE, "multipart/form-data; boundary=x")
            .body(Body::from_stream(body))
            .unwrap();
        let request = bounded(request, Arc::default());
        let mut form = Multipart::from_request(request, &()).await.unwrap();
        let field = form.next_field().await.unwrap().unwrap();
        assert_eq!(field.name(), Some("file"));
        assert_eq!(field.bytes().await.unwrap(), "data");
        assert!(form.next_field().await.unwrap().is_none());
    }
}
