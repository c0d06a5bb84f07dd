//! Entities that nodes look for by name, and create where they may.

use std::sync::Arc;

use fieldline_entities::services::{NameConflict, ServiceError};
use fieldline_model::entity::{Asset, Customer, Device};
use fieldline_model::message::{MetadataMap, MsgType, QueueMessage};
use fieldline_model::{EntityId, EntityType, RuleNodeId, TenantId};
use serde::Serialize;

use super::derived;
use crate::message::RuleMessage;
use crate::node::NodeError;
use crate::nodes::entities;
use crate::services::NodeServices;

/// Types of entities that can be looked for.
pub(super) const TYPES: &[EntityType] = &[
    EntityType::Tenant,
    EntityType::Device,
    EntityType::Asset,
    EntityType::Customer,
    EntityType::EntityView,
    EntityType::Dashboard,
    EntityType::Edge,
    EntityType::User,
];

/// Whom a node looks for.
pub(super) struct EntityTarget {
    pub(super) entity_type: EntityType,
    /// Name, title or e-mail address.
    pub(super) name: String,
    /// Profile of a device or asset that is created; the default one where empty.
    pub(super) profile: String,
    /// Whether it is created where it does not exist.
    pub(super) create: bool,
}

impl EntityTarget {
    /// The entity. Where it is created, the rule engine is told.
    pub(super) async fn find(
        &self,
        services: &Arc<NodeServices>,
        node: RuleNodeId,
        msg: &RuleMessage,
    ) -> Result<EntityId, NodeError> {
        if let Some(id) = self.look(services, msg.tenant).await? {
            return Ok(id);
        }
        if !self.create {
            return Err(self.missing());
        }
        match self.entity_type {
            EntityType::Device => {
                let device = Device {
                    name: self.name.clone(),
                    device_type: self.profile.clone(),
                    ..Device::default()
                };
                let devices = &services.rules.devices;
                let saved = devices.save(msg.tenant, device.into(), &NameConflict::Fail).await;
                self.finish(services, node, msg, saved, |device| device.id.into())
                    .await
            }
            EntityType::Asset => {
                let asset = Asset {
                    name: self.name.clone(),
                    asset_type: self.profile.clone(),
                    ..Asset::default()
                };
                let assets = services.rules.assignables::<Asset>();
                let saved = assets.save(msg.tenant, asset.into(), &NameConflict::Fail).await;
                self.finish(services, node, msg, saved, |asset| asset.id.into())
                    .await
            }
            EntityType::Customer => {
                let customer = Customer {
                    title: self.name.clone(),
                    ..Customer::default()
                };
                let customers = &services.rules.customers;
                let saved = customers
                    .save(msg.tenant, customer.into(), &NameConflict::Fail)
                    .await;
                self.finish(services, node, msg, saved, |customer| customer.id.into())
                    .await
            }
            _ => Err(self.missing()),
        }
    }

    async fn look(
        &self,
        services: &Arc<NodeServices>,
        tenant: TenantId,
    ) -> Result<Option<EntityId>, NodeError> {
        match self.entity_type {
            EntityType::Tenant => Ok(Some(tenant.into())),
            entity_type => entities::find(services, tenant, entity_type, &self.name).await,
        }
    }

    async fn finish<T: Serialize>(
        &self,
        services: &Arc<NodeServices>,
        node: RuleNodeId,
        msg: &RuleMessage,
        saved: Result<T, ServiceError>,
        id: fn(&T) -> EntityId,
    ) -> Result<EntityId, NodeError> {
        let entity = match saved {
            Ok(entity) => entity,
            Err(error) => {
                // Somebody else may have been faster.
                let found = self.look(services, msg.tenant).await?;
                return found.ok_or_else(|| {
                    let (kind, word) = self.words();
                    let kind = kind.to_lowercase();
                    NodeError::new(format!(
                        "Failed to create {kind} with {word} '{}' due to: {error}",
                        self.name
                    ))
                });
            }
        };
        let id = id(&entity);
        let body = serde_json::to_string(&entity).map_err(|error| NodeError::new(error.to_string()))?;
        let metadata = MetadataMap::from_iter([("ruleNodeId", node.0.to_string())]);
        let mut told = QueueMessage::new(MsgType::EntityCreated, id, services.now_ms(), metadata, body);
        told.id = derived::id(msg.id, node, 2);
        services.engine.push(msg.tenant, told).await?;
        Ok(id)
    }

    /// What it is, and what its name is called.
    const fn words(&self) -> (&'static str, &'static str) {
        match self.entity_type {
            EntityType::Device => ("Device", "name"),
            EntityType::Asset => ("Asset", "name"),
            EntityType::Customer => ("Customer", "title"),
            EntityType::EntityView => ("Entity View", "name"),
            EntityType::Dashboard => ("Dashboard", "title"),
            EntityType::User => ("User", "email"),
            _ => ("Edge", "name"),
        }
    }

    fn missing(&self) -> NodeError {
        let (kind, word) = self.words();
        NodeError::new(format!("{kind} with {word} '{}' doesn't exist!", self.name))
    }
}
