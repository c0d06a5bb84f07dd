//! Rules that hold for everything that customers may have: devices, assets, entity views.

use async_trait::async_trait;
use fieldline_core::events::EntityChange;
use fieldline_core::ports::AssignableEntity;
use fieldline_model::entity::{EntityDraft, StoredEntity};
use fieldline_model::{CustomerId, EntityId, EntityKey, TenantId};

use super::names::no_free_name;
use super::{NameConflict, ServiceContext, ServiceError, ServiceResult, quota};
use crate::access::{noun, title};

/// The service of a kind of entities that customers may have.
#[async_trait]
pub trait AssignableService: Send + Sync {
    /// The kind.
    type ManagedEntity: AssignableEntity;

    /// Assigns the entity to a customer of the tenant, or with the null id to none.
    ///
    /// # Errors
    /// There is no such entity or customer.
    async fn assign(
        &self,
        tenant: TenantId,
        id: <Self::ManagedEntity as StoredEntity>::Id,
        customer: CustomerId,
    ) -> ServiceResult<Self::ManagedEntity>;

    /// Deletes the entity with its relations and alarms; its values and events go later, see
    /// [`super::HousekeeperService`]. What a view shows stays.
    ///
    /// # Errors
    /// Entity views show it, calculated fields name it, or the store failed; asking again goes on where it stopped.
    async fn delete(
        &self,
        tenant: TenantId,
        id: <Self::ManagedEntity as StoredEntity>::Id,
    ) -> ServiceResult<()>;
}

/// The answer where another entity of the kind has the name.
pub(super) fn name_taken<E: AssignableEntity>() -> String {
    format!("{} with such name already exists!", title(&E::TYPE))
}

/// Gives an entity that is about to be saved its tenant and, where that is asked for, a name that is free. Returns what
/// is stored of it.
pub(super) async fn prepare<E: AssignableEntity>(
    context: &ServiceContext,
    tenant: TenantId,
    entity: &mut EntityDraft<E>,
    names: &NameConflict,
) -> ServiceResult<Option<E>> {
    let store = E::store(&context.stores);
    let old =
        match entity.id {
            Some(id) => Some(store.get(tenant, id).await?.ok_or_else(|| {
                ServiceError::invalid(format!("Can't update non existing {}!", noun(E::TYPE)))
            })?),
            None => None,
        };
    *entity.fields_mut().tenant = tenant;
    let renamed = old
        .as_ref()
        .is_none_or(|old| old.fields().name != entity.fields().name);
    if names.uniquifies() && renamed {
        let name = free_name::<E>(context, tenant, entity.fields().name.to_owned(), names).await?;
        *entity.fields_mut().name = name;
    }
    Ok(old)
}

async fn free_name<E: AssignableEntity>(
    context: &ServiceContext,
    tenant: TenantId,
    name: String,
    names: &NameConflict,
) -> ServiceResult<String> {
    let store = E::store(&context.stores);
    if store.by_name(tenant, &name).await?.is_none() {
        return Ok(name);
    }
    for candidate in names.alternatives(&name) {
        if store.by_name(tenant, &candidate).await?.is_none() {
            return Ok(candidate);
        }
    }
    no_free_name(&name)
}

/// An entity with the id and creation time that it has, or where it is new, with new ones, if there may be one more.
pub(super) async fn complete<E: AssignableEntity>(
    context: &ServiceContext,
    entity: EntityDraft<E>,
    old: Option<&E>,
) -> ServiceResult<E> {
    if let Some(old) = old {
        return Ok(entity.into_update(old));
    }
    quota::check(context, entity.fields().tenant, E::TYPE).await?;
    Ok(entity.into_new(E::typed(fieldline_model::new_uuid()), context.now()))
}

/// Whether the customer that an entity is assigned to exists.
pub(super) async fn check_customer<E: AssignableEntity>(
    context: &ServiceContext,
    entity: &E,
) -> ServiceResult<()> {
    let head = entity.fields();
    let customers = &context.stores.customers;
    if !head.customer.is_null() && customers.get(head.tenant, head.customer).await?.is_none() {
        return Err(ServiceError::invalid(format!(
            "Can't assign {} to non-existent customer!",
            noun(E::TYPE)
        )));
    }
    Ok(())
}

/// The entity with another customer, to be saved; and whether it has to be.
pub(super) async fn with_customer<E: AssignableEntity>(
    context: &ServiceContext,
    tenant: TenantId,
    id: E::Id,
    customer: CustomerId,
) -> ServiceResult<(E, bool)> {
    let found = E::store(&context.stores).get(tenant, id).await?;
    let mut entity = found
        .ok_or_else(|| ServiceError::not_found(format!("{} with id [{id}] is not found", title(&E::TYPE))))?;
    let old = std::mem::replace(entity.fields_mut().customer, customer);
    Ok((entity, old != customer))
}

/// Deletes something that has data of its own.
pub(super) async fn delete_source<E: AssignableEntity>(
    context: &ServiceContext,
    tenant: TenantId,
    id: E::Id,
) -> ServiceResult<()> {
    let entity: EntityId = id.into();
    let kind = noun(E::TYPE);
    super::entity_views::refuse_viewed(context, tenant, entity, &kind).await?;
    super::calculated_fields::refuse_referenced(context, tenant, entity, &kind).await?;
    let subject = EntityKey { tenant, entity };
    E::store(&context.stores).delete(tenant, id).await?;
    context.publish_change(EntityChange::deleted(tenant, id));
    Ok(context.delete_links(subject).await?)
}
