//! "Create relation" and "delete relation".

use std::sync::Arc;

use fieldline_core::ports::{RelationEnds, RelationKey};
use fieldline_model::entity::{EntityRelation, RelationTypeGroup, SearchDirection};
use fieldline_model::{EntityId, EntityType};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Deserialize;
use serde_json::{Value, json};

use super::target::{EntityTarget, TYPES};
use crate::config_schema;
use crate::message::RuleMessage;
use crate::node::{
    Node, NodeConfigError, NodeContext, NodeError, NodeInitContext, NodeResult, set_originator,
};
use crate::node_types::NodeType;
use crate::nodes::text_template::TextTemplate;
use crate::services::NodeServices;

pub(crate) const NODES: &[NodeType] = &[
    NodeType {
        class: "action.TbCreateRelationNode",
        name: "create relation",
        description: "Finds an entity and relates the message originator to it.",
        version: 1,
        default_configuration: || {
            json!({
                "direction": "FROM", "relationType": "Contains", "entityType": null, "entityNamePattern": "",
                "entityTypePattern": null, "createEntityIfNotExists": false,
                "changeOriginatorToRelatedEntity": false, "removeCurrentRelations": false,
            })
        },
        schema: config_schema::of_both::<Config, CreateConfig>,
        upgrade,
        make: make_create,
        ..NodeType::ACTION
    },
    NodeType {
        class: "action.TbDeleteRelationNode",
        name: "delete relation",
        description: "Deletes relations of the message originator.",
        version: 1,
        default_configuration: || {
            json!({
                "deleteForSingleEntity": false, "direction": "FROM", "relationType": "Contains", "entityType": null,
                "entityNamePattern": "", "entityTypePattern": null,
            })
        },
        schema: config_schema::of_both::<DeleteConfig, Config>,
        upgrade,
        make: make_delete,
        ..NodeType::ACTION
    },
];

/// What both nodes read.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Config {
    direction: SearchDirection,
    #[schemars(extend("x-editor" = "relationType"))]
    relation_type: TextTemplate,
    #[serde(default)]
    #[schemars(schema_with = "entity_types")]
    entity_type: Option<String>,
    #[serde(default = "nothing")]
    #[schemars(title = "Entity name")]
    entity_name_pattern: TextTemplate,
    #[serde(default = "nothing")]
    #[schemars(title = "Entity profile")]
    entity_type_pattern: TextTemplate,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[derive(Default)]
struct CreateConfig {
    #[schemars(title = "Create the entity if it does not exist")]
    create_entity_if_not_exists: bool,
    change_originator_to_related_entity: bool,
    remove_current_relations: bool,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[derive(Default)]
struct DeleteConfig {
    #[schemars(title = "Delete the relation to one entity only")]
    delete_for_single_entity: bool,
}

fn entity_types(_: &mut SchemaGenerator) -> Schema {
    let mut schema = config_schema::choice(TYPES.iter().map(|known| known.name()));
    schema.insert("x-editor".to_owned(), "entityType".into());
    schema
}

fn nothing() -> TextTemplate {
    TextTemplate::new("")
}

/// The direction was the other way round before.
fn upgrade(from: i32, mut configuration: Value) -> Value {
    if from < 1
        && let Some(fields) = configuration.as_object_mut()
        && fields.remove("entityCacheExpiration").is_some()
    {
        let turned = match fields.get("direction").and_then(Value::as_str) {
            Some("TO") => "FROM",
            Some("FROM") => "TO",
            _ => return configuration,
        };
        fields.insert("direction".to_owned(), turned.into());
    }
    configuration
}

struct RelationTemplate {
    direction: SearchDirection,
    relation_type: TextTemplate,
    /// `None` stands for all that the originator is related to.
    entity_type: Option<EntityType>,
    name: TextTemplate,
    profile: TextTemplate,
    create: bool,
    change_originator: bool,
    remove_current: bool,
}

impl RelationTemplate {
    fn new(config: Config, create: &CreateConfig, needs_entity: bool) -> Result<Self, NodeConfigError> {
        let entity_type = match (needs_entity, config.entity_type.as_deref()) {
            (false, _) => None,
            (true, Some(name)) => Some(entity_type(name)?),
            (true, None) => return Err(NodeConfigError::new("entityType", "must be set")),
        };
        Ok(Self {
            direction: config.direction,
            relation_type: config.relation_type,
            entity_type,
            name: config.entity_name_pattern,
            profile: config.entity_type_pattern,
            create: create.create_entity_if_not_exists,
            change_originator: create.change_originator_to_related_entity,
            remove_current: create.remove_current_relations,
        })
    }

