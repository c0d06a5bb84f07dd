//! Attributes.

use async_trait::async_trait;
use fieldline_model::EntityKey;
use fieldline_model::timeseries::{Attribute, AttributeScope};

use super::{AttributeRow, StoreResult};

/// Attributes of subjects, by scope.
///
/// # Promises
/// - `save` and `delete` are durable when they return, `save_relaxed` a short while later; every call made after they
///   return sees their effects.
/// - Of two writes to one attribute the later one wins, whatever their times: the clock may have been set back.
/// - Data of a subject is never visible through another tenant or entity.
#[async_trait]
pub trait AttributeStore: Send + Sync {
    /// Saves attributes on a person's behalf; device messages go through [`super::IngestStore`].
    async fn save(&self, rows: &[AttributeRow<'_>]) -> StoreResult<()>;

    /// Saves attributes that may be lost when the machine crashes within the next second, such as activity times.
    async fn save_relaxed(&self, rows: &[AttributeRow<'_>]) -> StoreResult<()>;

    /// The named attributes of a scope, or all of them, sorted by name.
    async fn get(
        &self,
        subject: EntityKey,
        scope: AttributeScope,
        keys: Option<&[String]>,
    ) -> StoreResult<Vec<Attribute>>;

    /// Deletes the named attributes and returns the names that existed.
    async fn delete(
        &self,
        subject: EntityKey,
        scope: AttributeScope,
        keys: &[String],
    ) -> StoreResult<Vec<String>>;
}
