//! Attributes and latest values of the originator, or of a device related to it.

use std::sync::Arc;

use fieldline_model::EntityKey;
use fieldline_model::kv;
use fieldline_model::timeseries::AttributeScope;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::config_schema;
use crate::message::RuleMessage;
use crate::node::{Node, NodeConfigError, NodeContext, NodeError, NodeInitContext, NodeResult};
use crate::node_types::NodeType;
use crate::nodes::message_part::{KeyNames, MessagePart, required, upgrade_flag};
use crate::nodes::relations::DeviceRelationsConfig;
use crate::services::NodeServices;

pub(crate) const NODES: &[NodeType] = &[
    NodeType {
        class: "metadata.TbGetAttributesNode",
        name: "originator attributes",
        description: "Adds attributes and latest values of the originator.",
        version: 1,
        upgrade,
        default_configuration: defaults,
        schema: config_schema::of::<Config>,
        make: make_originator,
        ..NodeType::ENRICHMENT
    },
    NodeType {
        class: "metadata.TbGetDeviceAttrNode",
        name: "related device attributes",
        description: "Adds attributes and latest values of the first device that the originator is related to.",
        version: 1,
        upgrade,
        default_configuration: || {
            let mut configuration = defaults();
            configuration["deviceRelationsQuery"] = json!({
                "direction": "FROM",
                "maxLevel": 1,
                "relationType": "Contains",
                "deviceTypes": ["default"],
                "fetchLastLevelOnly": false,
            });
            configuration
        },
        schema: config_schema::of_both::<RelatedDeviceConfig, Config>,
        make: make_related,
        ..NodeType::ENRICHMENT
    },
];

fn defaults() -> Value {
    json!({
        "fetchTo": "METADATA",
        "clientAttributeNames": [],
        "sharedAttributeNames": [],
        "serverAttributeNames": [],
        "latestTsKeyNames": [],
        "tellFailureIfAbsent": true,
        "getLatestValueWithTs": false,
    })
}

fn upgrade(from_version: i32, mut configuration: Value) -> Value {
    if from_version == 0 {
        if let Some(fields) = configuration.as_object_mut() {
            let old = fields.get("fetchToData").filter(|old| !old.is_null());
            if old.is_none() {
                fields.shift_remove("fetchToData");
                fields.insert("fetchTo".to_owned(), json!("METADATA"));
            }
        }
        upgrade_flag(&mut configuration, "fetchToData", "fetchTo", MessagePart::Data);
    }
    configuration
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
struct Config {
    #[schemars(title = "Add to")]
    fetch_to: Option<MessagePart>,
    #[schemars(extend("x-editor" = "key"))]
    client_attribute_names: Option<Vec<String>>,
    #[schemars(extend("x-editor" = "key"))]
    shared_attribute_names: Option<Vec<String>>,
    #[schemars(extend("x-editor" = "key"))]
    server_attribute_names: Option<Vec<String>>,
    #[schemars(title = "Latest values", extend("x-editor" = "key"))]
    latest_ts_key_names: Option<Vec<String>>,
    #[schemars(title = "Fail if one is absent")]
    tell_failure_if_absent: Option<bool>,
    #[schemars(title = "Latest values with their time")]
    get_latest_value_with_ts: bool,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            fetch_to: None,
            client_attribute_names: None,
            shared_attribute_names: None,
            server_attribute_names: None,
            latest_ts_key_names: None,
            tell_failure_if_absent: Some(true),
            get_latest_value_with_ts: false,
        }
    }
}

