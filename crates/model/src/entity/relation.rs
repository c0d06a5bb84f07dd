//! Relations between entities.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{EntityId, EntityType};

/// What a relation is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
#[allow(missing_docs, reason = "the names are their own documentation")]
pub enum RelationTypeGroup {
    #[default]
    Common,
    Dashboard,
    RuleChain,
    RuleNode,
    Edge,
    EdgeAutoAssignRuleChain,
}

impl RelationTypeGroup {
    /// Every group.
    pub const ALL: [Self; 6] = [
        Self::Common,
        Self::Dashboard,
        Self::RuleChain,
        Self::RuleNode,
        Self::Edge,
        Self::EdgeAutoAssignRuleChain,
    ];

    /// The name in the REST API and in the database.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Common => "COMMON",
            Self::Dashboard => "DASHBOARD",
            Self::RuleChain => "RULE_CHAIN",
            Self::RuleNode => "RULE_NODE",
            Self::Edge => "EDGE",
            Self::EdgeAutoAssignRuleChain => "EDGE_AUTO_ASSIGN_RULE_CHAIN",
        }
    }

    /// The group of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|group| group.name() == name)
    }
}

/// A relation: what `from` is to `to`, such as `Contains`. The four first fields are its identity.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct EntityRelation {
    /// Where it starts.
    pub from: EntityId,
    /// Where it ends.
    pub to: EntityId,
    /// Its type: `Contains`, `Manages`, or any other word.
    #[serde(rename = "type")]
    pub relation_type: String,
    /// What it is for.
    #[serde(default)]
    #[serde(deserialize_with = "super::null_as_default")]
    pub type_group: RelationTypeGroup,
    /// Counts the changes.
    #[serde(default)]
    pub version: Option<i64>,
    /// Free-form JSON.
    #[serde(default)]
    pub additional_info: Option<Value>,
}

impl EntityRelation {
    /// A common relation.
    pub fn new(from: impl Into<EntityId>, to: impl Into<EntityId>, relation_type: impl Into<String>) -> Self {
        Self {
            from: from.into(),
            to: to.into(),
            relation_type: relation_type.into(),
            type_group: RelationTypeGroup::Common,
            version: None,
            additional_info: None,
        }
    }

    /// The end that a search in this direction leads to.
    pub const fn endpoint(&self, direction: SearchDirection) -> EntityId {
        match direction {
            SearchDirection::From => self.to,
            SearchDirection::To => self.from,
        }
    }
}

/// A relation with the names of its ends.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct EntityRelationInfo {
    /// The relation.
    #[serde(flatten)]
    pub relation: EntityRelation,
    /// Name of the entity where it starts.
    pub from_name: Option<String>,
    /// Name of the entity where it ends.
    pub to_name: Option<String>,
}

/// Which way a search follows relations.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    Hash,
    Default,
    Serialize,
    Deserialize,
    schemars::JsonSchema,
    utoipa::ToSchema,
)]
#[serde(rename_all = "UPPERCASE")]
pub enum SearchDirection {
    /// From the root along the arrows, to what it contains.
    #[default]
    From,
    /// Against the arrows, to what contains it.
    To,
}

/// Which relations a search keeps.
#[derive(
    Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema, utoipa::ToSchema,
)]
#[serde(default, rename_all = "camelCase")]
pub struct RelationFilter {
    /// Type of the relation; any where absent or empty.
    #[schemars(extend("x-editor" = "relationType"))]
    pub relation_type: Option<String>,
    /// Types of the entity that is found; any where empty.
    #[serde(deserialize_with = "super::null_as_default")]
    #[schema(value_type = Vec<String>)]
    #[schemars(extend("x-editor" = "entityType"))]
    pub entity_types: Vec<EntityType>,
    /// Relations of any type but this.
    #[serde(deserialize_with = "super::null_as_default")]
    pub negate: bool,
}

impl RelationFilter {
    /// Whether it keeps a relation that was found in this direction.
    pub fn matches(&self, relation: &EntityRelation, direction: SearchDirection) -> bool {
        let of_type = match self.relation_type.as_deref().filter(|name| !name.is_empty()) {
            Some(name) => (name == relation.relation_type) != self.negate,
            None => true,
        };
        let found = relation.endpoint(direction).entity_type;
        of_type && (self.entity_types.is_empty() || self.entity_types.contains(&found))
    }
}

/// Where a search starts and how far it goes.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct RelationsSearchParameters {
    /// Where it starts.
    pub root_id: uuid::Uuid,
    /// Kind of the entity where it starts.
    #[schema(value_type = String)]
    pub root_type: EntityType,
    /// Which way it goes.
    #[serde(default)]
    #[serde(deserialize_with = "super::null_as_default")]
    pub direction: SearchDirection,
    /// Which relations it follows.
    #[serde(default)]
    #[serde(deserialize_with = "super::null_as_default")]
    pub relation_type_group: RelationTypeGroup,
    /// Steps from the root; 0 for as many as there are.
    #[serde(default)]
    #[serde(deserialize_with = "super::null_as_default")]
    pub max_level: i32,
    /// Only the relations of the last step.
    #[serde(default)]
    #[serde(deserialize_with = "super::null_as_default")]
    pub fetch_last_level_only: bool,
}

impl RelationsSearchParameters {
    /// Where the search starts.
    pub const fn root(&self) -> EntityId {
        EntityId::new(self.root_type, self.root_id)
    }
}

/// A search along relations.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct RelationsQuery {
    /// Where it starts and how far it goes.
    pub parameters: RelationsSearchParameters,
    /// A relation is kept where one of these matches, or there is none. They do not stop the walk.
    #[serde(default)]
    #[serde(deserialize_with = "super::null_as_default")]
    pub filters: Vec<RelationFilter>,
}

impl RelationsQuery {
    /// Whether the filters keep a relation.
    pub fn matches(&self, relation: &EntityRelation) -> bool {
        self.filters.is_empty()
            || self
                .filters
                .iter()
                .any(|filter| filter.matches(relation, self.parameters.direction))
    }
}
