//! Statistics of the broker and of its clients, and the history of the former.

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::Path;
use axum::response::{IntoResponse as _, Response};
use fieldline_core::broker_statistics;
use fieldline_model::EntityKey;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use utoipa_axum::routes;

use super::{NODE, admin_of, list_of, required};
use crate::audit::AuditRule;
use crate::caller::ApiCall;
use crate::endpoint::{ApiRoutes, S};
use crate::error::ApiResult;
use crate::extract::{QueryParams, flag};
use crate::telemetry::{RangeParams, SeriesRead, SeriesRemoval, TelemetryKeyParams, TelemetryParams};

/// What TBMQ calls all nodes together.
const TOTAL: &str = "total";

pub(super) fn routes() -> ApiRoutes {
    ApiRoutes::default()
        .add(S.reads(routes!(latest)))
        .add(S.reads(routes!(history)))
        .add(S.changes(routes!(delete_history), AuditRule::Nothing))
}

/// A value of the statistics.
#[derive(Serialize, utoipa::ToSchema)]
struct BrokerStatisticsValue {
    /// Its time, milliseconds.
    ts: i64,
    /// The value: a number, or a text if that was asked for.
    value: Value,
}

#[derive(Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(rename_all = "camelCase")]
struct StatisticsParams {
    /// `total`, the node `fieldline`, or a client identifier.
    #[param(required = true, value_type = String)]
    entity_id: Option<String>,
    /// Comma-joined keys; all if there are none.
    keys: Option<String>,
    /// Whether numbers are numbers; texts with `false`.
    #[serde(default, deserialize_with = "flag")]
    use_strict_data_types: Option<bool>,
}

type Statistics = BTreeMap<&'static str, [BrokerStatisticsValue; 1]>;

/// Returns the statistics of the MQTT broker: traffic of the last whole minute, and what it has now. For a client, its
/// messages since the server or its session began. Nothing if there is no such client.
#[utoipa::path(get, path = "/api/timeseries/latest", tag = "mqtt-broker", operation_id = "getLatestBrokerStatistics",
    params(StatisticsParams), responses((status = 200, body = BTreeMap<String, Vec<BrokerStatisticsValue>>)))]
async fn latest(
    ApiCall { api, .. }: ApiCall,
    QueryParams(params): QueryParams<StatisticsParams>,
) -> ApiResult<Json<Statistics>> {
    let admin = admin_of(&api)?;
    let entity = required("entityId", params.entity_id)?;
    let (ts, values): (i64, Vec<(&'static str, u64)>) = match entity.as_str() {
        TOTAL | NODE => {
            let all = admin.statistics();
            (all.at_ms, broker_statistics::named(&all).to_vec())
        }
        client_id => {
            let Some(traffic) = admin.client_traffic(client_id) else {
                return Ok(Json(Statistics::new()));
            };
            let ([received0, received1, received2], [sent0, sent1, sent2]) = (traffic.received, traffic.sent);
            let values = vec![
                ("receivedPubMsgs", received0 + received1 + received2),
                ("qos0ReceivedPubMsgs", received0),
                ("qos1ReceivedPubMsgs", received1),
                ("qos2ReceivedPubMsgs", received2),
                ("sentPubMsgs", sent0 + sent1 + sent2),
                ("qos0SentPubMsgs", sent0),
                ("qos1SentPubMsgs", sent1),
                ("qos2SentPubMsgs", sent2),
                ("droppedMsgs", traffic.dropped),
                ("queuedMsgs", traffic.queued),
            ];
            (api.clock.now_ms(), values)
        }
    };
    let keys = list_of("keys", params.keys.as_deref(), |key| Some(key.to_owned()))?;
    let are_numbers = params.use_strict_data_types.unwrap_or(true);
    let shown = values
        .into_iter()
        .filter(|(key, _)| keys.is_empty() || keys.iter().any(|asked| asked == key));
    let shown = shown.map(|(key, number)| {
        let value = match are_numbers {
            true => json!(number),
            false => json!(number.to_string()),
        };
        (key, [BrokerStatisticsValue { ts, value }])
    });
    Ok(Json(shown.collect()))
}

/// Returns the subject of the history; clients have none.
fn subject_of(entity: &str) -> Option<EntityKey> {
    matches!(entity, TOTAL | NODE).then(broker_statistics::subject)
}

/// Whether values keep their types.
#[derive(utoipa::IntoParams)]
#[into_params(parameter_in = Query, rename_all = "camelCase")]
#[expect(dead_code, reason = "describes a parameter")]
struct StrictTypesParam {
    /// Whether numbers are numbers (default); texts with `false`.
    use_strict_data_types: Option<bool>,
}

/// Returns the statistics of the MQTT broker by minute for a time range, as they were stored or aggregated. They are kept
/// for seven days. Nothing for a client.
#[utoipa::path(get, path = "/api/timeseries/{entityId}/values", tag = "mqtt-broker",
    operation_id = "getBrokerStatisticsHistory",
    params(("entityId" = String, Path, description = "`total` or the node `fieldline`"), TelemetryKeyParams, RangeParams,
        StrictTypesParam),
    responses((status = 200, body = BTreeMap<String, Vec<BrokerStatisticsValue>>)))]
async fn history(
    ApiCall { api, caller }: ApiCall,
    Path(entity): Path<String>,
    params: TelemetryParams,
) -> ApiResult<Response> {
    admin_of(&api)?;
    let read = SeriesRead::strict_by_default(&params)?;
    match subject_of(&entity) {
        Some(subject) => read.answer(&api, &caller, subject).await,
        None => Ok(Json(Statistics::new()).into_response()),
    }
}

/// The minutes to delete.
#[derive(utoipa::IntoParams)]
#[into_params(parameter_in = Query, rename_all = "camelCase")]
#[expect(dead_code, reason = "describes parameters")]
struct HistoryDeletionParams {
    /// Whether to delete all minutes; otherwise `startTs` and `endTs` are required.
    delete_all_data_for_keys: Option<bool>,
    /// Start of the range, inclusive, milliseconds.
    start_ts: Option<i64>,
    /// End of the range, exclusive, milliseconds.
    end_ts: Option<i64>,
}

/// Deletes minutes of the named statistics of the MQTT broker: all of them, or those in a time range. There is one history
/// for `total` and the node. Does nothing for a client.
#[utoipa::path(delete, path = "/api/timeseries/{entityId}/delete", tag = "mqtt-broker",
    operation_id = "deleteBrokerStatisticsHistory",
    params(("entityId" = String, Path, description = "`total` or the node `fieldline`"), TelemetryKeyParams,
        HistoryDeletionParams),
    responses((status = 200)))]
async fn delete_history(
    ApiCall { api, .. }: ApiCall,
    Path(entity): Path<String>,
    params: TelemetryParams,
) -> ApiResult<()> {
    admin_of(&api)?;
    let removal = SeriesRemoval::from_params(&params)?;
    if let Some(subject) = subject_of(&entity) {
        removal.carry_out(&api, subject).await?;
    }
    Ok(())
}