struct GetAttributesNode {
    fetch_to: MessagePart,
    scopes: [(AttributeScope, &'static str, KeyNames); 3],
    latest: KeyNames,
    fail_if_absent: bool,
    with_ts: bool,
    related: Option<Arc<DeviceRelationsConfig>>,
}

fn make_originator(config: &NodeInitContext<'_>) -> Result<Arc<dyn Node>, NodeConfigError> {
    Ok(Arc::new(make(config, None)?))
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct RelatedDeviceConfig {
    device_relations_query: DeviceRelationsConfig,
}

fn make_related(config: &NodeInitContext<'_>) -> Result<Arc<dyn Node>, NodeConfigError> {
    let related: RelatedDeviceConfig = config.parse()?;
    Ok(Arc::new(make(
        config,
        Some(Arc::new(related.device_relations_query)),
    )?))
}

fn make(
    config: &NodeInitContext<'_>,
    related: Option<Arc<DeviceRelationsConfig>>,
) -> Result<GetAttributesNode, NodeConfigError> {
    let config: Config = config.parse()?;
    let keys = |names: Option<Vec<String>>| KeyNames::new(&names.unwrap_or_default());
    Ok(GetAttributesNode {
        fetch_to: required(config.fetch_to, "fetchTo")?,
        scopes: [
            (AttributeScope::Client, "cs_", keys(config.client_attribute_names)),
            (
                AttributeScope::Shared,
                "shared_",
                keys(config.shared_attribute_names),
            ),
            (AttributeScope::Server, "ss_", keys(config.server_attribute_names)),
        ],
        latest: keys(config.latest_ts_key_names),
        fail_if_absent: config.tell_failure_if_absent.unwrap_or(true),
        with_ts: config.get_latest_value_with_ts,
        related,
    })
}

/// What one message asks for.
struct AttributeFetch {
    fetch_to: MessagePart,
    scopes: [(AttributeScope, &'static str, Arc<[String]>); 3],
    latest: Arc<[String]>,
    fail_if_absent: bool,
    with_ts: bool,
}

impl Node for GetAttributesNode {
    fn handle(&self, ctx: &mut NodeContext<'_>, mut msg: RuleMessage) -> NodeResult {
        let fetch = match self.fetch(&mut msg) {
            Ok(fetch) => fetch,
            Err(error) => return NodeResult::Fail(msg, error),
        };
        let services = Arc::clone(ctx.services);
        let related = self.related.clone();
        NodeResult::wait(async move {
            let entity = match &related {
                None => Ok(Some(msg.originator)),
                Some(query) => query.first(&services, msg.tenant, msg.originator).await,
            };
            let entity = match entity {
                Ok(Some(entity)) => entity,
                Ok(None) => {
                    return NodeResult::fail(msg, "failed to find a related device by the relation query");
                }
                Err(error) => return NodeResult::Fail(msg, error),
            };
            let subject = EntityKey {
                tenant: msg.tenant,
                entity,
            };
            match fetch.run(&services, subject, &mut msg).await {
                Ok(absent) if absent.is_empty() => NodeResult::success(msg),
                Ok(absent) => {
                    let text = format!("these keys do not exist: {}", absent.join("; "));
                    NodeResult::fail(msg, text)
                }
                Err(error) => NodeResult::Fail(msg, error),
            }
        })
    }
}

impl GetAttributesNode {
    fn fetch(&self, msg: &mut RuleMessage) -> Result<AttributeFetch, NodeError> {
        self.fetch_to.check(msg)?;
        let mut keys = |index: usize| -> Result<_, NodeError> {
            let (scope, prefix, keys) = &self.scopes[index];
            Ok((*scope, *prefix, keys.of(msg)?))
        };
        let scopes = [keys(0)?, keys(1)?, keys(2)?];
        Ok(AttributeFetch {
            fetch_to: self.fetch_to,
            scopes,
            latest: self.latest.of(msg)?,
            fail_if_absent: self.fail_if_absent,
            with_ts: self.with_ts,
        })
    }
}

impl AttributeFetch {
    /// Adds what exists; returns what does not, if that matters.
    async fn run(
        &self,
        services: &NodeServices,
        subject: EntityKey,
        msg: &mut RuleMessage,
    ) -> Result<Vec<String>, NodeError> {
        let mut absent = Vec::new();
        for (scope, prefix, keys) in &self.scopes {
            if keys.is_empty() {
                continue;
            }
            let found = services.attributes.get(subject, *scope, Some(keys)).await?;
            for attribute in &found {
                self.fetch_to
                    .put(msg, &format!("{prefix}{}", attribute.key), &attribute.value)?;
            }
            self.note_absent(
                scope.name(),
                keys,
                |key| found.iter().any(|it| it.key == key),
                &mut absent,
            );
        }
        if !self.latest.is_empty() {
            let found = services.series.latest(subject, Some(&self.latest)).await?;
            for latest in &found {
                let point = &latest.point;
                if self.with_ts {
                    let value = json!({"ts": point.ts, "value": point.value.to_json()});
                    self.fetch_to
                        .put(msg, &latest.key, &kv::KvValue::Json(value.to_string().into()))?;
                } else {
                    self.fetch_to.put(msg, &latest.key, &point.value)?;
                }
            }
            self.note_absent(
                "LATEST_TS",
                &self.latest,
                |key| found.iter().any(|it| it.key == key),
                &mut absent,
            );
        }
        Ok(absent)
    }

    fn note_absent(
        &self,
        place: &str,
        keys: &[String],
        has: impl Fn(&str) -> bool,
        absent: &mut Vec<String>,
    ) {
        if !self.fail_if_absent {
            return;
        }
        let missing: Vec<&str> = keys.iter().map(String::as_str).filter(|key| !has(key)).collect();
        if !missing.is_empty() {
            absent.push(format!("{place}: {}", missing.join(", ")));
        }
    }
}

#[cfg(test)]
mod tests {
    use fieldline_model::message::MsgType;

    use super::*;
    use crate::nodes::tests::{NOW, World, upgraded};

    #[tokio::test(flavor = "multi_thread")]
    async fn attributes_and_latest_values_are_added() {
        let mut world = World::new().await;
        let device = world.device("d", json!(null)).await;
        world
            .attributes(device, AttributeScope::Client, json!({"fw": "1.0"}))
            .await;
        world
            .attributes(device, AttributeScope::Shared, json!({"limit": 5.0}))
            .await;
        world
            .attributes(device, AttributeScope::Server, json!({"thing": {"a": [1]}}))
            .await;
        world
            .telemetry(device, NOW - 5, json!({"t": 20.5, "on": true}))
            .await;
        let class = "metadata.TbGetAttributesNode";
        let patch = json!({
            "clientAttributeNames": ["fw"], "sharedAttributeNames": ["$[k]"], "serverAttributeNames": ["${deviceName}"],
            "latestTsKeyNames": ["t", "on"],
        });
        let node = world.node(class, patch.clone());
        let msg = world.msg(MsgType::PostTelemetry, device, &json!({"k": "limit"}));
        let out = world.one(&node, msg.clone()).await;
        assert_eq!(out.label, "Success");
        for (key, value) in [
            ("cs_fw", "1.0"),
            ("shared_limit", "5.0"),
            ("ss_thing", r#"{"a":[1]}"#),
            ("t", "20.5"),
            ("on", "true"),
        ] {
            assert_eq!(out.meta(key).as_deref(), Some(value), "{key}");
        }
        assert_eq!(out.body(), json!({"k": "limit"}));
        let mut patch = patch;
        patch["fetchTo"] = json!("DATA");
        patch["getLatestValueWithTs"] = json!(true);
        let node = world.node(class, patch);
        let out = world.one(&node, msg.clone()).await;
        assert_eq!(
            out.body(),
            json!({
                "k": "limit", "cs_fw": "1.0", "shared_limit": 5.0, "ss_thing": {"a": [1]},
                "t": {"ts": NOW - 5, "value": 20.5}, "on": {"ts": NOW - 5, "value": true},
            })
        );
        let array = world.msg(MsgType::PostTelemetry, device, &json!([]));
        assert_eq!(world.one(&node, array).await.label, "Failure");
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn what_is_absent_fails_or_does_not_matter() {
        let mut world = World::new().await;
        let device = world.device("d", json!(null)).await;
        world
            .attributes(device, AttributeScope::Server, json!({"a": 1}))
            .await;
        let class = "metadata.TbGetAttributesNode";
        let keys = json!({"serverAttributeNames": ["a", "b"], "latestTsKeyNames": ["c"]});
        let node = world.node(class, keys.clone());
        let msg = world.msg(MsgType::PostTelemetry, device, &json!({}));
        let out = world.one(&node, msg.clone()).await;
        assert_eq!(
            out.meta("ss_a").as_deref(),
            Some("1"),
            "what exists is added all the same"
        );
        assert!(out.error.unwrap().contains("SERVER_SCOPE: b; LATEST_TS: c"));
        let mut keys = keys;
        keys["tellFailureIfAbsent"] = json!(false);
        let node = world.node(class, keys);
        assert_eq!(world.one(&node, msg).await.label, "Success");
        assert_eq!(world.wrong(class, json!({"fetchTo": null})), "fetchTo");
        assert_eq!(
            world.wrong(class, json!({"latestTsKeyNames": 1})),
            "latestTsKeyNames"
        );
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn the_first_related_device_of_a_type_counts() {
        let mut world = World::new().await;
        let profile = world.device_profile("Pump", json!(null)).await;
        let asset = world.asset("a", "Building", json!(null)).await;
        let other = world.device("other", json!(null)).await;
        let pump = world
            .device("pump", json!({"deviceProfileId": profile, "type": "Pump"}))
            .await;
        world.relate(asset, other, "Contains").await;
        world.relate(asset, pump, "Contains").await;
        world
            .attributes(pump, AttributeScope::Server, json!({"a": "pump"}))
            .await;
        let query = |types: Value| {
            json!({
                "serverAttributeNames": ["a"],
                "deviceRelationsQuery": {
                    "direction": "FROM", "maxLevel": 1, "relationType": "Contains", "deviceTypes": types,
                },
            })
        };
        let class = "metadata.TbGetDeviceAttrNode";
        let node = world.node(class, query(json!(["Pump"])));
        let msg = world.msg(MsgType::PostTelemetry, asset, &json!({}));
        assert_eq!(
            world.one(&node, msg.clone()).await.meta("ss_a").as_deref(),
            Some("pump")
        );
        let node = world.node(class, query(json!(["Valve"])));
        assert_eq!(world.one(&node, msg).await.label, "Failure");
        assert_eq!(
            world.wrong(class, json!({"deviceRelationsQuery": null})),
            "deviceRelationsQuery"
        );
    }

    #[test]
    fn older_configurations_say_with_a_flag_where_values_go() {
        for (old, new) in [
            (json!({"fetchToData": true}), json!({"fetchTo": "DATA"})),
            (json!({"fetchToData": false}), json!({"fetchTo": "METADATA"})),
            (json!({"fetchToData": null}), json!({"fetchTo": "METADATA"})),
            (json!({}), json!({"fetchTo": "METADATA"})),
        ] {
            assert_eq!(upgraded("metadata.TbGetAttributesNode", 0, old), new);
        }
    }
}
