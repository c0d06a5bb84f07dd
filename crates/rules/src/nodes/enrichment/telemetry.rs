//! Time series of the originator within an interval.

use std::sync::Arc;

use fieldline_model::EntityKey;
use fieldline_model::budget::EvaluationBudget;
use fieldline_model::timeseries::{Aggregation, AggregationBucket, DataPoint, PointOrder, RangeQuery};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::config_schema;
use crate::message::RuleMessage;
use crate::node::{Node, NodeConfigError, NodeContext, NodeError, NodeInitContext, NodeResult};
use crate::node_types::NodeType;
use crate::nodes::message_part::KeyNames;
use crate::nodes::text_template::TextTemplate;
use crate::nodes::time::TimeUnit;
use crate::services::NodeServices;

/// Most points of a key.
const MAX_LIMIT: i64 = 1000;
/// Bytes that they may take; a message of which they would take more fails.
const MAX_BYTES: usize = 8 << 20;

pub(crate) const NODES: &[NodeType] = &[NodeType {
    class: "metadata.TbGetTelemetryNode",
    name: "originator telemetry",
    description: "Adds time series of the originator within an interval to the metadata.",
    version: 2,
    upgrade,
    default_configuration: || {
        json!({
            "startInterval": 2,
            "endInterval": 1,
            "startIntervalPattern": "",
            "endIntervalPattern": "",
            "useMetadataIntervalPatterns": false,
            "startIntervalTimeUnit": "MINUTES",
            "endIntervalTimeUnit": "MINUTES",
            "fetchMode": "FIRST",
            "orderBy": "ASC",
            "aggregation": "NONE",
            "limit": MAX_LIMIT,
            "latestTsKeyNames": [],
        })
    },
    schema: config_schema::of::<Config>,
    make,
    ..NodeType::ENRICHMENT
}];

