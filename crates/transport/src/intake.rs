//! From what a device says to durable records, for device servers that take one message at a time.

use fieldline_core::devices::DeviceHandle;
use fieldline_core::ingest::LargePlace;
use fieldline_core::logging::LogGate;
use fieldline_core::ports::{Append, AppendError, StoreError};
use fieldline_model::record::{CutError, RecordBatch};
use tracing::warn;

use crate::Services;
use crate::metrics::Metrics;

static APPEND_GATE: LogGate = LogGate::new(2);

/// Why a device is not served.
pub(crate) enum Refused {
    /// It is gone, or its credentials have changed.
    Revoked,
    /// Its tenant has used up what it may send this month.
    UsedUp,
    /// It cannot be looked up.
    Store(StoreError),
}

/// Why records were not taken.
pub(crate) enum NotTaken {
    /// The device is gone.
    Revoked,
    /// A part of a message does not fit one append.
    TooLarge,
    /// The journal does not take them; that was logged and counted.
    Refused,
}

/// Brings what is known of a device up to date, and refuses one that is no more.
pub(crate) async fn check(services: &Services, device: &DeviceHandle) -> Result<(), Refused> {
    if device.is_stale() {
        services.directory.refresh(device).await.map_err(Refused::Store)?;
    }
    if device.is_revoked() {
        Err(Refused::Revoked)
    } else if !device.may_send() {
        Err(Refused::UsedUp)
    } else {
        Ok(())
    }
}

/// Where the records of one device server go.
pub(crate) struct Intake<'a> {
    pub(crate) services: &'a Services,
    pub(crate) metrics: &'a Metrics,
    /// Largest append that the journal takes, bytes.
    pub(crate) max_append: usize,
}

impl Intake<'_> {
    /// Waits for a place for records of so many bytes, if those are large.
    pub(crate) async fn enter(&self, device: &DeviceHandle, bytes: usize) -> LargePlace {
        self.services.uplink.enter(device.subject.tenant, bytes).await
    }

    /// Appends the records, in pieces if they are too large for one append, and waits until all are durable.
    pub(crate) async fn append(&self, device: &DeviceHandle, records: &RecordBatch) -> Result<(), NotTaken> {
        let place = self.enter(device, records.as_bytes().len()).await;
        self.append_in(device, records, place).await
    }

    /// The same by who has entered.
    pub(crate) async fn append_in(
        &self,
        device: &DeviceHandle,
        records: &RecordBatch,
        mut place: LargePlace,
    ) -> Result<(), NotTaken> {
        let outcome = if records.as_bytes().len() <= self.max_append {
            self.append_piece(device, records, &mut place).await?.await
        } else {
            let mut appends = Vec::new();
            let mut pieces = records.cut(self.max_append).peekable();
            while let Some(piece) = pieces.next() {
                // The last one has the place: once that is stored, they all are.
                let place = match pieces.peek() {
                    Some(_) => &mut None,
                    None => &mut place,
                };
                appends.push(self.append_piece(device, &piece?, place).await?);
            }
            durable(appends).await
        };
        outcome.map_err(|error| self.not_taken(&error))?;
        self.metrics.messages.increment(u64::from(records.count()));
        device.sent(records.count(), records.points());
        Ok(())
    }

    async fn append_piece(
        &self,
        device: &DeviceHandle,
        records: &RecordBatch,
        place: &mut LargePlace,
    ) -> Result<Append, NotTaken> {
        let settings = device.settings();
        let uplink = &self.services.uplink;
        let routed = settings
            .queue
            .as_deref()
            .map(|queue| uplink.to(device.subject.tenant, Some(queue)));
        let uplink = routed.as_deref().unwrap_or(uplink);
        // The device may be deleted while it waits.
        let append = uplink.append_while(device.subject, records, place, || !device.is_revoked());
        match append.await {
            Ok(Some(append)) => Ok(append),
            Ok(None) => Err(NotTaken::Revoked),
            Err(AppendError::TooLarge { .. }) => Err(NotTaken::TooLarge),
            Err(error) => Err(self.not_taken(&error)),
        }
    }

    /// Logs and counts that a message was not taken.
    pub(crate) fn not_taken(&self, error: &dyn std::fmt::Display) -> NotTaken {
        self.metrics.refused_appends.increment(1);
        if let Some(suppressed) = APPEND_GATE.open() {
            warn!(%error, suppressed, "message of a device was not taken");
        }
        NotTaken::Refused
    }
}

async fn durable(appends: Vec<Append>) -> Result<(), AppendError> {
    for append in appends {
        append.await?;
    }
    Ok(())
}

impl From<CutError> for NotTaken {
    fn from(error: CutError) -> Self {
        match error {
            CutError::TooLarge => Self::TooLarge,
            CutError::Corrupt(_) => Self::Refused,
        }
    }
}
