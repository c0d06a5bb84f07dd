//! Reads the body of a post within its size limit, its deadline, and the memory there is for bodies.

use std::io;
use std::pin::Pin;

use axum::body::HttpBody;
use axum::extract::Request;
use axum::http::header::CONTENT_LENGTH;

use super::memory::BodyShare;
use super::{DeviceHttpLimits, HttpRefusal};

/// Reads the body of a request within its limits. A body whose announced length is too large is refused before it
/// arrives. Memory is reserved as the body arrives, not by its announced length, since a peer can announce any length.
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
            // Doubled while more is expected, so that not every frame copies all earlier ones.
            let capacity = (2 * bytes.capacity()).min(expected).max(length);
            share.grow(capacity)?;
            bytes.reserve_exact(capacity - bytes.len());
        }
        bytes.extend_from_slice(&data);
    }
    Ok(bytes)
}

/// Returns the reason why a body ended early: an I/O timeout set by the connection's server counts as too slow.
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
