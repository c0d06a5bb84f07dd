//! The ports: what a journal and a store promise, whoever implements them.

mod attributes;
mod entities;
mod error;
mod ingest;
mod journal;
mod timeseries;

pub use attributes::AttributeStore;
pub use entities::{
    CustomerStore, DeviceCredentialsStore, DeviceFilter, DeviceProfileStore, DeviceStore, EntityStores,
    TenantProfileStore, TenantStore, UserFilter, UserStore,
};
pub use error::{StoreError, StoreErrorKind, StoreResult};
pub use ingest::{AttributeRow, Effects, IngestStore, TelemetryRow};
pub use journal::{
    Append, AppendError, CommitGroup, Consumer, Delivery, Journal, JournalError, Offset, Partition, QueueId,
    Records,
};
pub use timeseries::{DeleteSeries, TimeSeriesStore};
