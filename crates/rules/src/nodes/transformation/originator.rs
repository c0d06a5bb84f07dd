//! Another originator.

use std::sync::Arc;

use fieldline_model::{AlarmId, EntityId, EntityKey, EntityType};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Deserialize;
use serde_json::json;

use crate::config_schema;
use crate::message::RuleMessage;
use crate::node::{
    Node, NodeConfigError, NodeContext, NodeError, NodeInitContext, NodeResult, set_originator,
};
use crate::node_types::NodeType;
use crate::nodes::entities;
use crate::nodes::relations::RelationsConfig;
use crate::nodes::text_template::TextTemplate;
use crate::services::NodeServices;

pub(crate) const NODES: &[NodeType] = &[NodeType {
    class: "transform.TbChangeOriginatorNode",
    name: "change originator",
    description: "Makes the customer, the tenant, a related entity, the originator of the alarm, or an entity of a name the \
                  originator of a message.",
    default_configuration: || {
        json!({
            "originatorSource": "CUSTOMER",
            "relationsQuery": {
                "direction": "FROM",
                "maxLevel": 1,
                "filters": [{"relationType": "Contains", "entityTypes": [], "negate": false}],
                "fetchLastLevelOnly": false,
            },
            "entityType": null,
            "entityNamePattern": null,
        })
    },
    schema: config_schema::of::<Config>,
    make,
    ..NodeType::TRANSFORMATION
}];

enum OriginatorSource {
    Customer,
    Tenant,
    Related(Arc<RelationsConfig>),
    AlarmOriginator,
    Named(EntityType, TextTemplate),
}

struct ChangeOriginatorNode(OriginatorSource);

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
enum OriginatorSourceName {
    Customer,
    Tenant,
    Related,
    AlarmOriginator,
    Entity,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Config {
    #[schemars(title = "New originator")]
    originator_source: Option<OriginatorSourceName>,
    relations_query: Option<RelationsConfig>,
    #[schemars(schema_with = "named_types")]
    entity_type: Option<EntityType>,
    #[schemars(title = "Entity name", extend("x-editor" = "template"))]
    entity_name_pattern: Option<String>,
}

fn named_types(_: &mut SchemaGenerator) -> Schema {
    let mut schema = config_schema::choice(entities::NAMED_TYPES.iter().map(|known| known.name()));
    schema.insert("x-editor".to_owned(), "entityType".into());
    schema
}

fn make(config: &NodeInitContext<'_>) -> Result<Arc<dyn Node>, NodeConfigError> {
    let config: Config = config.parse()?;
    let missing = |field: &str| NodeConfigError::new(field, "must be given");
    let source = match config
        .originator_source
        .ok_or_else(|| missing("originatorSource"))?
    {
        OriginatorSourceName::Customer => OriginatorSource::Customer,
        OriginatorSourceName::Tenant => OriginatorSource::Tenant,
        OriginatorSourceName::AlarmOriginator => OriginatorSource::AlarmOriginator,
        OriginatorSourceName::Related => OriginatorSource::Related(Arc::new(
            config.relations_query.ok_or_else(|| missing("relationsQuery"))?,
        )),
        OriginatorSourceName::Entity => {
            let entity_type = config.entity_type.ok_or_else(|| missing("entityType"))?;
            if !entities::NAMED_TYPES.contains(&entity_type) {
                return Err(NodeConfigError::new(
                    "entityType",
                    format!("unexpected entity type {entity_type}"),
                ));
            }
            let name = config.entity_name_pattern.filter(|name| !name.is_empty());
            OriginatorSource::Named(
                entity_type,
                TextTemplate::new(&name.ok_or_else(|| missing("entityNamePattern"))?),
            )
        }
    };
    Ok(Arc::new(ChangeOriginatorNode(source)))
}

/// What one message asks for.
enum OriginatorLookup {
    Customer,
    Related(Arc<RelationsConfig>),
    AlarmOriginator,
    Named(EntityType, String),
}

impl Node for ChangeOriginatorNode {
    fn handle(&self, ctx: &mut NodeContext<'_>, mut msg: RuleMessage) -> NodeResult {
        let wanted = match &self.0 {
            OriginatorSource::Tenant => {
                let tenant = msg.tenant.into();
                set_originator(&mut msg, tenant);
                return NodeResult::success(msg);
            }
            OriginatorSource::Customer => OriginatorLookup::Customer,
            OriginatorSource::Related(query) => OriginatorLookup::Related(Arc::clone(query)),
            OriginatorSource::AlarmOriginator => OriginatorLookup::AlarmOriginator,
            OriginatorSource::Named(entity_type, name) => match name.resolve(&mut msg) {
                Ok(name) => OriginatorLookup::Named(*entity_type, name.into_owned()),
                Err(error) => return NodeResult::Fail(msg, error),
            },
        };
        let services = Arc::clone(ctx.services);
        NodeResult::wait(async move {
            match wanted.find(&services, msg.subject()).await {
                Ok(Some(originator)) => {
                    set_originator(&mut msg, originator);
                    NodeResult::success(msg)
                }
                Ok(None) => NodeResult::fail(msg, "failed to find the new originator"),
                Err(error) => NodeResult::Fail(msg, error),
            }
        })
    }
}

impl OriginatorLookup {
    async fn find(
        &self,
        services: &Arc<NodeServices>,
        subject: EntityKey,
    ) -> Result<Option<EntityId>, NodeError> {
        match self {
            Self::Customer => Ok(entities::customer_of(services, subject)
                .await?
                .map(EntityId::from)),
            Self::Related(query) => query.first(services, subject.tenant, subject.entity).await,
            Self::AlarmOriginator if subject.entity.entity_type == EntityType::Alarm => {
                let alarm = services
                    .stores
                    .alarms
                    .get(subject.tenant, AlarmId(subject.entity.id))
                    .await?;
                Ok(alarm.and_then(|alarm| alarm.originator))
            }
            Self::AlarmOriginator => Err(NodeError::new(format!(
                "unexpected originator of type {}",
                subject.entity.entity_type
            ))),
            Self::Named(entity_type, name) => entities::by_name(services, subject.tenant, *entity_type, name)
                .await
                .map(Some),
        }
    }
}

#[cfg(test)]
mod tests {
    use fieldline_model::UserId;
    use fieldline_model::entity::{Authority, User};
    use fieldline_model::message::MsgType;
    use serde_json::Value;

