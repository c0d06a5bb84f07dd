//! What tenants use of the rule engine: scripts, time, and how often limits were met.

use axum::Json;
use fieldline_core::ports::{EntityRuleUsage, RuleUsageCounters};
use fieldline_model::EntityId;
use serde::Serialize;
use utoipa_axum::routes;

use crate::caller::ApiCall;
use crate::endpoint::{ApiRoutes, ST};

/// Tenants that are listed.
const MAX_TENANTS: usize = 100;

pub(super) fn routes() -> ApiRoutes {
    ApiRoutes::default().add(ST.reads(routes!(usage)))
}

/// What was used since the program has begun.
#[derive(Serialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
struct RuleUseInfo {
    /// Calls of scripts.
    script_calls: u64,
    /// Time that they have run, microseconds.
    script_time_micros: u64,
    /// Time that they have waited for a thread, microseconds.
    script_wait_micros: u64,
    /// Bytes of their arguments.
    script_bytes: u64,
    /// Evaluations that have gone beyond a limit.
    evaluation_overruns: u64,
    /// Calls that were refused.
    script_calls_refused: u64,
    /// Time that messages have taken on the threads of queues, scripts aside, microseconds.
    rule_node_time_micros: u64,
}

impl RuleUseInfo {
    const fn of(used: &RuleUsageCounters) -> Self {
        Self {
            script_calls: used.calls,
            script_time_micros: used.time_us,
            script_wait_micros: used.waited_us,
            script_bytes: used.bytes,
            evaluation_overruns: used.overruns,
            script_calls_refused: used.refused,
            rule_node_time_micros: used.inline_us,
        }
    }
}

/// What one rule node, calculated field or tenant has used.
#[derive(Serialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
struct RuleUsePart {
    /// The rule node, calculated field or tenant; the tenant itself for scripts that were tried out.
    #[schema(value_type = Object)]
    entity_id: EntityId,
    /// How much it is.
    #[serde(flatten)]
    used: RuleUseInfo,
}

/// What was used of the rule engine since the program has begun.
#[derive(Serialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
struct RuleUsage {
    /// All of it.
    total: RuleUseInfo,
    /// What has used it, the largest first.
    parts: Vec<RuleUsePart>,
}

/// What the tenant of the caller has used of the rule engine since the program has begun, by rule node and calculated field;
/// for the system administrator what tenants have used, the largest 100 of them.
#[utoipa::path(get, path = "/api/ruleEngine/usage", tag = "rule-engine", operation_id = "getRuleEngineUsage",
    responses((status = 200, body = RuleUsage)))]
async fn usage(ApiCall { api, caller }: ApiCall) -> Json<RuleUsage> {
    let report = if caller.tenant.is_null() {
        api.rule_usage.of_tenants(MAX_TENANTS)
    } else {
        api.rule_usage.of_tenant(caller.tenant)
    };
    let part = |part: &EntityRuleUsage| RuleUsePart {
        entity_id: part.entity,
        used: RuleUseInfo::of(&part.used),
    };
    Json(RuleUsage {
        total: RuleUseInfo::of(&report.total),
        parts: report.parts.iter().map(part).collect(),
    })
}
