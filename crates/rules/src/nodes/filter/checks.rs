//! Filters that check what a message has, what its originator is related to, and how its alarm is doing.

use std::sync::Arc;

use fieldline_core::ports::{RelationEnds, RelationKey};
use fieldline_model::entity::{Alarm, AlarmStatus, EntityDraft, RelationTypeGroup, SearchDirection};
use fieldline_model::kv::unpack;
use fieldline_model::{EntityId, EntityType};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::config_schema;
use crate::message::{MessageBody, RuleMessage};
use crate::node::{
    ConnectionLabel, Node, NodeConfigError, NodeContext, NodeError, NodeInitContext, NodeResult,
};
use crate::node_types::NodeType;

pub(crate) const NODES: &[NodeType] = &[
    NodeType {
        class: "filter.TbCheckMessageNode",
        name: "check fields presence",
        description: "Checks whether a message has fields in its body and its metadata: all of them, or at least one.",
        default_configuration: || json!({"messageNames": [], "metadataNames": [], "checkAllKeys": true}),
        schema: config_schema::of::<CheckMessageNode>,
        make: make_fields,
        ..NodeType::FILTER
    },
    NodeType {
        class: "filter.TbCheckRelationNode",
        name: "check relation presence",
        description: "Checks whether the originator is related to an entity, or to any.",
        version: 1,
        upgrade: upgrade_relation,
        default_configuration: || {
            json!({
                "direction": "FROM",
                "entityId": null,
                "entityType": null,
                "relationType": "Contains",
                "checkForSingleEntity": true,
            })
        },
        schema: config_schema::of::<CheckRelationConfig>,
        make: make_relation,
        ..NodeType::FILTER
    },
    NodeType {
        class: "filter.TbCheckAlarmStatusNode",
        name: "alarm status filter",
        description: "Checks whether the alarm that a message is about has one of some statuses now.",
        default_configuration: || json!({"alarmStatusList": ["ACTIVE_ACK", "ACTIVE_UNACK"]}),
        schema: config_schema::of::<CheckAlarmStatusConfig>,
        make: make_alarm,
        ..NodeType::FILTER
    },
];

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
struct CheckMessageNode {
    #[schemars(title = "Keys of the body", extend("x-editor" = "key"))]
    message_names: Vec<String>,
    #[schemars(title = "Keys of the metadata", extend("x-editor" = "key"))]
    metadata_names: Vec<String>,
    #[schemars(title = "All of them have to be there")]
    check_all_keys: bool,
}

impl Default for CheckMessageNode {
    fn default() -> Self {
        Self {
            message_names: Vec::new(),
            metadata_names: Vec::new(),
            check_all_keys: true,
        }
    }
}

fn make_fields(config: &NodeInitContext<'_>) -> Result<Arc<dyn Node>, NodeConfigError> {
    Ok(Arc::new(config.parse::<CheckMessageNode>()?))
}

impl Node for CheckMessageNode {
    fn handle(&self, _: &mut NodeContext<'_>, mut msg: RuleMessage) -> NodeResult {
        let holds = self.check(&mut msg);
        NodeResult::filtered(msg, holds)
    }
}

impl CheckMessageNode {
    fn check(&self, msg: &mut RuleMessage) -> Result<bool, NodeError> {
        let in_body = self.in_body(&mut msg.data)?;
        let in_meta = || {
            let has = |name: &String| msg.meta.get(name).is_some();
            if self.check_all_keys {
                self.metadata_names.iter().all(has)
            } else {
                self.metadata_names.iter().any(has)
            }
        };
        Ok(if self.check_all_keys {
            in_body && in_meta()
        } else {
            in_body || in_meta()
        })
    }

    fn in_body(&self, data: &mut MessageBody) -> Result<bool, NodeError> {
        if self.message_names.is_empty() {
            return Ok(self.check_all_keys);
        }
        let judge = |has: &dyn Fn(&str) -> bool| {
            let mut names = self.message_names.iter();
            if self.check_all_keys {
                names.all(|name| has(name))
            } else {
                names.any(|name| has(name))
            }
        };
        if let MessageBody::Packed(bytes) = &*data {
            return Ok(judge(&|name| {
                unpack(bytes).filter_map(Result::ok).any(|(key, _)| key == name)
            }));
        }
        let body = data.to_json()?;
        let body = body
            .as_object()
            .ok_or_else(|| NodeError::new("the body is no JSON object"))?;
        Ok(judge(&|name| body.contains_key(name)))
    }
}

/// The direction of version 0 was that of the relation as seen from the other entity.
fn upgrade_relation(from_version: i32, mut configuration: Value) -> Value {
    if from_version == 0
        && let Some(direction) = configuration.get_mut("direction")
    {
        match direction.as_str() {
            Some("FROM") => *direction = json!("TO"),
            Some("TO") => *direction = json!("FROM"),
            _ => {}
        }
    }
    configuration
}