    fn wanted(&self, msg: &mut RuleMessage) -> Result<RelationSpec, NodeError> {
        let target = match self.entity_type {
            None => None,
            Some(EntityType::Tenant) => Some(EntityTarget {
                entity_type: EntityType::Tenant,
                name: String::new(),
                profile: String::new(),
                create: false,
            }),
            Some(entity_type) => Some(EntityTarget {
                entity_type,
                name: self.name.resolve(msg)?.into_owned(),
                profile: match self.create {
                    true => self.profile.resolve(msg)?.into_owned(),
                    false => String::new(),
                },
                create: self.create,
            }),
        };
        Ok(RelationSpec {
            target,
            relation_type: self.relation_type.resolve(msg)?.into_owned(),
            direction: self.direction,
        })
    }
}

fn entity_type(name: &str) -> Result<EntityType, NodeConfigError> {
    let known = TYPES.iter().copied().find(|known| known.name() == name);
    known.ok_or_else(|| {
        let names: Vec<_> = TYPES.iter().map(|known| known.name()).collect();
        NodeConfigError::new(
            "entityType",
            format!(
                "Unsupported entity type '{name}'! Only {} types are allowed.",
                names.join(" ,")
            ),
        )
    })
}

/// A relation that a message asks for.
struct RelationSpec {
    target: Option<EntityTarget>,
    relation_type: String,
    direction: SearchDirection,
}

impl RelationSpec {
    fn key(&self, originator: EntityId, target: EntityId) -> RelationKey {
        let (from, to) = match self.direction {
            SearchDirection::From => (originator, target),
            SearchDirection::To => (target, originator),
        };
        RelationKey {
            from,
            to,
            relation_type: self.relation_type.clone(),
            group: RelationTypeGroup::Common,
        }
    }

    /// Deletes all relations of the originator of that type and direction.
    async fn remove_all(&self, services: &Arc<NodeServices>, msg: &RuleMessage) -> Result<(), NodeError> {
        let ends = match self.direction {
            SearchDirection::From => RelationEnds::from(msg.originator),
            SearchDirection::To => RelationEnds::to(msg.originator),
        };
        let ends = ends.of_type(self.relation_type.as_str());
        for relation in services.stores.relations.find(msg.tenant, &ends).await? {
            remove(services, msg, &RelationKey::from(&relation)).await?;
        }
        Ok(())
    }
}

/// Deletes a relation, if there is one.
async fn remove(services: &Arc<NodeServices>, msg: &RuleMessage, key: &RelationKey) -> Result<(), NodeError> {
    if services.stores.relations.get(msg.tenant, key).await?.is_some() {
        services.rules.relations.delete(msg.tenant, key).await?;
    }
    Ok(())
}

struct CreateRelationNode(RelationTemplate);

fn make_create(config: &NodeInitContext<'_>) -> Result<Arc<dyn Node>, NodeConfigError> {
    Ok(Arc::new(CreateRelationNode(RelationTemplate::new(
        config.parse()?,
        &config.parse()?,
        true,
    )?)))
}

impl Node for CreateRelationNode {
    fn handle(&self, ctx: &mut NodeContext<'_>, mut msg: RuleMessage) -> NodeResult {
        let wanted = match self.0.wanted(&mut msg) {
            Ok(wanted) => wanted,
            Err(error) => return NodeResult::Fail(msg, error),
        };
        let (services, node) = (Arc::clone(ctx.services), ctx.node);
        let (remove_current, change_originator) = (self.0.remove_current, self.0.change_originator);
        NodeResult::wait(async move {
            let created = async {
                let target = match &wanted.target {
                    Some(target) => target.find(&services, node, &msg).await?,
                    None => return Err(NodeError::new("no entity is configured")),
                };
                if remove_current {
                    wanted.remove_all(&services, &msg).await?;
                }
                let key = wanted.key(msg.originator, target);
                if services.stores.relations.get(msg.tenant, &key).await?.is_none() {
                    let relation = EntityRelation::new(key.from, key.to, key.relation_type.as_str());
                    services.rules.relations.save(msg.tenant, relation).await?;
                }
                Ok(target)
            };
            match created.await {
                Ok(target) => {
                    if change_originator {
                        set_originator(&mut msg, target);
                    }
                    NodeResult::success(msg)
                }
                Err(error) => NodeResult::Fail(msg, error),
            }
        })
    }
}

struct DeleteRelationNode(RelationTemplate);

fn make_delete(config: &NodeInitContext<'_>) -> Result<Arc<dyn Node>, NodeConfigError> {
    let is_single = config.parse::<DeleteConfig>()?.delete_for_single_entity;
    let creates_nothing = CreateConfig::default();
    Ok(Arc::new(DeleteRelationNode(RelationTemplate::new(
        config.parse()?,
        &creates_nothing,
        is_single,
    )?)))
}

impl Node for DeleteRelationNode {
    fn handle(&self, ctx: &mut NodeContext<'_>, mut msg: RuleMessage) -> NodeResult {
        let wanted = match self.0.wanted(&mut msg) {
            Ok(wanted) => wanted,
            Err(error) => return NodeResult::Fail(msg, error),
        };
        let (services, node) = (Arc::clone(ctx.services), ctx.node);
        NodeResult::wait(async move {
            let deleted = async {
                match &wanted.target {
                    None => wanted.remove_all(&services, &msg).await,
                    Some(target) => {
                        let target = target.find(&services, node, &msg).await?;
                        remove(&services, &msg, &wanted.key(msg.originator, target)).await
                    }
                }
            };
            let done = deleted.await;
            NodeResult::after(msg, done)
        })
    }
}