    use super::*;
    use crate::nodes::tests::{NOW, World, nobody};

    const CLASS: &str = "transform.TbChangeOriginatorNode";

    #[tokio::test(flavor = "multi_thread")]
    async fn each_source_leads_to_an_originator() {
        let mut world = World::new().await;
        let customer = EntityId::from(world.customer);
        let device = world.device("d", json!({ "customerId": world.customer })).await;
        let alone = world.device("alone", json!(null)).await;
        let asset = world.asset("House 7", "Building", json!(null)).await;
        world.relate(asset, device, "Contains").await;
        let user = User {
            id: UserId::new(),
            created_time: NOW,
            tenant_id: world.tenant,
            email: "u@example.com".to_owned(),
            authority: Authority::TenantAdmin,
            ..User::default()
        };
        let user = EntityId::from(world.services.stores.users.insert(user).await.unwrap().id);
        let tenant = EntityId::from(world.tenant);
        let to = json!({"direction": "TO", "maxLevel": 1});
        let named = |kind: &str, name: &str| json!({"originatorSource": "ENTITY", "entityType": kind, "entityNamePattern": name});
        for (patch, from, expected) in [
            (json!({}), device, Some(customer)),
            (json!({}), customer, Some(customer)),
            (json!({}), alone, None),
            (json!({"originatorSource": "TENANT"}), alone, Some(tenant)),
            (json!({"originatorSource": "RELATED"}), asset, Some(device)),
            (
                json!({"originatorSource": "RELATED", "relationsQuery": to}),
                device,
                Some(asset),
            ),
            (json!({"originatorSource": "RELATED"}), device, None),
            (json!({"originatorSource": "ALARM_ORIGINATOR"}), device, None),
            (named("ASSET", "House $[no]"), device, Some(asset)),
            (named("DEVICE", "House $[no]"), device, None),
            (named("USER", "u@example.com"), device, Some(user)),
        ] {
            let shown = patch.to_string();
            let node = world.node(CLASS, patch);
            let msg = world.msg(MsgType::PostTelemetry, from, &json!({"no": 7}));
            let out = world.one(&node, msg).await;
            match expected {
                Some(originator) => assert_eq!(
                    (out.label.as_str(), out.msg.originator),
                    ("Success", originator),
                    "{shown}"
                ),
                None => assert_eq!(
                    (out.label.as_str(), out.msg.originator),
                    ("Failure", from),
                    "{shown}"
                ),
            }
        }
        let msg = world.msg(MsgType::PostTelemetry, nobody(), &json!({}));
        let node = world.node(CLASS, json!({}));
        assert_eq!(world.one(&node, msg).await.label, "Failure");
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn what_a_source_needs_must_be_there() {
        let world = World::new().await;
        for (patch, field) in [
            (json!({"originatorSource": null}), "originatorSource"),
            (
                json!({"originatorSource": "RELATED", "relationsQuery": null}),
                "relationsQuery",
            ),
            (json!({"originatorSource": "ENTITY"}), "entityType"),
            (
                json!({"originatorSource": "ENTITY", "entityType": "ALARM"}),
                "entityType",
            ),
            (
                json!({"originatorSource": "ENTITY", "entityType": "DEVICE"}),
                "entityNamePattern",
            ),
        ] as [(Value, &str); 5]
        {
            assert_eq!(world.wrong(CLASS, patch), field);
        }
    }
}