struct CheckRelationNode {
    direction: SearchDirection,
    relation_type: String,
    entity: Option<EntityId>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct CheckRelationConfig {
    direction: SearchDirection,
    #[schemars(extend("x-editor" = "entityId"))]
    entity_id: Option<String>,
    #[schemars(with = "Option<EntityType>", extend("x-editor" = "entityType"))]
    entity_type: Option<String>,
    #[schemars(extend("x-editor" = "relationType"))]
    relation_type: String,
    #[serde(default)]
    #[schemars(title = "Check the relation to one entity")]
    check_for_single_entity: bool,
}

fn make_relation(config: &NodeInitContext<'_>) -> Result<Arc<dyn Node>, NodeConfigError> {
    let config: CheckRelationConfig = config.parse()?;
    let given = |text: Option<String>| text.filter(|text| !text.is_empty());
    let entity = if config.check_for_single_entity {
        let name = given(config.entity_type)
            .ok_or_else(|| NodeConfigError::new("entityType", "an entity must be given"))?;
        let entity_type: EntityType = name
            .parse()
            .map_err(|error| NodeConfigError::new("entityType", format!("{error}")))?;
        let id = given(config.entity_id)
            .ok_or_else(|| NodeConfigError::new("entityId", "an entity must be given"))?;
        let id = id
            .parse()
            .map_err(|_| NodeConfigError::new("entityId", "is no UUID"))?;
        Some(EntityId::new(entity_type, id))
    } else {
        None
    };
    Ok(Arc::new(CheckRelationNode {
        direction: config.direction,
        relation_type: config.relation_type,
        entity,
    }))
}

impl Node for CheckRelationNode {
    fn handle(&self, ctx: &mut NodeContext<'_>, msg: RuleMessage) -> NodeResult {
        let services = Arc::clone(ctx.services);
        let relation_type = self.relation_type.clone();
        let (direction, entity) = (self.direction, self.entity);
        NodeResult::wait(async move {
            let relations = &services.stores.relations;
            let found = match entity {
                Some(entity) => {
                    let (from, to) = match direction {
                        SearchDirection::From => (msg.originator, entity),
                        SearchDirection::To => (entity, msg.originator),
                    };
                    let group = RelationTypeGroup::Common;
                    let key = RelationKey {
                        from,
                        to,
                        relation_type,
                        group,
                    };
                    relations.get(msg.tenant, &key).await.map(|found| found.is_some())
                }
                None => {
                    let ends = match direction {
                        SearchDirection::From => RelationEnds::from(msg.originator),
                        SearchDirection::To => RelationEnds::to(msg.originator),
                    };
                    relations
                        .find(msg.tenant, &ends.of_type(relation_type))
                        .await
                        .map(|found| !found.is_empty())
                }
            };
            NodeResult::filtered(msg, found)
        })
    }
}

struct CheckAlarmStatusNode(Vec<AlarmStatus>);

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct CheckAlarmStatusConfig {
    #[schemars(title = "Statuses")]
    alarm_status_list: Vec<AlarmStatus>,
}

fn make_alarm(config: &NodeInitContext<'_>) -> Result<Arc<dyn Node>, NodeConfigError> {
    Ok(Arc::new(CheckAlarmStatusNode(
        config.parse::<CheckAlarmStatusConfig>()?.alarm_status_list,
    )))
}

impl Node for CheckAlarmStatusNode {
    fn handle(&self, ctx: &mut NodeContext<'_>, mut msg: RuleMessage) -> NodeResult {
        let alarm = msg.data.to_json().and_then(|body| {
            let alarm = EntityDraft::<Alarm>::deserialize(&*body);
            alarm.map_err(|error| NodeError::new(format!("the body is no alarm: {error}")))
        });
        let id = match alarm.map(|alarm| alarm.id) {
            Ok(Some(id)) => id,
            Ok(None) => return NodeResult::fail(msg, "the alarm of the body has no id"),
            Err(error) => return NodeResult::Fail(msg, error),
        };
        let services = Arc::clone(ctx.services);
        let statuses = self.0.clone();
        NodeResult::wait(async move {
            match services.stores.alarms.get(msg.tenant, id).await {
                Ok(Some(alarm)) => {
                    NodeResult::Next(msg, ConnectionLabel::of(statuses.contains(&alarm.status())))
                }
                Ok(None) => NodeResult::fail(msg, "no such alarm found"),
                Err(error) => NodeResult::Fail(msg, error.into()),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use fieldline_core::ports::{AlarmDraft, AlarmPropagation};
    use fieldline_model::entity::AlarmSeverity;
    use fieldline_model::message::MsgType;

    use super::*;
    use crate::nodes::tests::{NOW, World, nobody, upgraded};

    #[tokio::test(flavor = "multi_thread")]
    async fn fields_are_looked_for_in_body_and_metadata() {
        let mut world = World::new().await;
        let class = "filter.TbCheckMessageNode";
        let body = json!({"a": 1, "n": null});
        for (names, metadata, all, label) in [
            (json!([]), json!([]), true, "True"),
            (json!([]), json!([]), false, "False"),
            (json!(["a"]), json!(["deviceName"]), true, "True"),
            (json!(["a", "b"]), json!([]), true, "False"),
            (json!(["a"]), json!(["b"]), true, "False"),
            (json!(["a", "b"]), json!([]), false, "True"),
            (json!(["b"]), json!(["deviceName"]), false, "True"),
            (json!(["b"]), json!(["c"]), false, "False"),
        ] {
            let node = world.node(
                class,
                json!({"messageNames": names, "metadataNames": metadata, "checkAllKeys": all}),
            );
            let msg = world.msg(MsgType::PostTelemetry, nobody(), &body);
            assert_eq!(
                world.one(&node, msg).await.label,
                label,
                "{names} {metadata} {all}"
            );
            let packed = world.packed(nobody(), &json!({"a": 1}));
            assert_eq!(
                world.one(&node, packed).await.label,
                label,
                "{names} {metadata} {all}"
            );
        }
        let node = world.node(class, json!({"messageNames": ["n"]}));
        let msg = world.msg(MsgType::PostTelemetry, nobody(), &body);
        assert_eq!(world.one(&node, msg).await.label, "True", "null is a value");
        let msg = world.msg(MsgType::PostTelemetry, nobody(), &json!([1]));
        assert_eq!(world.one(&node, msg).await.label, "Failure");
        assert_eq!(world.wrong(class, json!({"metadataNames": "x"})), "metadataNames");
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn relations_are_looked_for_in_their_direction() {
        let mut world = World::new().await;
        let device = world.device("d", json!(null)).await;
        let asset = world.asset("a", "Building", json!(null)).await;
        world.relate(asset, device, "Contains").await;
        let class = "filter.TbCheckRelationNode";
        let to = |entity: EntityId| json!({"entityType": entity.entity_type, "entityId": entity.id});
        let with = |mut base: Value, direction: &str, relation: &str, single: bool| {
            base["direction"] = json!(direction);
            base["relationType"] = json!(relation);
            base["checkForSingleEntity"] = json!(single);
            base
        };
        for (configuration, originator, label) in [
            (with(to(asset), "TO", "Contains", true), device, "True"),
            (with(to(asset), "FROM", "Contains", true), device, "False"),
            (with(to(device), "FROM", "Contains", true), asset, "True"),
            (with(to(device), "FROM", "Manages", true), asset, "False"),
            (with(json!({}), "TO", "Contains", false), device, "True"),
            (with(json!({}), "FROM", "Contains", false), device, "False"),
        ] {
            let node = world.node(class, configuration);
            let msg = world.msg(MsgType::PostTelemetry, originator, &json!({}));
            assert_eq!(world.one(&node, msg).await.label, label);
        }
        assert_eq!(world.wrong(class, json!({})), "entityType");
        assert_eq!(
            world.wrong(class, json!({"entityType": "DEVICE", "entityId": "x"})),
            "entityId"
        );
        assert_eq!(world.wrong(class, json!({"direction": "UP"})), "direction");
        assert_eq!(
            upgraded(class, 0, json!({"direction": "FROM"})),
            json!({"direction": "TO"})
        );
        assert_eq!(
            upgraded(class, 1, json!({"direction": "FROM"})),
            json!({"direction": "FROM"})
        );
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn the_stored_status_of_the_alarm_counts() {
        let mut world = World::new().await;
        let originator = world.device("d", json!(null)).await;
        let draft = AlarmDraft {
            id: None,
            tenant: world.tenant,
            customer: None,
            originator,
            alarm_type: "Hot".to_owned(),
            severity: AlarmSeverity::Major,
            start_ts: NOW,
            end_ts: NOW,
            details: None,
            propagation: AlarmPropagation::default(),
            created_time: NOW,
            may_create: true,
        };
        let alarms = Arc::clone(&world.services.stores.alarms);
        let alarm = alarms
            .create_or_update_active(draft)
            .await
            .unwrap()
            .unwrap()
            .alarm;
        let node = world.node("filter.TbCheckAlarmStatusNode", json!({}));
        let body = serde_json::to_value(&alarm).unwrap();
        let msg = world.msg(MsgType::Alarm, originator, &body);
        assert_eq!(world.one(&node, msg.clone()).await.label, "True");
        alarms.clear(world.tenant, alarm.id, NOW, None).await.unwrap();
        assert_eq!(world.one(&node, msg).await.label, "False");
        for body in [
            json!({"type": "Hot"}),
            json!([]),
            json!({"id": {"entityType": "ALARM", "id": nobody().id}}),
        ] {
            let msg = world.msg(MsgType::Alarm, originator, &body);
            assert_eq!(world.one(&node, msg).await.label, "Failure");
        }
        let wrong = json!({"alarmStatusList": ["ON"]});
        assert!(
            world
                .wrong("filter.TbCheckAlarmStatusNode", wrong)
                .starts_with("alarmStatusList")
        );
    }
}
