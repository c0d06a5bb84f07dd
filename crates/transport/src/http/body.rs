//! Reading the body of a post: within its limit, its time, and the memory that there is for bodies.

use std::io;
use std::pin::Pin;

use axum::body::HttpBody;
use axum::extract::Request;
use axum::http::header::CONTENT_LENGTH;

use super::memory::BodyShare;
use super::{DeviceHttpLimits, HttpRefusal};

/// Reads the body of a request within its limits. One that is too large is refused by its announced length,
/// before it arrives; memory is taken as it arrives, for a length is easily announced.
pub(super) async fn read(
    request: Request,
    limits: DeviceHttpLimits,
    share: &mut BodyShare,
) -> Result<Vec<u8>, HttpRefusal> {
    let max_body = limits.max_body;
    // Layers around the body do not pass its size hint on.
    let announced = request.headers().get(CONTENT_LENGTH).map(|length| {
        length
            .to_str()
            .ok()
            .and_then(|text| text.parse().ok())
            .unwrap_or(usize::MAX)
    });
    if announced.is_some_and(|announced| announced > max_body) {
        return Err(HttpRefusal::TooLarge);
    }
    let expected = announced.unwrap_or(max_body);
    tokio::time::timeout(limits.body_deadline, receive(request, max_body, expected, share))
        .await
        .unwrap_or(Err(HttpRefusal::TooSlow))
}

async fn receive(
    request: Request,
    max_body: usize,
    expected: usize,
    share: &mut BodyShare,
) -> Result<Vec<u8>, HttpRefusal> {
    let mut body = request.into_body();
    let mut bytes = Vec::new();
    while let Some(frame) = std::future::poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await {
        let Ok(data) = frame.map_err(|error| cut_short(&error))?.into_data() else {
            continue;
        };
        let length = bytes.len() + data.len();
        if length > max_body {
            return Err(HttpRefusal::TooLarge);
        }
        if length > bytes.capacity() {
            // Doubled as long as more is expected, so that not every frame copies all that came before.
            let capacity = (2 * bytes.capacity()).min(expected).max(length);
            share.grow(capacity)?;
            bytes.reserve_exact(capacity - bytes.len());
        }
        bytes.extend_from_slice(&data);
    }
    Ok(bytes)
}

/// Why a body ended early: whoever serves the connection may have lost patience before.
fn cut_short(error: &(dyn std::error::Error + 'static)) -> HttpRefusal {
    let mut causes = std::iter::successors(Some(error), |error| error.source());
    let is_late = causes.any(|cause| {
        cause
            .downcast_ref::<io::Error>()
            .is_some_and(|error| error.kind() == io::ErrorKind::TimedOut)
    });
    if is_late {
        HttpRefusal::TooSlow
    } else {
        HttpRefusal::Disconnected
    }
}
