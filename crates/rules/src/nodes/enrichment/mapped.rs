//! Attributes, latest values or fields of the customer, the tenant or a related entity, under names of one's choice.

use std::sync::Arc;

use fieldline_model::timeseries::AttributeScope;
use fieldline_model::{EntityId, EntityKey};
use schemars::{JsonSchema, Schema};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::fields::field_text;
use crate::config_schema;
use crate::message::RuleMessage;
use crate::node::{Node, NodeConfigError, NodeContext, NodeError, NodeInitContext, NodeResult};
use crate::node_types::NodeType;
use crate::nodes::entities;
use crate::nodes::message_part::{MessagePart, required};
use crate::nodes::relations::RelationsConfig;
use crate::nodes::text::plain;
use crate::nodes::text_template::TextTemplate;
use crate::services::NodeServices;

pub(crate) const NODES: &[NodeType] = &[
    NodeType {
        class: "metadata.TbGetCustomerAttributeNode",
        name: "customer attributes",
        description: "Adds attributes or latest values of the originator's customer.",
        version: 1,
        upgrade,
        default_configuration: defaults,
        schema: config_schema::of::<Config>,
        make: |config| make(config, MappedDataSource::Customer, false),
        ..NodeType::ENRICHMENT
    },
    NodeType {
        class: "metadata.TbGetTenantAttributeNode",
        name: "tenant attributes",
        description: "Adds attributes or latest values of the tenant.",
        version: 1,
        upgrade,
        default_configuration: defaults,
        schema: config_schema::of::<Config>,
        make: |config| make(config, MappedDataSource::Tenant, false),
        ..NodeType::ENRICHMENT
    },
    NodeType {
        class: "metadata.TbGetRelatedAttributeNode",
        name: "related entity data",
        description: "Adds attributes, latest values or fields of the first entity that the originator is related to.",
        version: 1,
        upgrade,
        default_configuration: || {
            json!({
                "fetchTo": "METADATA",
                "dataMapping": {"serialNumber": "sn"},
                "dataToFetch": "ATTRIBUTES",
                "relationsQuery": {
                    "direction": "FROM",
                    "maxLevel": 1,
                    "filters": [{"relationType": "Contains", "entityTypes": [], "negate": false}],
                    "fetchLastLevelOnly": false,
                },
            })
        },
        schema: config_schema::of_both::<Config, RelatedEntityConfig>,
        make: make_related,
        ..NodeType::ENRICHMENT
    },
];

fn defaults() -> Value {
    json!({"fetchTo": "METADATA", "dataMapping": {"alarmThreshold": "threshold"}, "dataToFetch": "ATTRIBUTES"})
}

