//! Which entities a query is about.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use uuid::Uuid;

use crate::entity::{RelationFilter, SearchDirection};
use crate::{EntityId, EntityType};

/// An entity, or one that follows from who asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AliasId {
    /// This entity.
    Entity(EntityId),
    /// The customer of the one who asks.
    CurrentCustomer,
    /// The tenant of the one who asks.
    CurrentTenant,
    /// The user who asks.
    CurrentUser,
    /// The customer of the one who asks, or the tenant where that has none.
    CurrentUserOwner,
}

impl<'de> Deserialize<'de> for AliasId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct AliasIdInput {
            entity_type: String,
            id: Option<Uuid>,
        }
        let shape = AliasIdInput::deserialize(deserializer)?;
        Ok(match shape.entity_type.as_str() {
            "CURRENT_CUSTOMER" => Self::CurrentCustomer,
            "CURRENT_TENANT" => Self::CurrentTenant,
            "CURRENT_USER" => Self::CurrentUser,
            "CURRENT_USER_OWNER" => Self::CurrentUserOwner,
            name => {
                let entity_type = name.parse().map_err(serde::de::Error::custom)?;
                let id = shape.id.ok_or_else(|| serde::de::Error::missing_field("id"))?;
                Self::Entity(EntityId::new(entity_type, id))
            }
        })
    }
}

impl Serialize for AliasId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        #[serde(rename_all = "camelCase")]
        struct AliasIdJson {
            entity_type: &'static str,
        }
        let entity_type = match self {
            Self::Entity(entity) => return entity.serialize(serializer),
            Self::CurrentCustomer => "CURRENT_CUSTOMER",
            Self::CurrentTenant => "CURRENT_TENANT",
            Self::CurrentUser => "CURRENT_USER",
            Self::CurrentUserOwner => "CURRENT_USER_OWNER",
        };
        AliasIdJson { entity_type }.serialize(serializer)
    }
}

impl utoipa::PartialSchema for AliasId {
    fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::schema::Schema> {
        EntityId::schema()
    }
}

impl utoipa::ToSchema for AliasId {}

/// Types of entities.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(default)]
#[schema(as = Types)]
pub struct EntityTypeNames {
    /// One of these types; sent as `assetTypes`, `deviceTypes`, `entityViewTypes` or `edgeTypes`.
    #[serde(
        rename = "types",
        alias = "assetTypes",
        alias = "deviceTypes",
        alias = "entityViewTypes",
        alias = "edgeTypes",
        deserialize_with = "crate::entity::null_as_default"
    )]
    pub any_of: Vec<String>,
}

/// Types and the beginning of names.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct TypeFilter {
    /// The types.
    #[serde(flatten)]
    pub types: EntityTypeNames,
    /// The one type, in older queries.
    #[serde(
        alias = "assetType",
        alias = "deviceType",
        alias = "entityViewType",
        alias = "edgeType"
    )]
    pub only_type: Option<String>,
    /// How the name begins, regardless of case; a pattern where it has `%` at an end. Sent as `assetNameFilter`,
    /// `deviceNameFilter`, `entityViewNameFilter` or `edgeNameFilter`.
    #[serde(
        alias = "assetNameFilter",
        alias = "deviceNameFilter",
        alias = "entityViewNameFilter",
        alias = "edgeNameFilter"
    )]
    pub name_filter: Option<String>,
}

impl TypeFilter {
    /// The types; none lets nothing through.
    pub fn type_names(&self) -> Vec<&str> {
        if self.types.any_of.is_empty() {
            return self.only_type.as_deref().into_iter().collect();
        }
        self.types.any_of.iter().map(String::as_str).collect()
    }
}

/// Entities of some types that are found along relations.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct SearchFilter {
    /// Where the search starts.
    pub root_entity: AliasId,
    /// Type of the relation by which the entity is found; any where absent.
    #[serde(default)]
    pub relation_type: Option<String>,
    /// Which way it goes.
    #[serde(default, deserialize_with = "crate::entity::null_as_default")]
    pub direction: SearchDirection,
    /// Steps from the root; 0 for as many as there are.
    #[serde(default, deserialize_with = "crate::entity::null_as_default")]
    pub max_level: i32,
    /// Only what is found at the last step.
    #[serde(default, deserialize_with = "crate::entity::null_as_default")]
    pub fetch_last_level_only: bool,
    /// The types; any where there are none.
    #[serde(flatten)]
    pub types: EntityTypeNames,
}

/// Which entities a query is about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(tag = "type", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum EntityFilter {
    /// One entity.
    SingleEntity {
        /// The entity.
        single_entity: AliasId,
    },
    /// Some entities of a type.
    EntityList {
        /// Their type.
        #[schema(value_type = String)]
        entity_type: EntityType,
        /// Their bare ids.
        entity_list: Vec<Uuid>,
    },
    /// Entities of a type whose name begins with something.
    EntityName {
        /// Their type.
        #[schema(value_type = String)]
        entity_type: EntityType,
        /// How the name begins, regardless of case; a pattern where it has `%` at an end.
        entity_name_filter: String,
    },
    /// All entities of a type.
    EntityType {
        /// The type.
        #[schema(value_type = String)]
        entity_type: EntityType,
    },
    /// Assets of some types.
    AssetType(TypeFilter),
    /// Devices of some types.
    DeviceType(TypeFilter),
    /// Edges of some types.
    EdgeType(TypeFilter),
    /// Entity views of some types.
    EntityViewType(TypeFilter),
    /// What is found along relations.
    RelationsQuery {
        /// Where the search starts.
        #[serde(default)]
        root_entity: Option<AliasId>,
        /// Whether it starts at several entities instead.
        #[serde(default, deserialize_with = "crate::entity::null_as_default")]
        multi_root: bool,
        /// Their type.
        #[serde(default)]
        #[schema(value_type = Option<String>)]
        multi_root_entities_type: Option<EntityType>,
        /// Their bare ids.
        #[serde(default, deserialize_with = "crate::entity::null_as_default")]
        multi_root_entity_ids: Vec<Uuid>,
        /// Which way it goes.
        #[serde(default, deserialize_with = "crate::entity::null_as_default")]
        direction: SearchDirection,
        /// Which relations lead to what is found; all where empty.
        #[serde(default, deserialize_with = "crate::entity::null_as_default")]
        filters: Vec<RelationFilter>,
        /// Steps from the root; 0 for as many as there are.
        #[serde(default, deserialize_with = "crate::entity::null_as_default")]
        max_level: i32,
        /// Only what is found at the last step.
        #[serde(default, deserialize_with = "crate::entity::null_as_default")]
        fetch_last_level_only: bool,
        /// Relations that the filters do not keep, instead of those they keep.
        #[serde(default, deserialize_with = "crate::entity::null_as_default")]
        negate: bool,
    },
    /// Assets found along relations.
    AssetSearchQuery(SearchFilter),
    /// Devices found along relations.
    DeviceSearchQuery(SearchFilter),
    /// Entity views found along relations.
    EntityViewSearchQuery(SearchFilter),
    /// Edges found along relations.
    EdgeSearchQuery(SearchFilter),
    /// What carries the usage of the tenant.
    ApiUsageState {
        /// The customer whose usage it is; the tenant's where absent.
        #[serde(default)]
        customer_id: Option<crate::CustomerId>,
    },
}
