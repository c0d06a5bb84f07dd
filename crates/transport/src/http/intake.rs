//! From the body of a post to durable records.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::Request;
use axum::http::StatusCode;
use fieldline_core::devices::DeviceHandle;
use fieldline_core::logging::LogGate;
use fieldline_core::ports::{Append, AppendError};
use fieldline_model::json::JsonError;
use fieldline_model::record::{CutError, RecordBatch};
use tracing::warn;

use super::memory::{BodyShare, RecordShare};
use super::{Peer, Refusal, Shared, body};
use crate::Services;

static APPEND_GATE: LogGate = LogGate::new(2);

/// How long a message that has arrived may wait for memory and for the journal.
const PATIENCE: Duration = Duration::from_secs(60);
/// Larger bodies are not parsed on the threads that serve connections.
const LARGE: usize = 256 << 10;

/// Adds a message to a batch.
pub(super) type Parse = fn(&Services, &DeviceHandle, &[u8], &mut RecordBatch) -> Result<(), JsonError>;

/// The body of a post and what it takes of the memory.
struct Received {
    body: Vec<u8>,
    body_share: BodyShare,
    record_share: RecordShare,
}

/// The records of a post and what they take of the memory.
struct Parsed {
    records: RecordBatch,
    _share: RecordShare,
}

impl Shared {
    /// Serves a post of a device: answers when its message is durable.
    pub(super) async fn post(
        &self,
        token: &str,
        peer: Peer,
        request: Request,
        parse: Parse,
    ) -> Result<StatusCode, Refusal> {
        let device = self.device(token, peer).await?;
        let mut body_share = self.memory.for_body(device.id);
        let body = body::read(request, self.limits, &mut body_share).await?;
        // The device may have been changed or deleted while the body arrived.
        self.check(&device).await?;
        let taken = async {
            let record_share = self.memory.for_records(body.len()).await?;
            let received = Received {
                body,
                body_share,
                record_share,
            };
            let parsed = self.parse(&device, received, parse).await?;
            self.pass(&device, parsed.records.points())?;
            self.append(&device, &parsed.records).await
        };
        match tokio::time::timeout(PATIENCE, taken).await {
            Ok(outcome) => outcome.map(|()| StatusCode::OK),
            Err(_) => Err(self.not_taken(&"the journal did not take it in time")),
        }
    }

    async fn parse(
        &self,
        device: &Arc<DeviceHandle>,
        received: Received,
        parse: Parse,
    ) -> Result<Parsed, Refusal> {
        let max_append = self.limits.max_append;
        let parsed = if received.body.len() > LARGE {
            let (services, device) = (Arc::clone(&self.services), Arc::clone(device));
            tokio::task::spawn_blocking(move || received.parse(&services, &device, parse, max_append))
                .await
                .unwrap_or(Err(Refusal::NotTaken))
        } else {
            received.parse(&self.services, device, parse, max_append)
        };
        if let Err(Refusal::Malformed(_)) = &parsed {
            self.metrics.rejected.increment(1);
        }
        parsed
    }

    /// Appends the records, in pieces if they are too large for one append, and waits until all are durable.
    pub(super) async fn append(&self, device: &DeviceHandle, records: &RecordBatch) -> Result<(), Refusal> {
        let outcome = if records.as_bytes().len() <= self.limits.max_append {
            self.append_piece(device, records).await?.await
        } else {
            let mut appends = Vec::new();
            for piece in records.cut(self.limits.max_append) {
                appends.push(self.append_piece(device, &piece?).await?);
            }
            durable(appends).await
        };
        outcome.map_err(|error| self.not_taken(&error))?;
        self.metrics.messages.increment(u64::from(records.count()));
        device.sent(records.count(), records.points());
        Ok(())
    }

    async fn append_piece(&self, device: &DeviceHandle, records: &RecordBatch) -> Result<Append, Refusal> {
        let settings = device.settings();
        let uplink = &self.services.uplink;
        let routed = settings
            .queue
            .as_deref()
            .map(|queue| uplink.to(device.subject.tenant, Some(queue)));
        let uplink = routed.as_deref().unwrap_or(uplink);
        loop {
            // Looked at again after each wait: the device may have been deleted meanwhile.
            if device.is_revoked() {
                return Err(Refusal::UnknownToken);
            }
            match uplink.try_append(device.subject, records) {
                Ok(append) => return Ok(append),
                Err(AppendError::Busy) => uplink.journal().ready().await,
                Err(AppendError::TooLarge { .. }) => return Err(Refusal::TooLarge),
                Err(error) => return Err(self.not_taken(&error)),
            }
        }
    }

    fn not_taken(&self, error: &dyn std::fmt::Display) -> Refusal {
        self.metrics.refused_appends.increment(1);
        if let Some(suppressed) = APPEND_GATE.open() {
            warn!(%error, suppressed, "message of a device was not taken");
        }
        Refusal::NotTaken
    }
}

async fn durable(appends: Vec<Append>) -> Result<(), AppendError> {
    for append in appends {
        append.await?;
    }
    Ok(())
}

impl Received {
    fn parse(
        self,
        services: &Services,
        device: &DeviceHandle,
        parse: Parse,
        max_append: usize,
    ) -> Result<Parsed, Refusal> {
        let mut records = RecordBatch::new();
        parse(services, device, &self.body, &mut records).map_err(Refusal::Malformed)?;
        drop((self.body, self.body_share));
        let bytes = records.as_bytes().len();
        if bytes > LARGE {
            records.shrink_to(bytes);
        }
        let mut share = self.record_share;
        share.shrink(bytes);
        if bytes > max_append {
            // Nothing of a message is stored if a part of it cannot be.
            for piece in records.cut(max_append) {
                piece?;
            }
        }
        Ok(Parsed {
            records,
            _share: share,
        })
    }
}

impl From<CutError> for Refusal {
    fn from(error: CutError) -> Self {
        match error {
            CutError::TooLarge => Self::TooLarge,
            CutError::Corrupt(_) => Self::NotTaken,
        }
    }
}