fn upgrade(from_version: i32, mut configuration: Value) -> Value {
    if from_version != 0 {
        return configuration;
    }
    let Some(fields) = configuration.as_object_mut() else {
        return configuration;
    };
    if let Some(mapping) = fields.shift_remove("attrMapping") {
        fields.insert("dataMapping".to_owned(), mapping);
    }
    let data = match fields.get("telemetry").map(plain).as_deref() {
        Some("true") => "LATEST_TELEMETRY",
        Some("false") => "ATTRIBUTES",
        _ => return configuration,
    };
    fields.shift_remove("telemetry");
    fields.insert("dataToFetch".to_owned(), json!(data));
    fields.insert("fetchTo".to_owned(), json!("METADATA"));
    configuration
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
enum DataToFetch {
    Attributes,
    LatestTelemetry,
    Fields,
}

#[derive(Clone)]
enum MappedDataSource {
    Customer,
    Tenant,
    Related(Arc<RelationsConfig>),
}

struct GetMappedDataNode {
    fetch_to: MessagePart,
    what: DataToFetch,
    mapping: Vec<(TextTemplate, TextTemplate)>,
    source: MappedDataSource,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct RelatedEntityConfig {
    #[serde(rename = "dataToFetch")]
    _data_to_fetch: Option<DataToFetch>,
    relations_query: RelationsConfig,
}

fn make_related(config: &NodeInitContext<'_>) -> Result<Arc<dyn Node>, NodeConfigError> {
    let related: RelatedEntityConfig = config.parse()?;
    make(
        config,
        MappedDataSource::Related(Arc::new(related.relations_query)),
        true,
    )
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Config {
    #[schemars(title = "Add to")]
    fetch_to: Option<MessagePart>,
    #[schemars(transform = without_fields)]
    data_to_fetch: Option<DataToFetch>,
    #[schemars(schema_with = "config_schema::text_pairs")]
    data_mapping: Option<Map<String, Value>>,
}

fn make(
    config: &NodeInitContext<'_>,
    source: MappedDataSource,
    fields: bool,
) -> Result<Arc<dyn Node>, NodeConfigError> {
    let config: Config = config.parse()?;
    let what = config
        .data_to_fetch
        .filter(|what| fields || *what != DataToFetch::Fields);
    let allowed = if fields {
        "ATTRIBUTES, LATEST_TELEMETRY or FIELDS"
    } else {
        "ATTRIBUTES or LATEST_TELEMETRY"
    };
    Ok(Arc::new(GetMappedDataNode {
        fetch_to: required(config.fetch_to, "fetchTo")?,
        what: what.ok_or_else(|| NodeConfigError::new("dataToFetch", format!("must be {allowed}")))?,
        mapping: mapping(config.data_mapping)?,
        source,
    }))
}

/// Fields are of related entities only.
fn without_fields(schema: &mut Schema) {
    if let Some(Value::Array(names)) = schema.get_mut("enum") {
        names.retain(|name| name != "FIELDS");
    }
}

/// Pairs of source and target.
pub(super) fn mapping(
    mapping: Option<Map<String, Value>>,
) -> Result<Vec<(TextTemplate, TextTemplate)>, NodeConfigError> {
    let mapping = mapping.unwrap_or_default();
    if mapping.is_empty() {
        return Err(NodeConfigError::new(
            "dataMapping",
            "at least one entry is needed",
        ));
    }
    let pairs = mapping.iter().map(|(source, target)| {
        let target = target.as_str();
        let target =
            target.ok_or_else(|| NodeConfigError::new(format!("dataMapping.{source}"), "must be a text"))?;
        Ok((TextTemplate::new(source), TextTemplate::new(target)))
    });
    pairs.collect()
}

impl Node for GetMappedDataNode {
    fn handle(&self, ctx: &mut NodeContext<'_>, mut msg: RuleMessage) -> NodeResult {
        let pairs = match self.pairs(&mut msg) {
            Ok(pairs) => pairs,
            Err(error) => return NodeResult::Fail(msg, error),
        };
        let services = Arc::clone(ctx.services);
        let (fetch_to, what, source) = (self.fetch_to, self.what, self.source.clone());
        NodeResult::wait(async move {
            let done = async {
                let entity = source.entity(&services, msg.subject()).await?;
                let subject = EntityKey {
                    tenant: msg.tenant,
                    entity,
                };
                add(&services, subject, what, &pairs, fetch_to, &mut msg).await
            };
            let done = done.await;
            NodeResult::after(msg, done)
        })
    }
}

impl GetMappedDataNode {
    fn pairs(&self, msg: &mut RuleMessage) -> Result<Vec<(String, String)>, NodeError> {
        self.fetch_to.check(msg)?;
        let pairs = self.mapping.iter().map(|(source, target)| {
            // Names of fields are no patterns.
            let source = if self.what == DataToFetch::Fields {
                source.text().to_owned()
            } else {
                source.resolve(msg)?.into_owned()
            };
            Ok((source, target.resolve(msg)?.into_owned()))
        });
        pairs.collect()
    }
}

impl MappedDataSource {
    async fn entity(
        &self,
        services: &Arc<NodeServices>,
        originator: EntityKey,
    ) -> Result<EntityId, NodeError> {
        match self {
            Self::Tenant => Ok(originator.tenant.into()),
            Self::Customer => {
                let customer = entities::customer_of(services, originator).await?;
                customer
                    .map(EntityId::from)
                    .ok_or_else(|| NodeError::new("the originator has no customer"))
            }
            Self::Related(query) => {
                let found = query
                    .first(services, originator.tenant, originator.entity)
                    .await?;
                found.ok_or_else(|| NodeError::new("failed to find a related entity by the relation query"))
            }
        }
    }
}

async fn add(
    services: &Arc<NodeServices>,
    subject: EntityKey,
    what: DataToFetch,
    pairs: &[(String, String)],
    fetch_to: MessagePart,
    msg: &mut RuleMessage,
) -> Result<(), NodeError> {
    let sources: Vec<String> = pairs.iter().map(|(source, _)| source.clone()).collect();
    match what {
        DataToFetch::Attributes => {
            let found = services
                .attributes
                .get(subject, AttributeScope::Server, Some(&sources))
                .await?;
            for (source, target) in pairs {
                if let Some(attribute) = found.iter().find(|attribute| attribute.key == *source) {
                    fetch_to.put(msg, target, &attribute.value)?;
                }
            }
        }
        DataToFetch::LatestTelemetry => {
            let found = services.series.latest(subject, Some(&sources)).await?;
            for (source, target) in pairs {
                match found.iter().find(|latest| latest.key == *source) {
                    Some(latest) => fetch_to.put(msg, target, &latest.point.value)?,
                    None => fetch_to.put_json(msg, target, Value::Null)?,
                }
            }
        }
        DataToFetch::Fields => {
            let fields = entities::fields(services, subject).await?;
            let fields = fields.ok_or_else(|| NodeError::new("the related entity was not found"))?;
            for (source, target) in pairs {
                if let Some(text) = field_text(&fields, source, true) {
                    fetch_to.put_json(msg, target, Value::from(text))?;
                }
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use fieldline_model::message::MsgType;

    use super::*;
    use crate::nodes::tests::{NOW, World, upgraded};

    #[tokio::test(flavor = "multi_thread")]
    async fn the_customer_and_the_tenant_give_attributes_or_latest_values() {
        let mut world = World::new().await;
        let (tenant, customer) = (world.tenant, world.customer);
        let device = world.device("d", json!({ "customerId": customer })).await;
        let alone = world.device("alone", json!(null)).await;
        for entity in [EntityId::from(tenant), customer.into()] {
            let name = entity.entity_type.name();
            world
                .attributes(entity, AttributeScope::Server, json!({"max": 5, "who": name}))
                .await;
            world.telemetry(entity, NOW, json!({"t": 1.5})).await;
        }
        for (class, who) in [
            ("metadata.TbGetCustomerAttributeNode", "CUSTOMER"),
            ("metadata.TbGetTenantAttributeNode", "TENANT"),
        ] {
            let mapping = json!({"max": "limit", "who": "$[target]", "absent": "x"});
            let msg = world.msg(MsgType::PostTelemetry, device, &json!({"target": "owner"}));
            let node = world.node(class, json!({"dataMapping": mapping}));
            let out = world.one(&node, msg.clone()).await;
            assert_eq!(
                (out.meta("limit").as_deref(), out.meta("owner").as_deref()),
                (Some("5"), Some(who))
            );
            assert_eq!(out.meta("x"), None);
            let mapping = json!({"t": "temperature", "gone": "gone"});
            let patch = json!({"dataMapping": mapping, "dataToFetch": "LATEST_TELEMETRY", "fetchTo": "DATA"});
            let node = world.node(class, patch);
            let out = world.one(&node, msg).await;
            assert_eq!(
                out.body(),
                json!({"target": "owner", "temperature": 1.5, "gone": null})
            );
            assert_eq!(
                world.wrong(class, json!({"dataToFetch": "FIELDS"})),
                "dataToFetch"
            );
            assert_eq!(world.wrong(class, json!({"dataMapping": {}})), "dataMapping");
        }
        let node = world.node("metadata.TbGetCustomerAttributeNode", json!({}));
        let msg = world.msg(MsgType::PostTelemetry, alone, &json!({}));
        assert!(world.one(&node, msg).await.error.unwrap().contains("no customer"));
        let msg = world.msg(MsgType::PostTelemetry, customer, &json!({}));
        assert_eq!(
            world.one(&node, msg).await.label,
            "Success",
            "a customer is its own customer"
        );
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_related_entity_gives_fields_as_well() {
        let mut world = World::new().await;
        let device = world.device("d", json!(null)).await;
        let info = json!({"additionalInfo": {"floor": 3}, "label": ""});
        let asset = world.asset("House", "Building", info).await;
        world.relate(asset, device, "Contains").await;
        world
            .attributes(asset, AttributeScope::Server, json!({"serialNumber": "s1"}))
            .await;
        let class = "metadata.TbGetRelatedAttributeNode";
        let query = json!({"direction": "TO", "maxLevel": 1, "filters": [{"relationType": "Contains"}]});
        let node = world.node(class, json!({"relationsQuery": query}));
        let msg = world.msg(MsgType::PostTelemetry, device, &json!({}));
        assert_eq!(
            world.one(&node, msg.clone()).await.meta("sn").as_deref(),
            Some("s1")
        );
        let mapping = json!({"name": "house", "type": "kind", "additionalInfo.floor": "floor", "label": "label", "id": "id"});
        let patch = json!({"relationsQuery": query, "dataToFetch": "FIELDS", "dataMapping": mapping, "fetchTo": "DATA"});
        let node = world.node(class, patch);
        let body = world.one(&node, msg.clone()).await.body();
        assert_eq!(
            body,
            json!({"house": "House", "kind": "Building", "floor": "3", "id": asset.id})
        );
        let node = world.node(class, json!({}));
        assert_eq!(
            world.one(&node, msg).await.label,
            "Failure",
            "there is nothing in the other direction"
        );
        let up = json!({"relationsQuery": {"direction": "UP"}});
        assert_eq!(world.wrong(class, up), "relationsQuery.direction");
    }

    #[test]
    fn older_configurations_have_other_names() {
        let old = json!({"attrMapping": {"a": "b"}, "telemetry": true});
        let new =
            json!({"dataMapping": {"a": "b"}, "dataToFetch": "LATEST_TELEMETRY", "fetchTo": "METADATA"});
        assert_eq!(upgraded("metadata.TbGetCustomerAttributeNode", 0, old), new);
        let old = json!({"attrMapping": {"a": "b"}, "telemetry": "false"});
        assert_eq!(
            upgraded("metadata.TbGetRelatedAttributeNode", 0, old)["dataToFetch"],
            "ATTRIBUTES"
        );
    }
}