fn upgrade(from_version: i32, mut configuration: Value) -> Value {
    let Some(fields) = configuration.as_object_mut() else {
        return configuration;
    };
    let absent = |value: Option<&Value>| value.is_none_or(|value| value.is_null() || value == "");
    if from_version == 0 && !absent(fields.get("fetchMode")) {
        let order = match fields.get("fetchMode").and_then(Value::as_str) {
            Some("FIRST") => Some("ASC"),
            Some("LAST") => Some("DESC"),
            Some("ALL") => None,
            _ => {
                fields.insert("fetchMode".to_owned(), json!("LAST"));
                Some("DESC")
            }
        };
        if let Some(order) = order {
            fields.insert("orderBy".to_owned(), json!(order));
            fields.insert("aggregation".to_owned(), json!("NONE"));
        }
    }
    if from_version <= 1 {
        for (field, value) in [
            ("limit", json!(MAX_LIMIT)),
            ("aggregation", json!("NONE")),
            ("orderBy", json!("ASC")),
        ] {
            let matters = field == "limit" || fields.get("fetchMode").is_some_and(|mode| mode == "ALL");
            if matters && absent(fields.get(field)) {
                fields.insert(field.to_owned(), value);
            }
        }
    }
    configuration
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
enum FetchMode {
    First,
    Last,
    All,
}

#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
enum OrderDirection {
    Asc,
    Desc,
}

#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
enum FetchAggregation {
    None,
    Min,
    Max,
    Avg,
    Sum,
    Count,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Config {
    #[serde(default)]
    start_interval: i64,
    #[serde(default)]
    end_interval: i64,
    #[serde(default)]
    start_interval_pattern: TextTemplate,
    #[serde(default)]
    end_interval_pattern: TextTemplate,
    #[serde(default)]
    #[schemars(title = "Interval by patterns")]
    use_metadata_interval_patterns: bool,
    start_interval_time_unit: Option<TimeUnit>,
    end_interval_time_unit: Option<TimeUnit>,
    fetch_mode: Option<FetchMode>,
    order_by: Option<OrderDirection>,
    aggregation: Option<FetchAggregation>,
    #[serde(default)]
    #[schemars(title = "Most values of a key", range(min = 2, max = MAX_LIMIT))]
    limit: i64,
    #[schemars(title = "Keys", extend("x-editor" = "key"))]
    latest_ts_key_names: Option<Vec<String>>,
}

struct GetTelemetryNode {
    interval: FetchInterval,
    keys: KeyNames,
    read: TelemetryFetch,
}

enum FetchInterval {
    /// From and to so many milliseconds ago.
    Ago(i64, i64),
    Patterns(TextTemplate, TextTemplate),
}

/// How the points of a key are read.
#[derive(Debug, Clone, Copy)]
struct TelemetryFetch {
    mode: FetchMode,
    order: PointOrder,
    limit: usize,
    aggregation: Option<Aggregation>,
}

fn make(config: &NodeInitContext<'_>) -> Result<Arc<dyn Node>, NodeConfigError> {
    let config: Config = config.parse()?;
    let missing = |field: &str| NodeConfigError::new(field, "must be given");
    let names = config.latest_ts_key_names.unwrap_or_default();
    if names.is_empty() {
        return Err(NodeConfigError::new(
            "latestTsKeyNames",
            "at least one key is needed",
        ));
    }
    let first = |mode, order| TelemetryFetch {
        mode,
        order,
        limit: 1,
        aggregation: None,
    };
    let read = match config.fetch_mode.ok_or_else(|| missing("fetchMode"))? {
        FetchMode::First => first(FetchMode::First, PointOrder::Ascending),
        FetchMode::Last => first(FetchMode::Last, PointOrder::Descending),
        FetchMode::All => TelemetryFetch {
            mode: FetchMode::All,
            order: match config.order_by.ok_or_else(|| missing("orderBy"))? {
                OrderDirection::Asc => PointOrder::Ascending,
                OrderDirection::Desc => PointOrder::Descending,
            },
            limit: match config.limit {
                limit @ 2..=MAX_LIMIT => limit as usize,
                _ => {
                    return Err(NodeConfigError::new(
                        "limit",
                        format!("must be from 2 to {MAX_LIMIT}"),
                    ));
                }
            },
            aggregation: match config.aggregation.ok_or_else(|| missing("aggregation"))? {
                FetchAggregation::None => None,
                FetchAggregation::Min => Some(Aggregation::Min),
                FetchAggregation::Max => Some(Aggregation::Max),
                FetchAggregation::Avg => Some(Aggregation::Avg),
                FetchAggregation::Sum => Some(Aggregation::Sum),
                FetchAggregation::Count => Some(Aggregation::Count),
            },
        },
    };
    let interval = if config.use_metadata_interval_patterns {
        FetchInterval::Patterns(config.start_interval_pattern, config.end_interval_pattern)
    } else {
        let start = config
            .start_interval_time_unit
            .ok_or_else(|| missing("startIntervalTimeUnit"))?;
        let end = config
            .end_interval_time_unit
            .ok_or_else(|| missing("endIntervalTimeUnit"))?;
        FetchInterval::Ago(
            start.millis(config.start_interval),
            end.millis(config.end_interval),
        )
    };
    Ok(Arc::new(GetTelemetryNode {
        interval,
        keys: KeyNames::new(&names),
        read,
    }))
}

impl Node for GetTelemetryNode {
    fn handle(&self, ctx: &mut NodeContext<'_>, mut msg: RuleMessage) -> NodeResult {
        let asked = self
            .interval
            .of(&mut msg, ctx.now_ms)
            .and_then(|window| Ok((window, self.keys.of(&mut msg)?)));
        let (window, keys) = match asked {
            Ok(asked) => asked,
            Err(error) => return NodeResult::Fail(msg, error),
        };
        if window.start > window.end {
            return NodeResult::fail(msg, "the start of the interval is after its end");
        }
        let services = Arc::clone(ctx.services);
        let read = self.read;
        NodeResult::wait(async move {
            for key in keys.iter() {
                let subject = msg.subject();
                let points = read.points(&services, subject, key, window, &mut msg.budget);
                match points.await {
                    Ok(points) if points.is_empty() => {}
                    Ok(points) => msg.meta.set(key.as_str(), read.text(&points)),
                    Err(error) => return NodeResult::Fail(msg, error),
                }
            }
            NodeResult::success(msg)
        })
    }
}

impl FetchInterval {
    fn of(&self, msg: &mut RuleMessage, now_ms: i64) -> Result<AggregationBucket, NodeError> {
        let (start, end) = match self {
            Self::Ago(start, end) => (now_ms.saturating_sub(*start), now_ms.saturating_sub(*end)),
            Self::Patterns(start, end) => (time(start, msg)?, time(end, msg)?),
        };
        Ok(AggregationBucket { start, end })
    }
}

fn time(pattern: &TextTemplate, msg: &mut RuleMessage) -> Result<i64, NodeError> {
    let text = pattern.resolve(msg)?;
    text.trim().parse().map_err(|_| {
        let problem = if text == pattern.text() {
            "is undefined"
        } else {
            "has invalid format"
        };
        NodeError::new(format!("message value '{}' {problem}", pattern.text()))
    })
}

impl TelemetryFetch {
    async fn points(
        self,
        services: &NodeServices,
        subject: EntityKey,
        key: &str,
        AggregationBucket { start, end }: AggregationBucket,
        budget: &mut EvaluationBudget,
    ) -> Result<Vec<DataPoint>, NodeError> {
        let series = &services.series;
        if let Some(aggregation) = self.aggregation {
            let bucket = AggregationBucket {
                start,
                end: end.max(start.saturating_add(1)),
            };
            return Ok(series.aggregate(subject, key, aggregation, &[bucket]).await?);
        }
        let query = RangeQuery {
            start,
            end,
            limit: self.limit,
            order: self.order,
        };
        let points = series.range_within(subject, key, query, MAX_BYTES).await?;
        budget.make(points.iter().map(DataPoint::bytes).sum())?;
        Ok(points)
    }

    /// All points as an array of `{ts, value}`, a single one as a quoted text.
    fn text(self, points: &[DataPoint]) -> String {
        if self.mode == FetchMode::All {
            let points = points
                .iter()
                .map(|point| json!({"ts": point.ts, "value": point.value.to_json()}));
            return Value::Array(points.collect()).to_string();
        }
        points
            .first()
            .map(|point| Value::from(point.value.to_text()).to_string())
            .unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use fieldline_model::message::MsgType;

    use super::*;
    use crate::nodes::tests::{NOW, World, nobody, upgraded};

    const CLASS: &str = "metadata.TbGetTelemetryNode";

    #[tokio::test(flavor = "multi_thread")]
    async fn points_of_an_interval_are_added() {
        let mut world = World::new().await;
        let device = world.device("d", json!(null)).await;
        for (ago, value) in [(130, 0.5), (110, 1.5), (90, 2.5), (70, 3.5), (50, 4.5)] {
            world
                .telemetry(device, NOW - ago * 1000, json!({"t": value, "s": "x"}))
                .await;
        }
        let at = |ago: i64, value: f64| json!({"ts": NOW - ago * 1000, "value": value});
        let single = |text: &str| json!(text).to_string();
        for (patch, expected) in [
            (json!({}), single("1.5")),
            (json!({"fetchMode": "LAST"}), single("3.5")),
            (
                json!({"fetchMode": "ALL"}),
                json!([at(110, 1.5), at(90, 2.5), at(70, 3.5)]).to_string(),
            ),
            (
                json!({"fetchMode": "ALL", "orderBy": "DESC", "limit": 2}),
                json!([at(70, 3.5), at(90, 2.5)]).to_string(),
            ),
            (
                json!({"fetchMode": "ALL", "aggregation": "SUM"}),
                json!([at(90, 7.5)]).to_string(),
            ),
            (
                json!({"fetchMode": "LAST", "startInterval": 100, "startIntervalTimeUnit": "SECONDS",
                    "endInterval": 80_000, "endIntervalTimeUnit": "MILLISECONDS"}),
                single("2.5"),
            ),
        ] {
            let mut patch = patch;
            patch["latestTsKeyNames"] = json!(["${key}", "none"]);
            let node = world.node(CLASS, patch.clone());
            let metadata = [("key", "t")].into_iter().collect();
            let msg = world.msg_with(MsgType::PostTelemetry, device, &json!({}), metadata);
            let out = world.one(&node, msg).await;
            assert_eq!(out.meta("t"), Some(expected), "{patch}");
            assert_eq!(out.meta("none"), None);
        }
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn the_message_may_say_the_interval() {
        let mut world = World::new().await;
        let device = world.device("d", json!(null)).await;
        world.telemetry(device, 500, json!({"t": 1})).await;
        let node = world.node(
            CLASS,
            json!({
                "latestTsKeyNames": ["t"], "useMetadataIntervalPatterns": true,
                "startIntervalPattern": "${from}", "endIntervalPattern": "$[to]",
            }),
        );
        for (from, to, expected) in [
            ("0", json!(1000), Ok(Some("\"1\""))),
            ("501", json!(1000), Ok(None)),
            ("1000", json!(0), Err("after its end")),
            ("x", json!(0), Err("'${from}' has invalid format")),
            ("0", json!(null), Err("'$[to]' has invalid format")),
            ("0", json!([]), Err("'$[to]' is undefined")),
        ] {
            let metadata = [("from", from)].into_iter().collect();
            let msg = world.msg_with(MsgType::PostTelemetry, device, &json!({ "to": to }), metadata);
            let out = world.one(&node, msg).await;
            match expected {
                Ok(value) => assert_eq!(out.meta("t").as_deref(), value),
                Err(text) => assert!(out.error.unwrap().contains(text)),
            }
        }
        let msg = world.msg(MsgType::PostTelemetry, nobody(), &json!({"to": 1}));
        assert_eq!(world.one(&node, msg).await.label, "Failure");
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn wrong_and_older_configurations() {
        let world = World::new().await;
        let with = |mut patch: Value| {
            patch["latestTsKeyNames"] = json!(["t"]);
            world.wrong(CLASS, patch)
        };
        assert_eq!(world.wrong(CLASS, json!({})), "latestTsKeyNames");
        assert_eq!(with(json!({"fetchMode": null})), "fetchMode");
        assert_eq!(with(json!({"fetchMode": "ALL", "limit": 1})), "limit");
        assert_eq!(with(json!({"fetchMode": "ALL", "limit": 1001})), "limit");
        assert_eq!(
            with(json!({"startIntervalTimeUnit": "YEARS"})),
            "startIntervalTimeUnit"
        );
        for (version, old, new) in [
            (
                0,
                json!({"fetchMode": "LAST"}),
                json!({"fetchMode": "LAST", "orderBy": "DESC", "aggregation": "NONE", "limit": 1000}),
            ),
            (
                0,
                json!({"fetchMode": "ANY"}),
                json!({"fetchMode": "LAST", "orderBy": "DESC", "aggregation": "NONE", "limit": 1000}),
            ),
            (
                0,
                json!({"fetchMode": "ALL", "orderBy": "", "aggregation": null, "limit": 5}),
                json!({"fetchMode": "ALL", "orderBy": "ASC", "aggregation": "NONE", "limit": 5}),
            ),
            (
                1,
                json!({"fetchMode": "ALL"}),
                json!({"fetchMode": "ALL", "limit": 1000, "aggregation": "NONE", "orderBy": "ASC"}),
            ),
            (2, json!({"fetchMode": "ALL"}), json!({"fetchMode": "ALL"})),
        ] {
            assert_eq!(upgraded(CLASS, version, old), new);
        }
    }
}
