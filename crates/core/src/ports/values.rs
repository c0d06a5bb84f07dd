//! Single values of many entities at once, and who is told when values change.

use async_trait::async_trait;
use fieldline_model::kv::KvValueRef;
use fieldline_model::timeseries::AttributeScope;
use fieldline_model::{EntityKey, EntityType, TenantId};
use uuid::Uuid;

use super::{AttributeRow, StoreResult, TelemetryRow};

/// Where a value is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ValueSource {
    /// The latest value of a series.
    Latest,
    /// An attribute of this scope.
    Attribute(AttributeScope),
}

/// A value as it is stored.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StoredValue<'a> {
    /// Its time, milliseconds.
    pub ts: i64,
    /// Seconds it is kept after its time; 0 keeps it for ever.
    pub ttl_seconds: u32,
    /// The value.
    pub value: KvValueRef<'a>,
}

/// Which values are read.
#[derive(Debug, Clone, Copy)]
pub struct ValueReadRequest<'a> {
    /// The tenant.
    pub tenant: TenantId,
    /// Kind of the entities.
    pub kind: EntityType,
    /// Their bare ids.
    pub ids: &'a [Uuid],
    /// Where the values are kept.
    pub source: ValueSource,
    /// Their names.
    pub names: &'a [String],
}

/// Reads single values of many entities. May touch the disk: call it where that disturbs nobody.
pub trait ValueReader: Send + Sync {
    /// Calls `visit` for every value that there is, with the places of the entity and of the name. What was stored before
    /// the call is seen. Values past their time-to-live are given, too.
    ///
    /// # Errors
    /// The store cannot be read.
    fn read(
        &self,
        values: ValueReadRequest<'_>,
        visit: &mut dyn FnMut(usize, usize, StoredValue<'_>),
    ) -> StoreResult<()>;
}

/// Gives the values of one subject to another.
#[async_trait]
pub trait ValueTransfer: Send + Sync {
    /// Takes all points, latest values and attributes from one subject and gives them to the other; where both have one, the
    /// newer latest value or attribute stays. Durable when it returns; returns whether there was anything. What comes for the
    /// former subject later stays there until this is called again, and so does the rest where it fails.
    async fn transfer(&self, from: EntityKey, to: EntityKey) -> StoreResult<bool>;
}

/// Whose values are taken away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ValueRemovalScope {
    /// One subject's.
    Subject(EntityKey),
    /// Those of all subjects of a tenant.
    Tenant(TenantId),
}

/// Takes away all that subjects have which are gone.
#[async_trait]
pub trait ValueRemoval: Send + Sync {
    /// Deletes all points, latest values and attributes that were stored before the call, but not those of the subjects that
    /// are spared. Durable when it returns. It may take long and holds up nobody meanwhile: it goes step by step, and what
    /// comes for the subjects in between may go or stay. Asking again is harmless, and after a failure goes on.
    async fn remove(&self, gone: &[ValueRemovalScope], spared: &[EntityKey]) -> StoreResult<()>;
}

/// What has happened to values that readers see by now.
#[derive(Debug, Clone, Copy)]
pub enum ValueChange<'a> {
    /// Points came; what has become of them says the row.
    Points(&'a TelemetryRow<'a>),
    /// Attributes came.
    Attributes(&'a AttributeRow<'a>),
    /// Points of these series were deleted; the latest values may be others now, or none.
    SeriesDeleted(EntityKey, &'a [String]),
    /// These attributes were deleted.
    AttributesDeleted(EntityKey, AttributeScope, &'a [String]),
    /// Everything of a subject was deleted from this source.
    AllDeleted(EntityKey, ValueSource),
    /// A subject has got those of another one from this source besides its own.
    HandedOver(EntityKey, ValueSource),
}

impl ValueChange<'_> {
    /// Whose values they are.
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

    /// Where they are kept.
    pub fn source(&self) -> ValueSource {
        match self {
            Self::Points(_) | Self::SeriesDeleted(..) => ValueSource::Latest,
            Self::Attributes(row) => ValueSource::Attribute(row.scope),
            Self::AttributesDeleted(_, scope, _) => ValueSource::Attribute(*scope),
            Self::AllDeleted(_, source) | Self::HandedOver(_, source) => *source,
        }
    }
}

/// What a listener is there for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChangeFilter {
    /// What readers see from now on.
    Stored,
    /// What is shown to people, stored or not.
    Shown,
}

/// Somebody who wants to know of changed values.
pub trait ValueListener: Send + Sync {
    /// What it is told of. Deletions are told to all.
    fn change_filter(&self) -> ChangeFilter {
        ChangeFilter::Stored
    }

    /// Whether a change could matter to anybody. Asked once a batch, before anything else: must cost nothing.
    fn is_listening(&self) -> bool;

    /// Called once a change, on the thread that stored it: must not block.
    fn on_value(&self, change: ValueChange<'_>);
}
