//! Stores the effects of journal records together with the records' position.

use async_trait::async_trait;
use bytes::Bytes;
use fieldline_model::EntityKey;
use fieldline_model::timeseries::AttributeScope;
use uuid::Uuid;

use super::{Offset, Partition, StoreResult};

/// How the values of a row are saved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TelemetrySaveStrategy {
    /// As points of the history.
    pub history: bool,
    /// As latest values, if they are the newest.
    pub latest: bool,
    /// Published to present subscribers.
    pub published: bool,
}

impl TelemetrySaveStrategy {
    /// All of them.
    pub const ALL: Self = Self {
        history: true,
        latest: true,
        published: true,
    };
    /// All except points of the history.
    pub const LATEST: Self = Self {
        history: false,
        ..Self::ALL
    };

    /// Returns whether the values are neither stored nor published.
    pub fn is_nothing(self) -> bool {
        !(self.history || self.latest || self.published)
    }
}

/// Values of one subject at one time, packed as in [`fieldline_model::kv`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TelemetryRow<'a> {
    /// The subject of the values.
    pub subject: EntityKey,
    /// Their time, milliseconds.
    pub ts: i64,
    /// Seconds for which they are kept after their time; 0 keeps them for ever.
    pub ttl_seconds: u32,
    /// How they are saved.
    pub strategy: TelemetrySaveStrategy,
    /// Packed key-values.
    pub values: &'a [u8],
}

/// Attributes of one subject written at one time, packed as in [`fieldline_model::kv`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AttributeRow<'a> {
    /// The subject of the attributes.
    pub subject: EntityKey,
    /// Their scope.
    pub scope: AttributeScope,
    /// Time of the write, milliseconds.
    pub ts: i64,
    /// Packed key-values.
    pub values: &'a [u8],
}

/// How attributes are saved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AttributeSaveStrategy {
    /// Whether they are stored.
    pub stored: bool,
    /// Whether they are published to present subscribers.
    pub published: bool,
}

impl AttributeSaveStrategy {
    /// Both.
    pub const ALL: Self = Self {
        stored: true,
        published: true,
    };
}

/// Attributes that a record sets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AttributeEffect<'a> {
    /// The attributes.
    pub row: AttributeRow<'a>,
    /// How they are saved.
    pub strategy: AttributeSaveStrategy,
}

impl<'a> From<AttributeRow<'a>> for AttributeEffect<'a> {
    /// Stores and publishes the attributes.
    fn from(row: AttributeRow<'a>) -> Self {
        let parts = AttributeSaveStrategy::ALL;
        Self { row, strategy: parts }
    }
}

/// State that the rule engine keeps between records: counters of an alarm rule, a window of messages, a delay. It is
/// stored together with the position it belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StateRow {
    /// Its key within the partition.
    pub key: StateKey,
    /// Its bytes; empty if the state was removed.
    pub value: Bytes,
}

/// The key of a state row.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StateKey {
    /// The entity it is about.
    pub subject: EntityKey,
    /// Node, calculated field or profile that keeps it.
    pub owner: Uuid,
    /// Distinguishes several states of the same subject and owner.
    pub number: u64,
}

/// The effects of a batch of consecutive records of one partition, in the order of the records.
#[derive(Debug, Clone, Default)]
pub struct StoreEffects<'a> {
    /// Time-series rows.
    pub telemetry: Vec<TelemetryRow<'a>>,
    /// Attribute writes.
    pub attributes: Vec<AttributeEffect<'a>>,
    /// State rows of the rule engine; if several have the same key, the last one counts.
    pub states: Vec<StateRow>,
}

impl StoreEffects<'_> {
    /// Returns whether there is nothing to store.
    pub fn is_empty(&self) -> bool {
        self.telemetry.is_empty() && self.attributes.is_empty() && self.states.is_empty()
    }
}

/// Stores the effects of journal records so that a crash at any moment neither loses nor duplicates one.
///
/// # Promises
/// - After `apply` has returned, readers see the effects.
/// - After a crash, replaying the records from `resume_position` on, in order, leads to the state in which every record
///   was applied once. A replay never undoes a write or deletion that a person made through [`super::TimeSeriesStore`]
///   or [`super::AttributeStore`] in the meantime.
/// - Everything before a position returned by `checkpoint` is durable: the journal may delete it.
/// - A failed `apply` leaves the position unchanged; some of the effects may be stored. Errors that are retryable or
///   `Corrupt` concern the store; all others concern the effects, which would fail every time.
#[async_trait]
pub trait IngestStore: Send + Sync {
    /// Applies the effects of the records before `next` that were not applied yet; if `next` is not after the
    /// partition's position, the call has no effect.
    async fn apply(&self, partition: Partition, next: Offset, effects: &StoreEffects<'_>) -> StoreResult<()>;

    /// Applies effects that arise between records: from timers and waiting messages. The partition's position does not
    /// move.
    async fn apply_between_records(
        &self,
        partition: Partition,
        effects: &StoreEffects<'_>,
    ) -> StoreResult<()>;

    /// The position from which to read a partition; `None` if nothing of it was ever stored.
    async fn resume_position(&self, partition: Partition) -> StoreResult<Option<Offset>>;

    /// Rewinds a partition after the journal has lost the records after `to` and reuses their positions: records from
    /// there on are new. Applied effects stay. Durable when it returns; a position at or before `to` does not move.
    async fn rewind(&self, partition: Partition, to: Offset) -> StoreResult<()>;

    /// Returns the state rows of a partition, in no particular order.
    async fn states(&self, partition: Partition) -> StoreResult<Vec<StateRow>>;

    /// Makes all applied effects durable, together with the positions, and returns the positions.
    async fn checkpoint(&self) -> StoreResult<Vec<(Partition, Offset)>>;
}
