//! Turns the body of a post into durable records.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::Request;
use axum::http::StatusCode;
use fieldline_core::ingest::AppendSize;
use fieldline_devices::directory::DeviceHandle;
use fieldline_model::json::JsonError;
use fieldline_model::record::RecordBatch;

use super::memory::{BodyShare, RecordShare};
use super::{HttpClientAddress, HttpRefusal, HttpShared, body};
use crate::TransportServices;
use crate::intake::{AppendRefusal, RecordIntake};

/// Longest time that a received message may wait for memory and for the journal.
const INTAKE_TIMEOUT: Duration = Duration::from_secs(60);
/// Bodies larger than this are parsed on blocking threads, not on those that serve connections, bytes.
const LARGE: usize = 256 << 10;

/// Adds a message to a batch.
pub(super) type PayloadParser =
    fn(&TransportServices, &DeviceHandle, &[u8], &mut RecordBatch) -> Result<(), JsonError>;

/// The body of a post and its shares of the memory.
struct PostBody {
    body: Vec<u8>,
    body_share: BodyShare,
    record_share: RecordShare,
}

/// The records of a post and their share of the memory.
struct PostRecords {
    records: RecordBatch,
    _share: RecordShare,
}

impl HttpShared {
    /// Serves a post of a device; answers when the message is durable.
    pub(super) async fn post(
        &self,
        token: &str,
        peer: HttpClientAddress,
        request: Request,
        parse: PayloadParser,
    ) -> Result<StatusCode, HttpRefusal> {
        let device = self.authenticate(token, peer).await?;
        let mut body_share = self.memory.for_body(device.subject.tenant, device.id);
        let body = body::read(request, self.limits, &mut body_share).await?;
        // The device may have been changed or deleted while the body arrived.
        self.check(&device).await?;
        let taken = async {
            // Waits for the permit first, so that it holds no record memory that other posts wait for.
            let place = self.intake().enter(&device, AppendSize::single(body.len())).await;
            let record_share = self.memory.for_records(body.len()).await?;
            let received = PostBody {
                body,
                body_share,
                record_share,
            };
            let parsed = self.parse(&device, received, parse).await?;
            self.count_message(&device, parsed.records.points())?;
            self.intake()
                .append_in(&device, &parsed.records, place)
                .await
                .map_err(HttpRefusal::from)
        };
        match tokio::time::timeout(INTAKE_TIMEOUT, taken).await {
            Ok(outcome) => outcome.map(|()| StatusCode::OK),
            Err(_) => Err(self
                .intake()
                .count_refusal(&"the journal did not take it in time")
                .into()),
        }
    }

    async fn parse(
        &self,
        device: &Arc<DeviceHandle>,
        received: PostBody,
        parse: PayloadParser,
    ) -> Result<PostRecords, HttpRefusal> {
        let max_append = self.limits.max_append;
        let parsed = if received.body.len() > LARGE {
            let (services, device) = (Arc::clone(&self.services), Arc::clone(device));
            tokio::task::spawn_blocking(move || received.parse(&services, &device, parse, max_append))
                .await
                .unwrap_or(Err(HttpRefusal::NotTaken))
        } else {
            received.parse(&self.services, device, parse, max_append)
        };
        if let Err(HttpRefusal::Malformed(_)) = &parsed {
            self.metrics.rejected.increment(1);
        }
        parsed
    }

    /// Appends the records, and waits until all of them are durable.
    pub(super) async fn append(
        &self,
        device: &DeviceHandle,
        records: &RecordBatch,
    ) -> Result<(), HttpRefusal> {
        self.intake()
            .append(device, records)
            .await
            .map_err(HttpRefusal::from)
    }

    fn intake(&self) -> RecordIntake<'_> {
        RecordIntake {
            services: &self.services,
            metrics: &self.metrics,
            max_append: self.limits.max_append,
        }
    }
}

impl From<AppendRefusal> for HttpRefusal {
    fn from(why: AppendRefusal) -> Self {
        match why {
            AppendRefusal::Revoked => Self::UnknownToken,
            AppendRefusal::TooLarge => Self::TooLarge,
            AppendRefusal::Refused => Self::NotTaken,
        }
    }
}

impl PostBody {
    fn parse(
        self,
        services: &TransportServices,
        device: &DeviceHandle,
        parse: PayloadParser,
        max_append: usize,
    ) -> Result<PostRecords, HttpRefusal> {
        let mut records = RecordBatch::new();
        parse(services, device, &self.body, &mut records).map_err(HttpRefusal::Malformed)?;
        drop((self.body, self.body_share));
        let bytes = records.as_bytes().len();
        if bytes > LARGE {
            records.shrink_to(bytes);
        }
        let mut share = self.record_share;
        share.shrink(bytes);
        if bytes > max_append {
            // Stores nothing of a message if a part of it cannot be stored.
            for piece in records.split_batches(max_append) {
                piece.map_err(AppendRefusal::from)?;
            }
        }
        Ok(PostRecords {
            records,
            _share: share,
        })
    }
}
