//! Where the effects of journal records are stored, together with the position they came from.

use async_trait::async_trait;
use bytes::Bytes;
use fieldline_model::EntityKey;
use fieldline_model::timeseries::AttributeScope;
use uuid::Uuid;

use super::{Offset, Partition, StoreResult};

/// What becomes of the values of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TelemetrySaveStrategy {
    /// They are points of the history.
    pub history: bool,
    /// They become latest values where they are the newest.
    pub latest: bool,
    /// Those who follow the values now are shown them.
    pub published: bool,
}

impl TelemetrySaveStrategy {
    /// Everything.
    pub const ALL: Self = Self {
        history: true,
        latest: true,
        published: true,
    };
    /// All but points of the history.
    pub const LATEST: Self = Self {
        history: false,
        ..Self::ALL
    };

    /// Whether nothing becomes of them.
    pub fn is_nothing(self) -> bool {
        !(self.history || self.latest || self.published)
    }
}

/// Values of one subject at one time, packed as in [`fieldline_model::kv`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TelemetryRow<'a> {
    /// Whose values they are.
    pub subject: EntityKey,
    /// Their time, milliseconds.
    pub ts: i64,
    /// Seconds they are kept after their time; 0 keeps them for ever.
    pub ttl_seconds: u32,
    /// What becomes of them.
    pub strategy: TelemetrySaveStrategy,
    /// Packed key-values.
    pub values: &'a [u8],
}

/// Attributes of one subject written at one time, packed as in [`fieldline_model::kv`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AttributeRow<'a> {
    /// Whose attributes they are.
    pub subject: EntityKey,
    /// Their scope.
    pub scope: AttributeScope,
    /// Time of the write, milliseconds.
    pub ts: i64,
    /// Packed key-values.
    pub values: &'a [u8],
}

/// What becomes of attributes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AttributeSaveStrategy {
    /// They are stored.
    pub stored: bool,
    /// Those who follow them now are shown them.
    pub published: bool,
}

impl AttributeSaveStrategy {
    /// Both.
    pub const ALL: Self = Self {
        stored: true,
        published: true,
    };
}

/// Attributes that a record leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AttributeEffect<'a> {
    /// The attributes.
    pub row: AttributeRow<'a>,
    /// What becomes of them.
    pub strategy: AttributeSaveStrategy,
}

impl<'a> From<AttributeRow<'a>> for AttributeEffect<'a> {
    /// They are stored and shown.
    fn from(row: AttributeRow<'a>) -> Self {
        let parts = AttributeSaveStrategy::ALL;
        Self { row, strategy: parts }
    }
}

/// Something that the rule engine keeps between records: counters of an alarm rule, a window of messages, a delay.
/// It is stored together with the position it belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StateRow {
    /// Whose it is within the partition.
    pub key: StateKey,
    /// Its bytes; empty where there is none any more.
    pub value: Bytes,
}

/// Whose state it is.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StateKey {
    /// The entity it is about.
    pub subject: EntityKey,
    /// Node, calculated field or profile that keeps it.
    pub owner: Uuid,
    /// Tells several of the same apart.
    pub number: u64,
}

/// What a batch of consecutive records of one partition does to the stores, in the order of the records.
#[derive(Debug, Clone, Default)]
pub struct StoreEffects<'a> {
    /// Time-series rows.
    pub telemetry: Vec<TelemetryRow<'a>>,
    /// Attribute writes.
    pub attributes: Vec<AttributeEffect<'a>>,
    /// What the rule engine keeps; of several with one key the last one counts.
    pub states: Vec<StateRow>,
}

impl StoreEffects<'_> {
    /// Whether there is nothing to store.
    pub fn is_empty(&self) -> bool {
        self.telemetry.is_empty() && self.attributes.is_empty() && self.states.is_empty()
    }
}

/// Stores the effects of journal records so that a crash at any moment neither loses nor doubles one.
///
/// # Promises
/// - After `apply` has returned, readers see the effects.
/// - After a crash, `resume_position` names a position such that replaying the records from there on, in order, leads to
///   the state in which every record was applied once. Replaying never undoes a write or deletion that a person made
///   through [`super::TimeSeriesStore`] or [`super::AttributeStore`] in the meantime.
/// - What lies before a position returned by `checkpoint` is durable: the journal may forget it.
/// - An `apply` that fails leaves the position where it was; some of the effects may be stored. Errors that are retryable
///   or `Corrupt` concern the store, all others the effects: they would be refused for ever.
#[async_trait]
pub trait IngestStore: Send + Sync {
    /// Applies the effects of the records before `next` that were not applied yet; what does not go beyond the partition's
    /// position is skipped.
    async fn apply(&self, partition: Partition, next: Offset, effects: &StoreEffects<'_>) -> StoreResult<()>;

    /// Applies what happens between records: timers, and what was waiting. The partition's position does not move.
    async fn apply_between_records(
        &self,
        partition: Partition,
        effects: &StoreEffects<'_>,
    ) -> StoreResult<()>;

    /// Where to start reading a partition; `None` where nothing of it was ever stored.
    async fn resume_position(&self, partition: Partition) -> StoreResult<Option<Offset>>;

    /// The journal no longer holds what was applied after `to`, and gives its positions out again: records from there on
    /// are new ones. What was applied stays. Durable when it returns; a position that is not after `to` does not move.
    async fn rewind(&self, partition: Partition, to: Offset) -> StoreResult<()>;

    /// What the rule engine keeps for a partition, in no order.
    async fn states(&self, partition: Partition) -> StoreResult<Vec<StateRow>>;

    /// Makes all that was applied durable, together with its positions, and returns them.
    async fn checkpoint(&self) -> StoreResult<Vec<(Partition, Offset)>>;
}
