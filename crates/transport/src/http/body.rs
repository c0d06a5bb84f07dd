//! Reading the body of a post: within its limit, its time, and the memory that there is for bodies.

use std::pin::Pin;
use std::time::Duration;

use axum::body::HttpBody;
use axum::extract::Request;
use axum::http::header::CONTENT_LENGTH;

use super::Refusal;
use super::memory::BodyShare;

/// Longest time that a whole body may take to arrive; a peer must not hold its memory for longer.
const DEADLINE: Duration = Duration::from_secs(120);

/// Reads the body of a request of at most `max_body` bytes. One that is too large is refused by its announced length,
/// before it arrives; memory is taken as it arrives, for a length is easily announced.
pub(super) async fn read(
    request: Request,
    max_body: usize,
    share: &mut BodyShare,
) -> Result<Vec<u8>, Refusal> {
    // Layers around the body do not pass its size hint on.
    let announced = request.headers().get(CONTENT_LENGTH).map(|length| {
        length
            .to_str()
            .ok()
            .and_then(|text| text.parse().ok())
            .unwrap_or(usize::MAX)
    });
    if announced.is_some_and(|announced| announced > max_body) {
        return Err(Refusal::TooLarge);
    }
    let expected = announced.unwrap_or(max_body);
    tokio::time::timeout(DEADLINE, receive(request, max_body, expected, share))
        .await
        .unwrap_or(Err(Refusal::TooSlow))
}

async fn receive(
    request: Request,
    max_body: usize,
    expected: usize,
    share: &mut BodyShare,
) -> Result<Vec<u8>, Refusal> {
    let mut body = request.into_body();
    let mut bytes = Vec::new();
    while let Some(frame) = std::future::poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await {
        let Ok(data) = frame.map_err(|_| Refusal::Disconnected)?.into_data() else {
            continue;
        };
        let length = bytes.len() + data.len();
        if length > max_body {
            return Err(Refusal::TooLarge);
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
