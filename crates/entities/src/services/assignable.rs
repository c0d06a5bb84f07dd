//! Rules that hold for everything that customers may have: devices, assets, entity views.

use std::marker::PhantomData;
use std::sync::Arc;

use fieldline_core::events::EntityChange;
use fieldline_core::ports::AssignableEntity;
use fieldline_model::entity::EntityDraft;
use fieldline_model::{CustomerId, EntityId, EntityKey, TenantId};

use super::names::no_free_name;
use super::{
    NameConflict, ServiceContext, ServiceError, ServiceErrorKind, ServiceResult, conflict, quota, saving,
};
use crate::access::{noun, title};

/// What tells kinds of entities that customers may have apart.
pub trait AssignableRules: AssignableEntity {
    /// Checks one that is about to be saved, and fills in what follows from the rest of it.
    fn prepare(
        context: &ServiceContext,
        entity: &mut EntityDraft<Self>,
    ) -> impl Future<Output = ServiceResult<()>> + Send;

    /// Stores a new one.
    fn insert(context: &ServiceContext, entity: Self) -> impl Future<Output = ServiceResult<Self>> + Send {
        async {
            let inserted = Self::store(&context.stores).insert(entity).await;
            conflict(inserted, &name_taken::<Self>())
        }
    }

    /// Does what has to follow once one is saved.
    fn follow(
        _context: &ServiceContext,
        _old: Option<&Self>,
        _saved: &Self,
    ) -> impl Future<Output = ServiceResult<()>> + Send {
        std::future::ready(Ok(()))
    }

    /// Deletes one, see [`AssignableService::delete`].
    fn delete(
        context: &ServiceContext,
        tenant: TenantId,
        id: Self::Id,
    ) -> impl Future<Output = ServiceResult<()>> + Send {
        delete_source::<Self>(context, tenant, id)
    }
}

/// Rules about a kind of entities that customers may have.
pub struct AssignableService<E> {
    pub(super) context: Arc<ServiceContext>,
    kind: PhantomData<fn() -> E>,
}

impl<E> Clone for AssignableService<E> {
    fn clone(&self) -> Self {
        Self {
            context: Arc::clone(&self.context),
            kind: PhantomData,
        }
    }
}

impl<E: AssignableRules> AssignableService<E> {
    pub(super) fn new(context: &Arc<ServiceContext>) -> Self {
        Self {
            context: Arc::clone(context),
            kind: PhantomData,
        }
    }

    /// Creates the entity, or updates it where it has an id. Type and profile, where it has one, are brought in line, and the
    /// profile of a new type is created. A device gets a random access token with its creation, and the attribute `active`;
    /// a view gets copies of the attributes that it names.
    ///
    /// # Errors
    /// A rule is broken, the name is taken, or the tenant has as many of the kind as it may have.
    pub async fn save(
        &self,
        tenant: TenantId,
        mut entity: EntityDraft<E>,
        names: &NameConflict,
    ) -> ServiceResult<E> {
        let old = prepare(&self.context, tenant, &mut entity, names).await?;
        let entity = complete(&self.context, entity, old.as_ref()).await?;
        let saved = match &old {
            Some(_) => conflict(
                E::store(&self.context.stores).update(entity).await,
                &name_taken::<E>(),
            ),
            None => E::insert(&self.context, entity).await,
        }?;
        self.context
            .publish_change(EntityChange::saved(tenant, saved.id()));
        E::follow(&self.context, old.as_ref(), &saved).await?;
        Ok(saved)
    }

    /// Assigns the entity to a customer of the tenant, or with the null id to none.
    ///
    /// # Errors
    /// There is no such entity or customer.
    pub async fn assign(&self, tenant: TenantId, id: E::Id, customer: CustomerId) -> ServiceResult<E> {
        let found = E::store(&self.context.stores).get(tenant, id).await?;
        let mut entity = found.ok_or_else(|| {
            ServiceError::not_found(format!("{} with id [{id}] is not found", title(&E::TYPE)))
        })?;
        let old = std::mem::replace(entity.fields_mut().customer, customer);
        if old == customer {
            return Ok(entity);
        }
        self.save(tenant, entity.into(), &NameConflict::Fail).await
    }

    /// Gives the entity from one customer, or with the null id from none, to another one; `None` if it is not that one's
    /// any more.
    ///
    /// # Errors
    /// There is no such entity or customer.
    pub async fn reassign(
        &self,
        tenant: TenantId,
        id: E::Id,
        from: CustomerId,
        to: CustomerId,
    ) -> ServiceResult<Option<E>> {
        loop {
            let found = E::store(&self.context.stores).get(tenant, id).await?;
            let mut entity = found.ok_or_else(|| {
                ServiceError::not_found(format!("{} with id [{id}] is not found", title(&E::TYPE)))
            })?;
            if *entity.fields_mut().customer != from {
                return Ok(None);
            }
            *entity.fields_mut().customer = to;
            // With the version that was read: who changes it meanwhile is looked at first.
            match self.save(tenant, entity.into(), &NameConflict::Fail).await {
                Err(error) if error.kind() == ServiceErrorKind::VersionConflict => {}
                saved => return saved.map(Some),
            }
        }
    }

    /// Deletes the entity with its relations and alarms; its values and events go later, see
    /// [`super::HousekeeperService`]. What a view shows stays.
    ///
    /// # Errors
    /// Entity views show it, calculated fields name it, or the store failed; asking again goes on where it stopped.
    pub async fn delete(&self, tenant: TenantId, id: E::Id) -> ServiceResult<()> {
        E::delete(&self.context, tenant, id).await
    }
}

/// The answer where another entity of the kind has the name.
pub(super) fn name_taken<E: AssignableEntity>() -> String {
    format!("{} with such name already exists!", title(&E::TYPE))
}

/// Gives an entity that is about to be saved its tenant and, where that is asked for, a name that is free; then the rules of
/// its kind apply. Returns what is stored of it.
pub(super) async fn prepare<E: AssignableRules>(
    context: &ServiceContext,
    tenant: TenantId,
    entity: &mut EntityDraft<E>,
    names: &NameConflict,
) -> ServiceResult<Option<E>> {
    let old = saving::stored(E::store(&context.stores), tenant, entity).await?;
    *entity.fields_mut().tenant = tenant;
    let renamed = old
        .as_ref()
        .is_none_or(|old| old.fields().name != entity.fields().name);
    if names.uniquifies() && renamed {
        let name = free_name::<E>(context, tenant, entity.fields().name.to_owned(), names).await?;
        *entity.fields_mut().name = name;
    }
    E::prepare(context, entity).await?;
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
