//! What dashboards and rule chains were at each save.

use serde::{Deserialize, Serialize};

use super::{RuleChain, RuleChainMetaData};
use crate::UserId;

/// A save of a dashboard or rule chain that is kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct EntityVersion {
    /// The version that it made.
    pub version: i64,
    /// When it was saved, milliseconds.
    pub created_time: i64,
    /// Who saved it; absent for the platform itself.
    pub user_id: Option<UserId>,
    /// Their e-mail address at that time.
    pub user_name: Option<String>,
    /// Title or name at that time.
    pub title: String,
}

/// A rule chain with its nodes as it was saved once; exports have the same shape.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct RuleChainVersion {
    /// The chain.
    pub rule_chain: RuleChain,
    /// Its nodes and connections.
    pub metadata: RuleChainMetaData,
}
