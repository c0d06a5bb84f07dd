//! Rules that hold for profiles of devices and of assets.

use async_trait::async_trait;
use fieldline_core::events::EntityChange;
use fieldline_core::ports::{EntityProfile, StoreErrorKind};
use fieldline_model::entity::{EntityDraft, StoredEntity};
use fieldline_model::{DashboardId, EntityId, EntityKey, EntityType, TenantId};

use super::{ServiceContext, ServiceError, ServiceResult, conflict, queues};
use crate::access::{noun, title};

/// The service of a kind of profiles.
#[async_trait]
pub trait ProfileService: Send + Sync {
    /// The kind.
    type ManagedProfile: EntityProfile;

    /// Creates the profile, or updates it where it has an id. Entities of a renamed profile change their type with it.
    ///
    /// # Errors
    /// A rule is broken, or name or provisioning key are taken.
    async fn save(
        &self,
        tenant: TenantId,
        profile: EntityDraft<Self::ManagedProfile>,
    ) -> ServiceResult<Self::ManagedProfile>;

    /// Makes the profile the only default one of its tenant.
    ///
    /// # Errors
    /// There is no such profile.
    async fn set_default(
        &self,
        tenant: TenantId,
        id: <Self::ManagedProfile as StoredEntity>::Id,
    ) -> ServiceResult<Self::ManagedProfile>;

    /// Deletes the profile with its relations and what else belongs to it.
    ///
    /// # Errors
    /// It is the default one, or an entity has it.
    async fn delete(&self, tenant: TenantId, profile: &Self::ManagedProfile) -> ServiceResult<()>;
}

/// What tells kinds of profiles apart.
pub(super) trait ProfileRules: EntityProfile {
    /// The kind of the entities that have such profiles.
    const MEMBERS: &'static str;
    /// A profile as the platform makes it for a type that has none yet.
    fn fresh(id: Self::Id, created_time: i64, tenant: TenantId, name: &str, is_default: bool) -> Self;
}

/// Tells that a profile was saved.
pub(super) fn publish_profile_change<P: ProfileRules>(context: &ServiceContext, tenant: TenantId, id: P::Id) {
    context.publish_change(EntityChange::saved(tenant, id));
}

/// Whether a profile that wants to be the default one may be.
pub(super) async fn check_default<P: ProfileRules>(
    context: &ServiceContext,
    tenant: TenantId,
    profile: &EntityDraft<P>,
) -> ServiceResult<()> {
    if !profile.is_default() {
        return Ok(());
    }
    let default = P::store(&context.stores).default_profile(tenant).await?;
    match default {
        Some(default) if Some(default.id()) != profile.id => Err(ServiceError::invalid(format!(
            "Another default {} is present in scope of current tenant!",
            noun(P::TYPE)
        ))),
        _ => Ok(()),
    }
}

/// What is stored of a profile that is updated.
pub(super) async fn stored<P: ProfileRules>(
    context: &ServiceContext,
    tenant: TenantId,
    id: P::Id,
) -> ServiceResult<P> {
    let found = P::store(&context.stores).get(tenant, id).await?;
    found.ok_or_else(|| ServiceError::invalid(format!("Can't update non existing {}!", noun(P::TYPE))))
}

/// Whether the queue that a profile names exists.
pub(super) async fn check_queue<P: ProfileRules>(
    context: &ServiceContext,
    tenant: TenantId,
    queue: Option<&str>,
) -> ServiceResult<()> {
    match queue.filter(|name| !name.is_empty()) {
        Some(name) if !queues::exists(context, tenant, name).await? => Err(ServiceError::invalid(format!(
            "{} is referencing to non-existent queue!",
            title(&P::TYPE)
        ))),
        _ => Ok(()),
    }
}

