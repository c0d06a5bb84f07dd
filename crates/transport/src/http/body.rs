//! Reading bodies in bounded memory: each has its limit, and all that are being read share a budget.

use std::sync::Arc;

use axum::body::HttpBody;
use axum::extract::Request;
use axum::http::header::CONTENT_LENGTH;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::{Limits, Refusal};

/// Unit in which memory is taken from the budget.
const UNIT: usize = 16 << 10;

pub(super) struct BodyBudget {
    max_body: usize,
    units: Arc<Semaphore>,
}

/// A whole body, with its share of the budget.
pub(super) struct ReadBody {
    bytes: Vec<u8>,
    _share: Option<OwnedSemaphorePermit>,
}

impl ReadBody {
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

impl BodyBudget {
    pub(super) fn new(limits: Limits) -> Self {
        let units = (limits.body_memory / UNIT).clamp(1, Semaphore::MAX_PERMITS);
        Self {
            max_body: limits.max_body,
            units: Arc::new(Semaphore::new(units)),
        }
    }

    /// Reads the body of a request. What is too large is refused by its announced length, before it arrives.
    pub(super) async fn read(&self, request: Request) -> Result<ReadBody, Refusal> {
        // Layers around the body do not pass its size hint on.
        let announced = match request.headers().get(CONTENT_LENGTH) {
            Some(length) => length
                .to_str()
                .ok()
                .and_then(|text| text.parse().ok())
                .unwrap_or(usize::MAX),
            None => 0,
        };
        if announced > self.max_body {
            return Err(Refusal::TooLarge);
        }
        let mut body = request.into_body();
        let mut share = None;
        self.grow(&mut share, announced)?;
        let mut bytes = Vec::with_capacity(announced);
        while let Some(frame) =
            std::future::poll_fn(|context| std::pin::Pin::new(&mut body).poll_frame(context)).await
        {
            let Ok(data) = frame.map_err(|_| Refusal::Disconnected)?.into_data() else {
                continue;
            };
            if bytes.len() + data.len() > self.max_body {
                return Err(Refusal::TooLarge);
            }
            self.grow(&mut share, bytes.len() + data.len())?;
            bytes.extend_from_slice(&data);
        }
        Ok(ReadBody { bytes, _share: share })
    }

    /// Takes memory so that `share` covers `bytes`. Waiting here could wait for ever, as others hold shares and wait too.
    fn grow(&self, share: &mut Option<OwnedSemaphorePermit>, bytes: usize) -> Result<(), Refusal> {
        let held = share.as_ref().map_or(0, OwnedSemaphorePermit::num_permits);
        let wanted = bytes.div_ceil(UNIT).saturating_sub(held);
        if wanted == 0 {
            return Ok(());
        }
        let count = u32::try_from(wanted).map_err(|_| Refusal::TooLarge)?;
        let more = self
            .units
            .clone()
            .try_acquire_many_owned(count)
            .map_err(|_| Refusal::Overloaded)?;
        match share {
            Some(held) => held.merge(more),
            None => *share = Some(more),
        }
        Ok(())
    }
}
