//! Statistics of the broker and of its clients.

use std::collections::BTreeMap;

use axum::Json;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use utoipa_axum::routes;

use super::{NODE, admin_of, list_of, required};
use crate::caller::ApiCall;
use crate::endpoint::{ApiRoutes, S};
use crate::error::ApiResult;
use crate::extract::{QueryParams, flag};

/// What TBMQ calls all nodes together.
const TOTAL: &str = "total";

pub(super) fn routes() -> ApiRoutes {
    ApiRoutes::default().add(S.reads(routes!(latest)))
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
            let values = vec![
                ("incomingMsgs", all.incoming),
                ("outgoingMsgs", all.outgoing),
                ("droppedMsgs", all.dropped),
                ("sessions", all.sessions),
                ("subscriptions", all.subscriptions),
                ("retainedMsgs", all.retained),
                ("processedBytes", all.inbound_bytes + all.outbound_bytes),
                ("inboundPayloadTraffic", all.inbound_bytes),
                ("outboundPayloadTraffic", all.outbound_bytes),
            ];
            (all.at_ms, values)
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
