//! Queues that messages wait in before the rule engine processes them.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::draft::stored_entity;
use crate::{QueueId, QueueStatsId, TenantId};

/// Which messages of a pack are processed at the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum SubmitStrategyType {
    /// All at once.
    Burst,
    /// A batch at a time.
    Batch,
    /// One of each originator.
    SequentialByOriginator,
    /// One of each tenant.
    SequentialByTenant,
    /// One.
    Sequential,
}

/// Which messages of a pack are processed at the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct SubmitStrategy {
    /// The strategy; always there in a stored queue.
    #[serde(rename = "type")]
    pub strategy: Option<SubmitStrategyType>,
    /// Messages a batch.
    #[serde(deserialize_with = "super::null_as_default")]
    pub batch_size: i32,
}

/// What happens to messages that fail or take too long.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum ProcessingStrategyType {
    /// They are dropped; late ones go on in the background.
    SkipAllFailures,
    /// They are dropped, late ones at their next node.
    SkipAllFailuresAndTimedOut,
    /// The whole pack is processed again.
    RetryAll,
    /// Those that failed are processed again.
    RetryFailed,
    /// Those that were late are processed again.
    RetryTimedOut,
    /// Both are processed again.
    RetryFailedAndTimedOut,
}

/// What happens to messages that fail or take too long.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct ProcessingStrategy {
    /// The strategy; always there in a stored queue.
    #[serde(rename = "type")]
    pub strategy: Option<ProcessingStrategyType>,
    /// How often a pack is tried again; 0 for ever.
    #[serde(deserialize_with = "super::null_as_default")]
    pub retries: i32,
    /// Percentage of messages above which a pack is not tried again; 0 for any.
    #[serde(deserialize_with = "super::null_as_default")]
    pub failure_percentage: f64,
    /// Seconds before the first retry.
    #[serde(deserialize_with = "super::null_as_default")]
    pub pause_between_retries: i64,
    /// Seconds that the pause, which doubles, grows to.
    #[serde(deserialize_with = "super::null_as_default")]
    pub max_pause_between_retries: i64,
}

/// A queue of the rule engine.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct Queue {
    /// Id; absent in a request to create.
    #[schema(value_type = Option<QueueId>, default = json!(null))]
    #[serde(with = "super::id_or_null")]
    pub id: QueueId,
    /// When it was created, milliseconds.
    #[serde(deserialize_with = "super::null_as_default")]
    pub created_time: i64,
    /// The tenant it belongs to; the null id for what tenants share. Set by the platform.
    #[serde(deserialize_with = "super::null_as_default")]
    pub tenant_id: TenantId,
    /// Name, unique in the tenant.
    #[serde(deserialize_with = "super::null_as_default")]
    pub name: String,
    /// Topic, unique in the tenant.
    #[serde(deserialize_with = "super::null_as_default")]
    pub topic: String,
    /// How long a consumer waits for messages, milliseconds.
    #[serde(deserialize_with = "super::null_as_default")]
    pub poll_interval: i32,
    /// Parts that are processed beside each other.
    #[serde(deserialize_with = "super::null_as_default")]
    pub partitions: i32,
    /// Whether each partition has a consumer of its own.
    #[serde(deserialize_with = "super::null_as_default")]
    pub consumer_per_partition: bool,
    /// How long the messages of a pack may take, milliseconds.
    #[serde(deserialize_with = "super::null_as_default")]
    pub pack_processing_timeout: i64,
    /// Which messages of a pack are processed at the same time; always there in a stored queue.
    pub submit_strategy: Option<SubmitStrategy>,
    /// What happens to messages that fail; always there in a stored queue.
    pub processing_strategy: Option<ProcessingStrategy>,
    /// `description`, `customProperties`, `duplicateMsgToAllPartitions`.
    pub additional_info: Option<Value>,
}

stored_entity!(Queue: QueueId);

/// What carries the statistics of a tenant's messages in a queue on a server, as time series.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct QueueStats {
    /// Id.
    pub id: QueueStatsId,
    /// When the queue was created, milliseconds.
    pub created_time: i64,
    /// The tenant.
    pub tenant_id: TenantId,
    /// Name of the queue.
    pub queue_name: String,
    /// Name of the server.
    pub service_id: String,
}

stored_entity!(QueueStats: QueueStatsId);
