//! Reprocessing: a calculated field makes the results that it would have made of stored values.

use serde::{Deserialize, Serialize};

use crate::CalculatedFieldId;

/// Which time is reprocessed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct ReprocessRequest {
    /// First time included, milliseconds.
    pub start_ts: Option<i64>,
    /// First time no longer included, milliseconds.
    pub end_ts: Option<i64>,
}

/// How far a reprocessing is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum ReprocessStatus {
    /// It works.
    Running,
    /// It has come to its end.
    Completed,
    /// It has ended before; `error` says why.
    Failed,
    /// Somebody has ended it.
    Cancelled,
}

/// A reprocessing: what was asked for, and what has come of it so far.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Reprocessing)]
pub struct ReprocessReport {
    /// The field.
    pub calculated_field_id: CalculatedFieldId,
    /// How far it is.
    pub status: ReprocessStatus,
    /// First time included, milliseconds.
    pub start_ts: i64,
    /// First time no longer included, milliseconds.
    pub end_ts: i64,
    /// Entities that have the field, as far as they have been counted.
    pub entities: u64,
    /// Entities that are done.
    pub processed_entities: u64,
    /// Times of arguments at which the field was evaluated.
    pub values: u64,
    /// Rows of results that are stored.
    pub results: u64,
    /// Evaluations that had no result because something failed or was missing.
    pub without_result: u64,
    /// What failed or was missing last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_problem: Option<String>,
    /// Why it has failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// When it began, milliseconds.
    pub started_at: i64,
    /// When it ended, milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<i64>,
}
