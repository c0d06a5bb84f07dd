//! Bulk reads of single values of many entities, and notification of listeners when values change.

use async_trait::async_trait;
use fieldline_model::kv::KvValueRef;
use fieldline_model::timeseries::AttributeScope;
use fieldline_model::{EntityKey, EntityType, TenantId};
use uuid::Uuid;

use super::{AttributeRow, StoreResult, TelemetryRow};

/// The location of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ValueSource {
    /// The latest value of a series.
    Latest,
    /// An attribute of this scope.
    Attribute(AttributeScope),
}

/// A value as stored.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StoredValue<'a> {
    /// Its time, milliseconds.
    pub ts: i64,
    /// Seconds for which it is kept after its time; 0 keeps it for ever.
    pub ttl_seconds: u32,
    /// The value.
    pub value: KvValueRef<'a>,
}

/// The values to read.
#[derive(Debug, Clone, Copy)]
pub struct ValueReadRequest<'a> {
    /// The tenant.
    pub tenant: TenantId,
    /// Kind of the entities.
    pub kind: EntityType,
    /// Their bare ids.
    pub ids: &'a [Uuid],
    /// The location of the values.
    pub source: ValueSource,
    /// Their names.
    pub names: &'a [String],
}

/// Reads single values of many entities. It may access the disk: call it on a thread that may block.
pub trait ValueReader: Send + Sync {
    /// Calls `visit` for every existing value, with the indexes of the entity and of the name. Values stored before the
    /// call are seen, and so are values past their time-to-live.
    ///
    /// # Errors
    /// The store cannot be read.
    fn read(
        &self,
        values: ValueReadRequest<'_>,
        visit: &mut dyn FnMut(usize, usize, StoredValue<'_>),
    ) -> StoreResult<()>;
}

/// Moves the values of one subject to another.
#[async_trait]
pub trait ValueTransfer: Send + Sync {
    /// Moves all points, latest values and attributes from one subject to the other; where both have one, the newer
    /// latest value or attribute stays. Durable when it returns; returns whether there was anything. Data that arrives
    /// for the former subject later stays there until the next call, and so does the rest after a failure.
    async fn transfer(&self, from: EntityKey, to: EntityKey) -> StoreResult<bool>;
}

/// The owner of the values to remove.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ValueRemovalScope {
    /// One subject.
    Subject(EntityKey),
    /// All subjects of a tenant.
    Tenant(TenantId),
}

/// Removes all values of deleted subjects.
#[async_trait]
pub trait ValueRemoval: Send + Sync {
    /// Deletes all points, latest values and attributes that were stored before the call, except those of the spared
    /// subjects. Durable when it returns. It may take long, but works in steps and blocks nobody; data that arrives for
    /// the subjects meanwhile may be deleted or stay. Repeating it is harmless, and continues after a failure.
    async fn remove(&self, gone: &[ValueRemovalScope], spared: &[EntityKey]) -> StoreResult<()>;
}

/// A change of values that is already visible to readers.
#[derive(Debug, Clone, Copy)]
pub enum ValueChange<'a> {
    /// Points were received; the row tells how they were saved.
    Points(&'a TelemetryRow<'a>),
    /// Attributes were received.
    Attributes(&'a AttributeRow<'a>),
    /// Points of these series were deleted; the latest values may have changed or be gone.
    SeriesDeleted(EntityKey, &'a [String]),
    /// These attributes were deleted.
    AttributesDeleted(EntityKey, AttributeScope, &'a [String]),
    /// All values of a subject in this location were deleted.
    AllDeleted(EntityKey, ValueSource),
    /// A subject received the values of another one in this location, besides its own.
    HandedOver(EntityKey, ValueSource),
}

impl ValueChange<'_> {
    /// The subject of the values.
    pub fn subject(&self) -> EntityKey {
        match self {
            Self::Points(row) => row.subject,
            Self::Attributes(row) => row.subject,
            Self::SeriesDeleted(subject, _)
            | Self::AttributesDeleted(subject, ..)
            | Self::AllDeleted(subject, _)
            | Self::HandedOver(subject, _) => *subject,
        }
    }

    /// The location of the values.
    pub fn source(&self) -> ValueSource {
        match self {
            Self::Points(_) | Self::SeriesDeleted(..) => ValueSource::Latest,
            Self::Attributes(row) => ValueSource::Attribute(row.scope),
            Self::AttributesDeleted(_, scope, _) => ValueSource::Attribute(*scope),
            Self::AllDeleted(_, source) | Self::HandedOver(_, source) => *source,
        }
    }
}

/// The changes that a listener wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChangeFilter {
    /// Values that readers see from now on.
    Stored,
    /// Values published to people, stored or not.
    Shown,
}

/// Receives changes of values.
pub trait ValueListener: Send + Sync {
    /// The changes it receives. Deletions are sent to all listeners.
    fn change_filter(&self) -> ChangeFilter {
        ChangeFilter::Stored
    }

    /// Returns whether anybody may be interested in changes. Called once per batch, before anything else: must cost
    /// nothing.
    fn is_listening(&self) -> bool;

    /// Called once per change, on the thread that stored it: must not block.
    fn on_value(&self, change: ValueChange<'_>);
}
