//! Entities that nodes look up: by name, by their fields, and whose they are.

use std::sync::Arc;

use fieldline_core::ports::{find_assignable, find_assignable_by_name, is_assignable};
use fieldline_model::{AlarmId, CustomerId, EntityId, EntityKey, EntityType, RuleChainId, TenantId, UserId};
use serde::Serialize;
use serde_json::Value;

use crate::node::NodeError;
use crate::services::NodeServices;

/// Types of entities that exist elsewhere: chains may name them, but no message comes from one here.
const FOREIGN_TYPES: &[&str] = &[
    "NOTIFICATION_TARGET",
    "NOTIFICATION_TEMPLATE",
    "NOTIFICATION_REQUEST",
    "NOTIFICATION",
    "NOTIFICATION_RULE",
    "OAUTH2_CLIENT",
    "DOMAIN",
    "MOBILE_APP",
    "MOBILE_APP_BUNDLE",
    "JOB",
    "ADMIN_SETTINGS",
    "AI_MODEL",
    "API_KEY",
];

/// Names of all types that a configuration may name.
pub(crate) fn type_names() -> impl Iterator<Item = &'static str> {
    let here = EntityType::ALL.iter().map(|known| known.name());
    here.chain(FOREIGN_TYPES.iter().copied())
}

/// Whether a configuration may name this type of entity.
pub(crate) fn is_type(name: &str) -> bool {
    name.parse::<EntityType>().is_ok() || FOREIGN_TYPES.contains(&name)
}

/// The customer of an entity, and the entity's name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct EntityOwnership {
    /// Its customer, where it has one.
    pub(crate) customer: Option<CustomerId>,
    /// Its name.
    pub(crate) name: String,
}

/// Whose an entity is; `None` where it does not exist.
///
/// # Errors
/// The store failed, or entities of that type have no customer.
pub(crate) async fn owner(
    services: &Arc<NodeServices>,
    subject: EntityKey,
) -> Result<Option<EntityOwnership>, NodeError> {
    let (tenant, id) = (subject.tenant, subject.entity.id);
    let stores = &services.stores;
    let owner = |customer: CustomerId, name: String| EntityOwnership {
        customer: Some(customer).filter(|customer| !customer.is_null()),
        name,
    };
    Ok(match subject.entity.entity_type {
        EntityType::Device | EntityType::Asset => {
            services
                .originators
                .get(subject)
                .await?
                .map(|known| EntityOwnership {
                    customer: known.customer,
                    name: known.name.to_string(),
                })
        }
        kind if is_assignable(kind) => {
            let found = find_assignable(stores, tenant, subject.entity).await?;
            found.map(|found| owner(found.resource().customer, found.name().to_owned()))
        }
        EntityType::User => stores
            .users
            .get(tenant, UserId(id))
            .await?
            .map(|user| owner(user.customer_id, user.email)),
        EntityType::Alarm => {
            let found = stores.alarms.get(tenant, AlarmId(id)).await?;
            found.map(|alarm| owner(alarm.customer_id.unwrap_or_default(), alarm.alarm_type))
        }
        EntityType::Customer => {
            let found = stores.customers.get(tenant, CustomerId(id)).await?;
            found.map(|customer| owner(CustomerId(id), customer.title))
        }
        other => {
            return Err(NodeError::new(format!(
                "entities of type {other} have no customer"
            )));
        }
    })
}

/// The customer of an entity; that of a customer is itself.
///
/// # Errors
/// The store failed, or entities of that type have no customer.
pub(crate) async fn customer_of(
    services: &Arc<NodeServices>,
    subject: EntityKey,
) -> Result<Option<CustomerId>, NodeError> {
    if subject.entity.entity_type == EntityType::Customer {
        return Ok(Some(CustomerId(subject.entity.id)));
    }
    Ok(owner(services, subject).await?.and_then(|owner| owner.customer))
}

/// Types of entities that are found by name.
pub(crate) const NAMED_TYPES: &[EntityType] = &[
    EntityType::Device,
    EntityType::Asset,
    EntityType::EntityView,
    EntityType::Edge,
    EntityType::User,
];

/// The entity of a type and name, if there is one; customers are found by their title, users by their e-mail address.
///
/// # Errors
/// The store failed.
pub(crate) async fn find(
    services: &Arc<NodeServices>,
    tenant: TenantId,
    entity_type: EntityType,
    name: &str,
) -> Result<Option<EntityId>, NodeError> {
    let stores = &services.stores;
    Ok(match entity_type {
        EntityType::Customer => {
            let customer = stores.customers.by_title(tenant, name).await?;
            customer.map(|it| it.id.into())
        }
        EntityType::User => {
            let user = stores.users.by_email(name).await?;
            let user = user.filter(|user| user.tenant_id == tenant);
            user.map(|it| it.id.into())
        }
        kind => {
            let found = find_assignable_by_name(stores, tenant, kind, name).await?;
            found.map(|found| found.subject().entity)
        }
    })
}

/// The entity of a type and name, as [`find`].
///
/// # Errors
/// The store failed, or there is none.
pub(crate) async fn by_name(
    services: &Arc<NodeServices>,
    tenant: TenantId,
    entity_type: EntityType,
    name: &str,
) -> Result<EntityId, NodeError> {
    find(services, tenant, entity_type, name).await?.ok_or_else(|| {
        let kind = entity_type.label().to_lowercase();
        NodeError::new(format!("failed to find {kind} with name '{name}'"))
    })
}

/// The fields of an entity as a JSON object, where ids are bare. `None` where it does not exist.
///
/// # Errors
/// The store failed, or the fields of entities of that type cannot be read.
pub(crate) async fn fields(
    services: &Arc<NodeServices>,
    subject: EntityKey,
) -> Result<Option<Value>, NodeError> {
    let (tenant, id) = (subject.tenant, subject.entity.id);
    let stores = &services.stores;
    match subject.entity.entity_type {
        EntityType::Tenant => json(stores.tenants.get(TenantId(id)).await?.filter(|_| id == tenant.0)),
        EntityType::Customer => json(stores.customers.get(tenant, CustomerId(id)).await?),
        EntityType::User => json(stores.users.get(tenant, UserId(id)).await?),
        EntityType::Alarm => json(stores.alarms.get(tenant, AlarmId(id)).await?),
        EntityType::RuleChain => json(stores.rule_chains.get(tenant, RuleChainId(id)).await?),
        kind if is_assignable(kind) => {
            let found = find_assignable(stores, tenant, subject.entity).await?;
            Ok(found.map(|found| with_bare_ids(found.to_json())))
        }
        other => Err(NodeError::new(format!("unexpected originator of type {other}"))),
    }
}

fn json<T: Serialize>(entity: Option<T>) -> Result<Option<Value>, NodeError> {
    let Some(entity) = entity else { return Ok(None) };
    let json = serde_json::to_value(entity).map_err(|error| NodeError::new(error.to_string()))?;
    Ok(Some(with_bare_ids(json)))
}

fn with_bare_ids(mut json: Value) -> Value {
    if let Value::Object(fields) = &mut json {
        fields.values_mut().for_each(bare_id);
    }
    json
}

fn bare_id(value: &mut Value) {
    let id = match value.as_object() {
        Some(fields) if fields.len() == 2 && fields.contains_key("entityType") => fields.get("id").cloned(),
        _ => None,
    };
    if let Some(id) = id {
        *value = id;
    }
}
