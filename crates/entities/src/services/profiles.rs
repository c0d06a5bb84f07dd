//! Rules that hold for profiles of devices and of assets.

use std::marker::PhantomData;
use std::sync::Arc;

use fieldline_core::events::EntityChange;
use fieldline_core::ports::{EntityProfile, EntityStores, StoreErrorKind, StoreResult};
use fieldline_model::entity::EntityDraft;
use fieldline_model::page::PageLink;
use fieldline_model::{DashboardId, EntityId, EntityKey, EntityType, TenantId};

use super::{ServiceContext, ServiceError, ServiceResult, conflict, queues, saving};
use crate::access::{noun, title};

/// What tells kinds of profiles apart.
pub trait ProfileRules: EntityProfile {
    /// The kind of the entities that have such profiles.
    const MEMBERS: &'static str;
    /// A profile as the platform makes it for a type that has none yet.
    fn fresh(id: Self::Id, created_time: i64, tenant: TenantId, name: &str, is_default: bool) -> Self;

    /// Checks one that is about to be saved, and fills in what may be left out.
    fn prepare(
        context: &ServiceContext,
        profile: &mut EntityDraft<Self>,
    ) -> impl Future<Output = ServiceResult<()>> + Send;

    /// Checks what may change of a stored one.
    fn check_update(
        _context: &ServiceContext,
        _old: &Self,
        _new: &EntityDraft<Self>,
    ) -> impl Future<Output = ServiceResult<()>> + Send {
        std::future::ready(Ok(()))
    }

    /// The answer where something about one is taken that only one may have.
    fn taken(
        _context: &ServiceContext,
        _profile: &Self,
    ) -> impl Future<Output = ServiceResult<String>> + Send {
        std::future::ready(Ok(format!(
            "{} with such name already exists!",
            title(&Self::TYPE)
        )))
    }
}

/// Rules about a kind of profiles.
pub struct ProfileService<P> {
    context: Arc<ServiceContext>,
    kind: PhantomData<fn() -> P>,
}

impl<P> Clone for ProfileService<P> {
    fn clone(&self) -> Self {
        Self {
            context: Arc::clone(&self.context),
            kind: PhantomData,
        }
    }
}

impl<P: ProfileRules> ProfileService<P> {
    pub(super) fn new(context: &Arc<ServiceContext>) -> Self {
        Self {
            context: Arc::clone(context),
            kind: PhantomData,
        }
    }

    /// Creates the profile, or updates it where it has an id. Entities of a renamed profile change their type with it.
    ///
    /// # Errors
    /// A rule is broken, or name or provisioning key are taken.
    pub async fn save(&self, tenant: TenantId, mut profile: EntityDraft<P>) -> ServiceResult<P> {
        let (context, store) = (&*self.context, P::store(&self.context.stores));
        *profile.fields_mut().tenant = tenant;
        P::prepare(context, &mut profile).await?;
        check_default(context, tenant, &profile).await?;
        let old = saving::stored(store, tenant, &profile).await?;
        if let Some(old) = &old {
            P::check_update(context, old, &profile).await?;
            // There is always a default profile: it stops being one only when another takes its place.
            *profile.fields_mut().is_default |= old.is_default();
        }
        let wanted = profile.clone();
        let saved = match saving::save(context, store, profile, old.as_ref()).await {
            Err(error) if error.kind() == StoreErrorKind::Conflict => {
                let message = P::taken(context, &wanted).await?;
                return Err(ServiceError::from(error).with_message(message));
            }
            saved => saved?,
        };
        context.publish_change(EntityChange::saved(tenant, saved.id()));
        Ok(saved)
    }

    /// Makes the profile the only default one of its tenant.
    ///
    /// # Errors
    /// There is no such profile.
    pub async fn set_default(&self, tenant: TenantId, id: P::Id) -> ServiceResult<P> {
        let store = P::store(&self.context.stores);
        let gone = || ServiceError::not_found(format!("{} with id [{id}] is not found", title(&P::TYPE)));
        if !store.set_default(tenant, id).await? {
            return Err(gone());
        }
        self.context.publish_change(EntityChange::saved(tenant, id));
        store.get(tenant, id).await?.ok_or_else(gone)
    }

    /// Deletes the profile with its relations and what else belongs to it.
    ///
    /// # Errors
    /// It is the default one, or an entity has it.
    pub async fn delete(&self, tenant: TenantId, profile: &P) -> ServiceResult<()> {
        if profile.is_default() {
            // `Default Device Profile`, as ThingsBoard writes it.
            let member = title(&P::TYPE).replace(" profile", "");
            return Err(ServiceError::invalid(format!(
                "Deletion of Default {member} Profile is prohibited!"
            )));
        }
        let id = profile.id();
        conflict(
            P::store(&self.context.stores).delete(tenant, id).await,
            &format!(
                "The {} referenced by the {} cannot be deleted!",
                noun(P::TYPE),
                P::MEMBERS
            ),
        )?;
        self.context.publish_change(EntityChange::deleted(tenant, id));
        let entity: EntityId = id.into();
        let subject = EntityKey { tenant, entity };
        Ok(self.context.delete_links(subject).await?)
    }
}

/// Whether a profile that wants to be the default one may be.
async fn check_default<P: ProfileRules>(
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

/// Profiles that are read at once.
const PAGE: u32 = 1_000;

/// Whether a profile of a tenant is as a condition says.
pub(super) async fn any<P: ProfileRules>(
    stores: &EntityStores,
    tenant: TenantId,
    condition: impl Fn(&P) -> bool + Send + Sync,
) -> StoreResult<bool> {
    let mut link = PageLink {
        sort_property: Some("createdTime".to_owned()),
        ..PageLink::first(PAGE)
    };
    loop {
        let page = P::store(stores).list(tenant, &link).await?;
        if page.data.iter().any(&condition) {
            return Ok(true);
        }
        if !page.has_next {
            return Ok(false);
        }
        link.page += 1;
    }
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
    let saved = match store.insert(profile).await {
        // Somebody else was faster.
        Err(error) if error.kind() == StoreErrorKind::Conflict => {
            let found = store.by_name(tenant, name).await?;
            return found.ok_or_else(|| error.into());
        }
        saved => saved?,
    };
    context.publish_change(EntityChange::saved(tenant, saved.id()));
    Ok(saved)
}