/// Whether the dashboard that a profile names is one of the tenant's.
pub(super) async fn check_dashboard(
    context: &ServiceContext,
    tenant: TenantId,
    dashboard: Option<EntityId>,
) -> ServiceResult<()> {
    let Some(dashboard) = dashboard else {
        return Ok(());
    };
    let known = dashboard.entity_type == EntityType::Dashboard && {
        let id = DashboardId(dashboard.id);
        context.stores.dashboards.info(tenant, id).await?.is_some()
    };
    match known {
        true => Ok(()),
        false => Err(ServiceError::invalid("Can't assign non-existent dashboard!")),
    }
}

/// See [`ProfileService::set_default`].
pub(super) async fn set_default<P: ProfileRules>(
    context: &ServiceContext,
    tenant: TenantId,
    id: P::Id,
) -> ServiceResult<P> {
    let store = P::store(&context.stores);
    let gone = || ServiceError::not_found(format!("{} with id [{id}] is not found", title(&P::TYPE)));
    if !store.set_default(tenant, id).await? {
        return Err(gone());
    }
    context.publish_change(EntityChange::saved(tenant, id));
    store.get(tenant, id).await?.ok_or_else(gone)
}

/// See [`ProfileService::delete`].
pub(super) async fn delete<P: ProfileRules>(
    context: &ServiceContext,
    tenant: TenantId,
    profile: &P,
) -> ServiceResult<()> {
    if profile.is_default() {
        // `Default Device Profile`, as ThingsBoard writes it.
        let member = title(&P::TYPE).replace(" profile", "");
        return Err(ServiceError::invalid(format!(
            "Deletion of Default {member} Profile is prohibited!"
        )));
    }
    let id = profile.id();
    conflict(
        P::store(&context.stores).delete(tenant, id).await,
        &format!(
            "The {} referenced by the {} cannot be deleted!",
            noun(P::TYPE),
            P::MEMBERS
        ),
    )?;
    context.publish_change(EntityChange::deleted(tenant, id));
    let entity: EntityId = id.into();
    let subject = EntityKey { tenant, entity };
    Ok(context.delete_links(subject).await?)
}

/// The default profile of the tenant; created where there is none yet.
pub(super) async fn ensure_default<P: ProfileRules>(
    context: &ServiceContext,
    tenant: TenantId,
) -> ServiceResult<P> {
    match P::store(&context.stores).default_profile(tenant).await? {
        Some(profile) => Ok(profile),
        None => create(context, tenant, "default", true).await,
    }
}

/// The profile of an entity that names its profile, its type, or neither.
pub(super) async fn of_entity<P: ProfileRules>(
    context: &ServiceContext,
    tenant: TenantId,
    id: Option<P::Id>,
    name: &str,
) -> ServiceResult<P> {
    let store = P::store(&context.stores);
    if let Some(id) = id {
        let member = title(&P::TYPE).replace(" profile", "");
        return store.get(tenant, id).await?.ok_or_else(|| {
            ServiceError::invalid(format!("{member} is referencing non existing {}!", noun(P::TYPE)))
        });
    }
    if name.is_empty() {
        return ensure_default(context, tenant).await;
    }
    if let Some(profile) = store.by_name(tenant, name).await? {
        return Ok(profile);
    }
    let is_default = name == "default" && store.default_profile(tenant).await?.is_none();
    create(context, tenant, name, is_default).await
}

async fn create<P: ProfileRules>(
    context: &ServiceContext,
    tenant: TenantId,
    name: &str,
    is_default: bool,
) -> ServiceResult<P> {
    let store = P::store(&context.stores);
    let id = P::typed(fieldline_model::new_uuid());
    let profile = P::fresh(id, context.now(), tenant, name, is_default);
    let saved = match store.save(profile, true).await {
        // Somebody else was faster.
        Err(error) if error.kind() == StoreErrorKind::Conflict => {
            let found = store.by_name(tenant, name).await?;
            return found.ok_or_else(|| error.into());
        }
        saved => saved?,
    };
    publish_profile_change::<P>(context, tenant, saved.id());
    Ok(saved)
}
