//! Usage of the rule engine by tenants: scripts, time, and hits of limits.

use axum::Json;
use fieldline_core::ports::{EntityRuleUsage, RuleUsageCounters};
use fieldline_model::EntityId;
use serde::Serialize;
use utoipa_axum::routes;

use crate::caller::ApiCall;
use crate::endpoint::{ApiRoutes, ST};

/// Most tenants in the list.
const MAX_TENANTS: usize = 100;

pub(super) fn routes() -> ApiRoutes {
    ApiRoutes::default().add(ST.reads(routes!(usage)))
}

/// Usage since the start of the program.
#[derive(Serialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
struct RuleUseInfo {
    /// Number of script calls.
    script_calls: u64,
    /// Run time of scripts, microseconds.
    script_time_micros: u64,
    /// Time that script calls have waited for a thread, microseconds.
    script_wait_micros: u64,
    /// Bytes of script arguments.
    script_bytes: u64,
    /// Evaluations that exceeded a limit.
    evaluation_overruns: u64,
    /// Script calls that were refused.
    script_calls_refused: u64,
    /// Time that messages have taken on the queue threads, without scripts, microseconds.
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

/// Usage of one rule node, calculated field or tenant.
#[derive(Serialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
struct RuleUsePart {
    /// The rule node, calculated field or tenant; script tests count for the tenant itself.
    #[schema(value_type = Object)]
    entity_id: EntityId,
    /// Its usage.
    #[serde(flatten)]
    used: RuleUseInfo,
}

/// Usage of the rule engine since the start of the program.
#[derive(Serialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
struct RuleUsage {
    /// The total.
    total: RuleUseInfo,
    /// Usage by entity, the largest first.
    parts: Vec<RuleUsePart>,
}

/// Returns the usage of the rule engine since the start of the program. Tenants see their own, by rule node and
/// calculated field; system administrators see the 100 tenants with the largest.
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
