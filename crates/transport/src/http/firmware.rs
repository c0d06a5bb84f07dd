//! Downloads of the OTA package assigned to a device.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Path, Query, State};
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use fieldline_devices::ota::OtaOffer;
use fieldline_model::entity::OtaKind;
use serde::Deserialize;

use super::{HttpClientAddress, HttpRefusal, HttpShared, store_failed};

#[derive(Deserialize)]
pub(super) struct PackageChunkQuery {
    title: String,
    version: String,
    /// Bytes per chunk; 0 for the whole package.
    #[serde(default)]
    size: i32,
    #[serde(default)]
    chunk: i32,
}

pub(super) async fn firmware(
    State(shared): State<Arc<HttpShared>>,
    Path(token): Path<String>,
    Query(wanted): Query<PackageChunkQuery>,
    peer: HttpClientAddress,
) -> Result<Response, HttpRefusal> {
    shared.download((&token, peer), &wanted, OtaKind::Firmware).await
}

pub(super) async fn software(
    State(shared): State<Arc<HttpShared>>,
    Path(token): Path<String>,
    Query(wanted): Query<PackageChunkQuery>,
    peer: HttpClientAddress,
) -> Result<Response, HttpRefusal> {
    shared.download((&token, peer), &wanted, OtaKind::Software).await
}

impl HttpShared {
    async fn download(
        &self,
        (token, peer): (&str, HttpClientAddress),
        wanted: &PackageChunkQuery,
        kind: OtaKind,
    ) -> Result<Response, HttpRefusal> {
        let device = self.admit_device(token, peer).await?;
        let downloads = &self.services.downloads;
        let offer = downloads.offer(&device, kind).await;
        let OtaOffer::Image(image) = offer.map_err(|error| store_failed(&error))? else {
            return Ok(StatusCode::NOT_FOUND.into_response());
        };
        let is_that = image.title == wanted.title && image.version == wanted.version;
        let (Ok(size), Ok(number), true) = (u32::try_from(wanted.size), u32::try_from(wanted.chunk), is_that)
        else {
            return Ok(StatusCode::BAD_REQUEST.into_response());
        };
        let length = image.chunk_len(size, number);
        let name = image.file_name.clone();
        let content_type = image.content_type.clone();
        // A chunk of any size is streamed in small pieces.
        let start = u64::from(size) * u64::from(number);
        let body = Body::from_stream(downloads.clone().stream(image, start, length));
        let mut response = body.into_response();
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_LENGTH, length.into());
        let value = |text: &str| HeaderValue::from_bytes(text.as_bytes()).ok();
        let described = [
            (
                header::CONTENT_DISPOSITION,
                value(&format!("attachment;filename={name}")),
            ),
            (HeaderName::from_static("x-filename"), value(&name)),
            (header::CONTENT_TYPE, value(&content_type)),
        ];
        for (header, value) in described {
            if let Some(value) = value {
                headers.insert(header, value);
            }
        }
        Ok(response)
    }
}
