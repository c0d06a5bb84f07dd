//! Entities that are found along relations.

use std::sync::Arc;

use fieldline_model::entity::{
    RelationFilter, RelationTypeGroup, RelationsQuery, RelationsSearchParameters, SearchDirection,
};
use fieldline_model::{DeviceId, EntityId, EntityType, TenantId};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::node::NodeError;
use crate::services::NodeServices;

/// A search along relations from the originator, as nodes are configured with it.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RelationsConfig {
    direction: SearchDirection,
    #[serde(default = "one")]
    max_level: i32,
    #[serde(default)]
    filters: Option<Vec<RelationFilter>>,
    #[serde(default)]
    fetch_last_level_only: bool,
}

const fn one() -> i32 {
    1
}

impl RelationsConfig {
    /// The entities that the search finds, nearest first.
    ///
    /// # Errors
    /// The store failed.
    pub(crate) async fn find(
        &self,
        services: &Arc<NodeServices>,
        tenant: TenantId,
        from: EntityId,
    ) -> Result<Vec<EntityId>, NodeError> {
        let query = RelationsQuery {
            parameters: RelationsSearchParameters {
                root_id: from.id,
                root_type: from.entity_type,
                direction: self.direction,
                relation_type_group: RelationTypeGroup::Common,
                max_level: self.max_level,
                fetch_last_level_only: self.fetch_last_level_only,
            },
            filters: self.filters.clone().unwrap_or_default(),
        };
        let relations = services.stores.relations.search(tenant, &query).await?;
        Ok(relations
            .iter()
            .map(|relation| relation.endpoint(self.direction))
            .collect())
    }

    /// The first entity that the search finds.
    ///
    /// # Errors
    /// The store failed.
    pub(crate) async fn first(
        &self,
        services: &Arc<NodeServices>,
        tenant: TenantId,
        from: EntityId,
    ) -> Result<Option<EntityId>, NodeError> {
        Ok(self.find(services, tenant, from).await?.into_iter().next())
    }
}

/// A search for related devices, as nodes are configured with it.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct DeviceRelationsConfig {
    direction: SearchDirection,
    #[serde(default = "one")]
    max_level: i32,
    #[serde(default)]
    #[schemars(extend("x-editor" = "relationType"))]
    relation_type: Option<String>,
    #[schemars(title = "Device profiles", extend("x-editor" = "deviceProfile"))]
    device_types: Vec<String>,
    #[serde(default)]
    fetch_last_level_only: bool,
}

impl DeviceRelationsConfig {
    /// The first device of one of the types that the search finds.
    ///
    /// # Errors
    /// The store failed.
    pub(crate) async fn first(
        &self,
        services: &Arc<NodeServices>,
        tenant: TenantId,
        from: EntityId,
    ) -> Result<Option<EntityId>, NodeError> {
        let search = RelationsConfig {
            direction: self.direction,
            max_level: self.max_level,
            filters: Some(vec![RelationFilter {
                relation_type: Some(
                    self.relation_type
                        .clone()
                        .unwrap_or_else(|| "Contains".to_owned()),
                ),
                entity_types: vec![EntityType::Device],
                negate: false,
            }]),
            fetch_last_level_only: self.fetch_last_level_only,
        };
        let ids: Vec<DeviceId> = search
            .find(services, tenant, from)
            .await?
            .into_iter()
            .map(|found| DeviceId(found.id))
            .collect();
        let devices = services.stores.devices.by_ids(tenant, &ids).await?;
        let fits = |id: &DeviceId| {
            devices
                .iter()
                .any(|device| device.id == *id && self.device_types.contains(&device.device_type))
        };
        Ok(ids.iter().find(|id| fits(id)).map(|id| (*id).into()))
    }
}
