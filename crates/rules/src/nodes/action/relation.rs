//! "Create relation" and "delete relation".

use std::sync::Arc;

use fieldline_core::ports::{RelationEnds, RelationKey};
use fieldline_model::entity::{EntityRelation, RelationTypeGroup, SearchDirection};
use fieldline_model::{EntityId, EntityType};
use serde::Deserialize;
use serde_json::{Value, json};

use super::target::{TYPES, Target};
use crate::message::Msg;
use crate::node::{ConfigError, Ctx, Node, NodeConfig, NodeError, Step, move_to};
use crate::nodes::pattern::Pattern;
use crate::registry::{ComponentType, NodeType};
use crate::services::Services;

pub(crate) const NODES: &[NodeType] = &[
    NodeType {
        description: "Finds an entity and relates the message originator to it.",
        version: 1,
        default_configuration: || {
            json!({
                "direction": "FROM", "relationType": "Contains", "entityType": null, "entityNamePattern": "",
                "entityTypePattern": null, "createEntityIfNotExists": false,
                "changeOriginatorToRelatedEntity": false, "removeCurrentRelations": false,
            })
        },
        upgrade,
        ..NodeType::new(
            "action.TbCreateRelationNode",
            "create relation",
            ComponentType::Action,
            make_create,
        )
    },
    NodeType {
        description: "Deletes relations of the message originator.",
        version: 1,
        default_configuration: || {
            json!({
                "deleteForSingleEntity": false, "direction": "FROM", "relationType": "Contains", "entityType": null,
                "entityNamePattern": "", "entityTypePattern": null,
            })
        },
        upgrade,
        ..NodeType::new(
            "action.TbDeleteRelationNode",
            "delete relation",
            ComponentType::Action,
            make_delete,
        )
    },
];

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Config {
    direction: SearchDirection,
    relation_type: Pattern,
    #[serde(default)]
    entity_type: Option<String>,
    #[serde(default = "nothing")]
    entity_name_pattern: Pattern,
    #[serde(default = "nothing")]
    entity_type_pattern: Pattern,
    #[serde(default)]
    create_entity_if_not_exists: bool,
    #[serde(default)]
    change_originator_to_related_entity: bool,
    #[serde(default)]
    remove_current_relations: bool,
    #[serde(default)]
    delete_for_single_entity: bool,
}

fn nothing() -> Pattern {
    Pattern::new("")
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

struct Relation {
    direction: SearchDirection,
    relation_type: Pattern,
    /// `None` stands for all that the originator is related to.
    entity_type: Option<EntityType>,
    name: Pattern,
    profile: Pattern,
    create: bool,
    change_originator: bool,
    remove_current: bool,
}

impl Relation {
    fn new(config: Config, needs_entity: bool) -> Result<Self, ConfigError> {
        let entity_type = match (needs_entity, config.entity_type.as_deref()) {
            (false, _) => None,
            (true, Some(name)) => Some(entity_type(name)?),
            (true, None) => return Err(ConfigError::new("entityType", "must be set")),
        };
        Ok(Self {
            direction: config.direction,
            relation_type: config.relation_type,
            entity_type,
            name: config.entity_name_pattern,
            profile: config.entity_type_pattern,
            create: config.create_entity_if_not_exists,
            change_originator: config.change_originator_to_related_entity,
            remove_current: config.remove_current_relations,
        })
    }

    fn wanted(&self, msg: &mut Msg) -> Result<Wanted, NodeError> {
        let target = match self.entity_type {
            None => None,
            Some(EntityType::Tenant) => Some(Target {
                entity_type: EntityType::Tenant,
                name: String::new(),
                profile: String::new(),
                create: false,
            }),
            Some(entity_type) => Some(Target {
                entity_type,
                name: self.name.resolve(msg)?.into_owned(),
                profile: match self.create {
                    true => self.profile.resolve(msg)?.into_owned(),
                    false => String::new(),
                },
                create: self.create,
            }),
        };
        Ok(Wanted {
            target,
            relation_type: self.relation_type.resolve(msg)?.into_owned(),
            direction: self.direction,
        })
    }
}

fn entity_type(name: &str) -> Result<EntityType, ConfigError> {
    let known = TYPES.iter().copied().find(|known| known.name() == name);
    known.ok_or_else(|| {
        let names: Vec<_> = TYPES.iter().map(|known| known.name()).collect();
        ConfigError::new(
            "entityType",
            format!(
                "Unsupported entity type '{name}'! Only {} types are allowed.",
                names.join(" ,")
            ),
        )
    })
}

/// A relation that a message asks for.
struct Wanted {
    target: Option<Target>,
    relation_type: String,
    direction: SearchDirection,
}

impl Wanted {
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
    async fn remove_all(&self, services: &Arc<Services>, msg: &Msg) -> Result<(), NodeError> {
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
async fn remove(services: &Arc<Services>, msg: &Msg, key: &RelationKey) -> Result<(), NodeError> {
    if services.stores.relations.get(msg.tenant, key).await?.is_some() {
        services.rules.relations.delete(msg.tenant, key).await?;
    }
    Ok(())
}

struct CreateRelation(Relation);

fn make_create(config: &NodeConfig<'_>) -> Result<Arc<dyn Node>, ConfigError> {
    Ok(Arc::new(CreateRelation(Relation::new(config.parse()?, true)?)))
}

impl Node for CreateRelation {
    fn handle(&self, ctx: &mut Ctx<'_>, mut msg: Msg) -> Step {
        let wanted = match self.0.wanted(&mut msg) {
            Ok(wanted) => wanted,
            Err(error) => return Step::Fail(msg, error),
        };
        let (services, node) = (Arc::clone(ctx.services), ctx.node);
        let (remove_current, change_originator) = (self.0.remove_current, self.0.change_originator);
        Step::wait(async move {
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
                        move_to(&mut msg, target);
                    }
                    Step::success(msg)
                }
                Err(error) => Step::Fail(msg, error),
            }
        })
    }
}

struct DeleteRelation(Relation);

fn make_delete(config: &NodeConfig<'_>) -> Result<Arc<dyn Node>, ConfigError> {
    let config: Config = config.parse()?;
    let is_single = config.delete_for_single_entity;
    let mut relation = Relation::new(config, is_single)?;
    relation.create = false;
    Ok(Arc::new(DeleteRelation(relation)))
}

impl Node for DeleteRelation {
    fn handle(&self, ctx: &mut Ctx<'_>, mut msg: Msg) -> Step {
        let wanted = match self.0.wanted(&mut msg) {
            Ok(wanted) => wanted,
            Err(error) => return Step::Fail(msg, error),
        };
        let (services, node) = (Arc::clone(ctx.services), ctx.node);
        Step::wait(async move {
            let deleted = async {
                match &wanted.target {
                    None => wanted.remove_all(&services, &msg).await,
                    Some(target) => {
                        let target = target.find(&services, node, &msg).await?;
                        remove(&services, &msg, &wanted.key(msg.originator, target)).await
                    }
                }
            };
            match deleted.await {
                Ok(()) => Step::success(msg),
                Err(error) => Step::Fail(msg, error),
            }
        })
    }
}
