//! Rules that hold for everything that customers may have: devices, assets, entity views.

use async_trait::async_trait;
use fieldline_model::{CustomerId, EntityId, Subject, TenantId};

use super::names::no_free_name;
use super::{Context, NameConflict, ServiceError, ServiceResult, limits};
use crate::access::{Kind, noun, title};
use crate::events::EntityChange;
use crate::ports::Assignable;

/// The service of a kind of entities that customers may have.
#[async_trait]
pub trait AssignedService: Send + Sync {
    /// The kind.
    type Entity: Assignable;

    /// Assigns the entity to a customer of the tenant, or with the null id to none.
    ///
    /// # Errors
    /// There is no such entity or customer.
    async fn assign(
        &self,
        tenant: TenantId,
        id: <Self::Entity as Kind>::Id,
        customer: CustomerId,
    ) -> ServiceResult<Self::Entity>;

    /// Deletes the entity with its relations and alarms; its values and events go later, see [`super::Leftovers`]. What a view
    /// shows stays.
    ///
    /// # Errors
    /// Entity views show it, calculated fields name it, or the store failed; asking again goes on where it stopped.
    async fn delete(&self, tenant: TenantId, id: <Self::Entity as Kind>::Id) -> ServiceResult<()>;
}

/// The answer where another entity of the kind has the name.
pub(super) fn name_taken<E: Assignable>() -> String {
    format!("{} with such name already exists!", title(&E::TYPE))
}

/// Gives an entity that is about to be saved its tenant and, where that is asked for, a name that is free. Returns what
/// is stored of it.
pub(super) async fn prepare<E: Assignable>(
    context: &Context,
    tenant: TenantId,
    entity: &mut E,
    names: &NameConflict,
) -> ServiceResult<Option<E>> {
    let store = E::store(&context.stores);
    let old =
        match entity.id() {
            Some(id) => Some(store.get(tenant, id).await?.ok_or_else(|| {
                ServiceError::invalid(format!("Can't update non existing {}!", noun(E::TYPE)))
            })?),
            None => None,
        };
    *entity.head_mut().tenant = tenant;
    let renamed = old
        .as_ref()
        .is_none_or(|old| old.head().name != entity.head().name);
    if names.uniquifies() && renamed {
        let name = free_name::<E>(context, tenant, entity.head().name.to_owned(), names).await?;
        *entity.head_mut().name = name;
    }
    Ok(old)
}

async fn free_name<E: Assignable>(
    context: &Context,
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

/// Gives an entity the creation time that it has, or where it is new, a time and an id, if there may be one more.
pub(super) async fn complete<E: Assignable>(
    context: &Context,
    entity: &mut E,
    old: Option<&E>,
) -> ServiceResult<()> {
    if let Some(old) = old {
        *entity.head_mut().created_time = old.head().created_time;
        return Ok(());
    }
    limits::check(context, entity.head().tenant, E::TYPE).await?;
    let head = entity.head_mut();
    *head.id = Some(E::typed(fieldline_model::new_uuid()));
    *head.created_time = context.now();
    Ok(())
}

/// Whether the customer that an entity is assigned to exists.
pub(super) async fn check_customer<E: Assignable>(context: &Context, entity: &E) -> ServiceResult<()> {
    let head = entity.head();
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
pub(super) async fn handed_over<E: Assignable>(
    context: &Context,
    tenant: TenantId,
    id: E::Id,
    customer: CustomerId,
) -> ServiceResult<(E, bool)> {
    let found = E::store(&context.stores).get(tenant, id).await?;
    let mut entity = found
        .ok_or_else(|| ServiceError::not_found(format!("{} with id [{id}] is not found", title(&E::TYPE))))?;
    let old = std::mem::replace(entity.head_mut().customer, customer);
    Ok((entity, old != customer))
}

/// Deletes something that has data of its own.
pub(super) async fn delete_source<E: Assignable>(
    context: &Context,
    tenant: TenantId,
    id: E::Id,
    change: EntityChange,
) -> ServiceResult<()> {
    let entity: EntityId = id.into();
    let kind = noun(E::TYPE);
    super::entity_views::refuse_viewed(context, tenant, entity, &kind).await?;
    super::calculated_fields::refuse_referenced(context, tenant, entity, &kind).await?;
    let subject = Subject { tenant, entity };
    E::store(&context.stores).delete(tenant, id).await?;
    context.tell(change);
    Ok(context.forget_links(subject).await?)
}
