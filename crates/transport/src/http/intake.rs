//! From the body of a post to durable records.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::Request;
use axum::http::StatusCode;
use fieldline_core::devices::DeviceHandle;
use fieldline_model::json::JsonError;
use fieldline_model::record::RecordBatch;

use super::memory::{BodyShare, RecordShare};
use super::{Peer, Refusal, Shared, body};
use crate::Services;
use crate::intake::{Intake, NotTaken};

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
        let mut body_share = self.memory.for_body(device.subject.tenant, device.id);
        let body = body::read(request, self.limits, &mut body_share).await?;
        // The device may have been changed or deleted while the body arrived.
        self.check(&device).await?;
        let taken = async {
            // Nothing that others wait for, too, is held meanwhile.
            let place = self.intake().enter(&device, body.len()).await;
            let record_share = self.memory.for_records(body.len()).await?;
            let received = Received {
                body,
                body_share,
                record_share,
            };
            let parsed = self.parse(&device, received, parse).await?;
            self.pass(&device, parsed.records.points())?;
            self.intake()
                .append_in(&device, &parsed.records, place)
                .await
                .map_err(Refusal::from)
        };
        match tokio::time::timeout(PATIENCE, taken).await {
            Ok(outcome) => outcome.map(|()| StatusCode::OK),
            Err(_) => Err(self
                .intake()
                .not_taken(&"the journal did not take it in time")
                .into()),
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

    /// Appends the records, and waits until all are durable.
    pub(super) async fn append(&self, device: &DeviceHandle, records: &RecordBatch) -> Result<(), Refusal> {
        self.intake().append(device, records).await.map_err(Refusal::from)
    }

    fn intake(&self) -> Intake<'_> {
        Intake {
            services: &self.services,
            metrics: &self.metrics,
            max_append: self.limits.max_append,
        }
    }
}

impl From<NotTaken> for Refusal {
    fn from(why: NotTaken) -> Self {
        match why {
            NotTaken::Revoked => Self::UnknownToken,
            NotTaken::TooLarge => Self::TooLarge,
            NotTaken::Refused => Self::NotTaken,
        }
    }
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
                piece.map_err(NotTaken::from)?;
            }
        }
        Ok(Parsed {
            records,
            _share: share,
        })
    }
}
