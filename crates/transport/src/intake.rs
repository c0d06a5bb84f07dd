//! Turns the messages of a device into durable records, for device servers that handle one message at a time.

use fieldline_core::ingest::{AppendSize, LargeRecordPermit};
use fieldline_core::logging::LogGate;
use fieldline_core::ports::{AppendError, AppendFuture, StoreError};
use fieldline_devices::directory::DeviceHandle;
use fieldline_model::record::{BatchSplitError, RecordBatch};
use tracing::warn;

use crate::TransportServices;
use crate::metrics::TransportMetrics;

static APPEND_GATE: LogGate = LogGate::new(2);

/// Why a device is not served.
pub(crate) enum DeviceRefusal {
    /// It is gone, or its credentials have changed.
    Revoked,
    /// Its tenant has used up its monthly quota.
    UsedUp,
    /// It cannot be looked up.
    Store(StoreError),
}

/// Why records were not taken.
pub(crate) enum AppendRefusal {
    /// The device is gone.
    Revoked,
    /// A part of a message does not fit one append.
    TooLarge,
    /// The journal refused them; this was logged and counted.
    Refused,
}

/// Refreshes a stale device handle, and refuses a device that is revoked or may not send.
pub(crate) async fn check(services: &TransportServices, device: &DeviceHandle) -> Result<(), DeviceRefusal> {
    if device.is_stale() {
        services
            .directory
            .refresh(device)
            .await
            .map_err(DeviceRefusal::Store)?;
    }
    if device.is_revoked() {
        Err(DeviceRefusal::Revoked)
    } else if !device.may_send() {
        Err(DeviceRefusal::UsedUp)
    } else {
        Ok(())
    }
}

/// Appends the records of one device server.
pub(crate) struct RecordIntake<'a> {
    pub(crate) services: &'a TransportServices,
    pub(crate) metrics: &'a TransportMetrics,
    /// Largest append that the journal takes, bytes.
    pub(crate) max_append: usize,
}

impl RecordIntake<'_> {
    /// Waits for a permit to append records of this size, if they count as large.
    pub(crate) async fn enter(&self, device: &DeviceHandle, size: AppendSize) -> LargeRecordPermit {
        self.services
            .producer
            .acquire_large(device.subject.tenant, size)
            .await
    }

    /// Appends the records, in pieces if they are too large for one append, and waits until all of them are durable.
    pub(crate) async fn append(
        &self,
        device: &DeviceHandle,
        records: &RecordBatch,
    ) -> Result<(), AppendRefusal> {
        let place = self.enter(device, records.into()).await;
        self.append_in(device, records, place).await
    }

    /// Like [`Self::append`], for a caller that has a permit already.
    pub(crate) async fn append_in(
        &self,
        device: &DeviceHandle,
        records: &RecordBatch,
        mut place: LargeRecordPermit,
    ) -> Result<(), AppendRefusal> {
        let outcome = if records.as_bytes().len() <= self.max_append {
            self.append_piece(device, records, &mut place).await?.await
        } else {
            let mut appends = Vec::new();
            let mut pieces = records.split_batches(self.max_append).peekable();
            while let Some(piece) = pieces.next() {
                // The last piece takes the permit: once that piece is stored, all of them are.
                let place = match pieces.peek() {
                    Some(_) => &mut None,
                    None => &mut place,
                };
                appends.push(self.append_piece(device, &piece?, place).await?);
            }
            durable(appends).await
        };
        outcome.map_err(|error| self.count_refusal(&error))?;
        self.metrics.messages.increment(u64::from(records.count()));
        device.count_sent(records.count(), records.points());
        Ok(())
    }

    async fn append_piece(
        &self,
        device: &DeviceHandle,
        records: &RecordBatch,
        place: &mut LargeRecordPermit,
    ) -> Result<AppendFuture, AppendRefusal> {
        let settings = device.settings();
        let uplink = &self.services.producer;
        let routed = settings
            .queue
            .as_deref()
            .map(|queue| uplink.queue_for(device.subject.tenant, Some(queue)));
        let uplink = routed.as_deref().unwrap_or(uplink);
        // The device may be deleted while it waits.
        let append = uplink.append_while(device.subject, records, place, || !device.is_revoked());
        match append.await {
            Ok(Some(append)) => Ok(append),
            Ok(None) => Err(AppendRefusal::Revoked),
            Err(AppendError::TooLarge { .. }) => Err(AppendRefusal::TooLarge),
            Err(error) => Err(self.count_refusal(&error)),
        }
    }

    /// Logs and counts a message that the journal refused.
    pub(crate) fn count_refusal(&self, error: &dyn std::fmt::Display) -> AppendRefusal {
        self.metrics.refused_appends.increment(1);
        if let Some(suppressed) = APPEND_GATE.open() {
            warn!(%error, suppressed, "message of a device was not taken");
        }
        AppendRefusal::Refused
    }
}

async fn durable(appends: Vec<AppendFuture>) -> Result<(), AppendError> {
    for append in appends {
        append.await?;
    }
    Ok(())
}

impl From<BatchSplitError> for AppendRefusal {
    fn from(error: BatchSplitError) -> Self {
        match error {
            BatchSplitError::TooLarge => Self::TooLarge,
            BatchSplitError::Corrupt(_) => Self::Refused,
        }
    }
}
