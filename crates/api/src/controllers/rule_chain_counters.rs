//! Counters of the nodes of a rule chain.

use std::collections::BTreeMap;

use axum::Json;
use fieldline_core::ports::RuleNodeCounters;
use fieldline_entities::access::AccessOperation;
use fieldline_model::{RuleChainId, RuleNodeId};
use serde::Serialize;
use utoipa_axum::routes;

use crate::caller::ApiCall;
use crate::endpoint::{ApiRoutes, T};
use crate::error::ApiResult;
use crate::extract::PathIds;

pub(super) fn routes() -> ApiRoutes {
    ApiRoutes::default().add(T.reads(routes!(counters)))
}

/// The last failure of a message at a node.
#[derive(Serialize, utoipa::ToSchema)]
struct RuleNodeFailure {
    /// When, milliseconds.
    ts: i64,
    /// Why.
    error: Box<str>,
}

/// What a node has done.
#[derive(Serialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
struct RuleNodeCount {
    /// The node.
    id: RuleNodeId,
    /// Since when it is counted, milliseconds.
    since: i64,
    /// Messages that came to it.
    input: u64,
    /// Messages that left it through its connections, by their label.
    output: BTreeMap<Box<str>, u64>,
    /// Messages that failed there.
    failures: u64,
    /// Time of the queue's thread, microseconds, estimated from some of its runs.
    time_micros: u64,
    /// The last failure.
    #[serde(skip_serializing_if = "Option::is_none")]
    last_failure: Option<RuleNodeFailure>,
}

/// What the nodes of a rule chain have done.
#[derive(Serialize, utoipa::ToSchema)]
struct RuleChainCounts {
    /// When this was read, milliseconds.
    ts: i64,
    /// Its nodes; none while no message has needed the chain.
    nodes: Vec<RuleNodeCount>,
}

/// Returns what the nodes of a rule chain have done since the chain was loaded. Counters go on when the chain is saved, and begin
/// again with the program.
#[utoipa::path(get, path = "/api/ruleChain/{ruleChainId}/counters", tag = "rule-chain",
    operation_id = "getRuleChainCounters", params(("ruleChainId" = Uuid, Path)),
    responses((status = 200, body = RuleChainCounts)))]
async fn counters(
    ApiCall { api, caller }: ApiCall,
    PathIds([id]): PathIds<1>,
) -> ApiResult<Json<RuleChainCounts>> {
    let id = RuleChainId(id);
    api.check(&caller, id, AccessOperation::Read).await?;
    let now = api.clock.now_ms();
    let before = |age: u64| now.saturating_sub_unsigned(age);
    let count = |node: RuleNodeCounters| RuleNodeCount {
        id: node.id,
        since: before(node.age_ms),
        input: node.input,
        output: node.output.into_iter().collect(),
        failures: node.failures,
        time_micros: node.time_us,
        last_failure: node.last_failure.map(|(error, age)| RuleNodeFailure {
            ts: before(age),
            error,
        }),
    };
    let nodes = api.rule_counters.of_chain(caller.tenant, id).unwrap_or_default();
    Ok(Json(RuleChainCounts {
        ts: now,
        nodes: nodes.into_iter().map(count).collect(),
    }))
}
