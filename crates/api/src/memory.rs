//! Memory pools for requests, responses and WebSockets of API clients. Each tenant may use a part of each pool.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use axum::body::{Body, Bytes, HttpBody as _, to_bytes};
use axum::extract::Request;
use axum::http::{HeaderValue, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use fieldline_core::memory_pool::{ExhaustedLimit, MemoryPool, MemoryRefusal, MemoryShare};
use fieldline_core::options::ByteSize;
use fieldline_model::TenantId;
use futures::{Stream, StreamExt as _, stream};
use parking_lot::Mutex;

use crate::error::{ApiError, ErrorCode};
use crate::options::Options;

/// Parsing a body may take this many times its bytes.
pub(crate) const BODY_EXPANSION: usize = 6;
/// Memory of an upload of a package, bytes: its data is streamed to disk.
const UPLOAD_BYTES: usize = 4 << 20;
/// Responses up to this length are not counted, bytes: there are no more of them than connections.
const FREE_ANSWER: u64 = 64 << 10;
/// Size of the pieces in which a response is passed to its connection, bytes.
const ANSWER_PIECE: usize = 256 << 10;
/// Seconds after which a client may retry.
const RETRY_AFTER: HeaderValue = HeaderValue::from_static("1");

/// Size of the pool for public images.
pub const PUBLIC_MEMORY: ByteSize = ByteSize::mib(16);

/// The memory pools; see the module.
pub(crate) struct ApiMemory {
    /// Data read for responses, and responses in transit.
    pub(crate) answers: Arc<MemoryPool>,
    /// Images that are sent to whoever has their public link: such downloads shall not use up what a tenant's users need.
    pub(crate) public: Arc<MemoryPool>,
    /// Request bodies, and the data parsed from them.
    pub(crate) requests: Arc<MemoryPool>,
    /// Subscriptions of WebSockets, and updates not sent yet.
    pub(crate) sockets: Arc<MemoryPool>,
    /// Largest body of a request, bytes.
    max_body: usize,
}

impl ApiMemory {
    /// Creates the pools from the settings.
    pub(crate) fn new(options: &Options) -> Self {
        Self {
            answers: MemoryPool::new("api.answer-memory", options.answer_memory),
            public: MemoryPool::new("api.public-images", PUBLIC_MEMORY),
            requests: MemoryPool::new("api.request-memory", options.request_memory),
            sockets: MemoryPool::new("api.socket-memory", options.socket_memory),
            max_body: options.max_body.as_usize(),
        }
    }
}

impl From<MemoryRefusal> for ApiError {
    fn from(refusal: MemoryRefusal) -> Self {
        let status = match refusal.exhausted {
            ExhaustedLimit::Part => StatusCode::TOO_MANY_REQUESTS,
            ExhaustedLimit::Pool => StatusCode::SERVICE_UNAVAILABLE,
        };
        Self::with_status(status, ErrorCode::TooManyRequests, refusal.to_string())
    }
}

/// Adds `Retry-After` to a response that says there is no room now.
pub(crate) fn set_retry_after(response: &mut Response) {
    if response.status() == StatusCode::SERVICE_UNAVAILABLE {
        response
            .headers_mut()
            .entry(header::RETRY_AFTER)
            .or_insert(RETRY_AFTER);
    }
}

/// Memory of a request body, counted until its handler has ended.
pub(crate) struct BodyMemory {
    share: Mutex<MemoryShare>,
    /// Bytes of the body that still count: beyond the largest body the request is refused for its size, and the data is
    /// not kept.
    left: AtomicUsize,
    refused: OnceLock<MemoryRefusal>,
}

impl BodyMemory {
    fn count(&self, bytes: usize) -> Result<(), MemoryRefusal> {
        // Only one task reads a body, so relaxed ordering suffices.
        let left = self.left.load(Ordering::Relaxed);
        let counted = bytes.min(left);
        self.left.store(left - counted, Ordering::Relaxed);
        let grown = self.share.lock().grow(counted.saturating_mul(BODY_EXPANSION));
        if let Err(refusal) = grown {
            let _ = self.refused.set(refusal);
        }
        grown
    }
}

/// Serves a request and counts its body, as it arrives, and its response.
pub(crate) async fn serve_metered(
    memory: &ApiMemory,
    tenant: TenantId,
    is_upload: bool,
    request: Request,
    next: Next,
) -> Response {
    let (request, body) = match count_body(memory, tenant, is_upload, request) {
        Ok(counted) => counted,
        Err(refusal) => return ApiError::from(refusal).into_response(),
    };
    let response = next.run(request).await;
    // The handler saw only a body that broke off; the real cause is the refusal.
    if let Some(refusal) = body.and_then(|body| body.refused.get().copied()) {
        return ApiError::from(refusal).into_response();
    }
    count_answer(memory, tenant, response).await
}

/// Attaches memory to a stream that is sent while it is read; the memory is released at its end.
pub(crate) fn with_memory_share<T>(
    stream: impl Stream<Item = T> + Send + 'static,
    share: MemoryShare,
) -> impl Stream<Item = T> + Send + 'static {
    stream.map(move |item| {
        let _held = &share;
        item
    })
}

type MeteredRequest = (Request, Option<Arc<BodyMemory>>);

fn count_body(
    memory: &ApiMemory,
    tenant: TenantId,
    is_upload: bool,
    mut request: Request,
) -> Result<MeteredRequest, MemoryRefusal> {
    if request.body().is_end_stream() {
        return Ok((request, None));
    }
    let held = if is_upload { UPLOAD_BYTES } else { 0 };
    let body = Arc::new(BodyMemory {
        share: Mutex::new(memory.requests.take(tenant, held)?),
        left: AtomicUsize::new(memory.max_body),
        refused: OnceLock::new(),
    });
    request.extensions_mut().insert(Arc::clone(&body));
    if is_upload {
        return Ok((request, Some(body)));
    }
    let counting = Arc::clone(&body);
    let request = request.map(|data| {
        Body::from_stream(data.into_data_stream().map(move |data| {
            let data = data?;
            counting.count(data.len()).map_err(axum::Error::new)?;
            Ok::<Bytes, axum::Error>(data)
        }))
    });
    Ok((request, Some(body)))
}

/// Counts a complete response until the client has received it. A streamed response counts its memory itself.
async fn count_answer(memory: &ApiMemory, tenant: TenantId, response: Response) -> Response {
    let Some(length) = response.body().size_hint().exact() else {
        return response;
    };
    if length <= FREE_ANSWER {
        return response;
    }
    let bytes = usize::try_from(length).unwrap_or(usize::MAX);
    let share = match memory.answers.take(tenant, bytes) {
        Ok(share) => share,
        Err(refusal) => return ApiError::from(refusal).into_response(),
    };
    let (mut head, body) = response.into_parts();
    let Ok(text) = to_bytes(body, bytes).await else {
        return ApiError::new(ErrorCode::General, "The answer cannot be sent").into_response();
    };
    head.headers.insert(header::CONTENT_LENGTH, length.into());
    // The connection asks for the next piece after it has sent the previous one.
    let pieces = stream::unfold((text, share), |(mut left, share)| async move {
        let piece = left.split_to(left.len().min(ANSWER_PIECE));
        (!piece.is_empty()).then_some((Ok::<_, axum::Error>(piece), (left, share)))
    });
    Response::from_parts(head, Body::from_stream(pieces))
}

#[cfg(test)]
mod tests;
