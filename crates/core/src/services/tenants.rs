//! Tenants.

use std::sync::Arc;

use fieldline_model::entity::{Asset, AssetProfile, Contact, Device, DeviceProfile, EntityView, Tenant};
use fieldline_model::page::{PageData, PageLink};
use fieldline_model::{EntityId, Subject, TenantId};

use super::{
    Context, ServiceError, ServiceResult, conflict, profiles, queues, rule_chains, tenant_profiles, validate,
};
use crate::events::EntityChange;
use crate::ports::{Assignable, DashboardFilter, EntityStores, StoreResult, UserFilter};
use crate::usage::usage_id;

/// Entities read at once while everything of a tenant is deleted.
const PAGE: u32 = 1_000;

/// Rules about tenants.
#[derive(Clone)]
pub struct Tenants(Arc<Context>);

impl Tenants {
    pub(super) fn new(context: &Arc<Context>) -> Self {
        Self(Arc::clone(context))
    }

    /// Creates the tenant with default profiles of devices and assets and a root rule chain, or updates it where it has an id.
    ///
    /// # Errors
    /// A rule is broken, or the title is taken.
    pub async fn save(&self, mut tenant: Tenant) -> ServiceResult<Tenant> {
        check(&tenant)?;
        let stores = &self.0.stores;
        tenant.name.clone_from(&tenant.title);
        match tenant.tenant_profile_id {
            Some(profile) => {
                if stores.tenant_profiles.get(profile).await?.is_none() {
                    return Err(ServiceError::invalid(
                        "Tenant is referencing to non-existent tenant profile!",
                    ));
                }
            }
            None => {
                tenant.tenant_profile_id = tenant_profiles::ensure_default(&self.0).await?.id;
            }
        }
        const TAKEN: &str = "Tenant with such title already exists!";
        let saved = if let Some(id) = tenant.id {
            let old = stores
                .tenants
                .get(id)
                .await?
                .ok_or_else(|| ServiceError::invalid("Can't update non existing tenant!"))?;
            tenant.created_time = old.created_time;
            conflict(stores.tenants.save(tenant, false).await, TAKEN)?
        } else {
            tenant.id = Some(TenantId::new());
            tenant.created_time = self.0.now();
            let saved = conflict(stores.tenants.save(tenant, true).await, TAKEN)?;
            let id = saved.id.unwrap_or_default();
            profiles::ensure_default::<DeviceProfile>(&self.0, id).await?;
            profiles::ensure_default::<AssetProfile>(&self.0, id).await?;
            rule_chains::ensure_root(&self.0, id).await?;
            saved
        };
        queues::align(&self.0, saved.id.unwrap_or_default()).await?;
        self.0
            .tell(EntityChange::TenantSaved(saved.id.unwrap_or_default()));
        Ok(saved)
    }

    /// Deletes the tenant with everything that belongs to it, data included.
    ///
    /// # Errors
    /// The store failed; asking again goes on where it stopped.
    pub async fn delete(&self, tenant: TenantId) -> ServiceResult<()> {
        // Data goes first, so that a failure leaves something to ask again for; and once more at the end, for what
        // devices sent in between.
        let subjects = self.subjects(tenant).await?;
        self.forget(&subjects).await?;
        self.0.stores.tenants.delete(tenant).await?;
        self.0.tell(EntityChange::TenantDeleted(tenant));
        self.forget(&subjects).await
    }

    async fn forget(&self, subjects: &[Subject]) -> ServiceResult<()> {
        for subject in subjects {
            self.0.forget_data(*subject).await?;
        }
        Ok(())
    }

    /// Everything of the tenant that may have data.
    async fn subjects(&self, tenant: TenantId) -> ServiceResult<Vec<Subject>> {
        let stores = &self.0.stores;
        let mut ids: Vec<EntityId> = vec![tenant.into(), usage_id(tenant).into()];
        assigned_ids::<Device>(stores, tenant, &mut ids).await?;
        assigned_ids::<Asset>(stores, tenant, &mut ids).await?;
        assigned_ids::<EntityView>(stores, tenant, &mut ids).await?;
        collect(&mut ids, |link| async move {
            let page = stores.rule_chains.list(tenant, None, &link).await;
            page.map(|page| page.map(|chain| chain.id.map(EntityId::from)))
        })
        .await?;
        collect(&mut ids, |link| async move {
            let every = DashboardFilter::default();
            let page = stores.dashboards.list(tenant, &every, &link).await;
            page.map(|page| page.map(|dashboard| dashboard.id.map(EntityId::from)))
        })
        .await?;
        collect(&mut ids, |link| async move {
            let page = stores.customers.list(tenant, &link).await;
            page.map(|page| page.map(|customer| customer.id.map(EntityId::from)))
        })
        .await?;
        collect(&mut ids, |link| async move {
            let page = stores.users.list(UserFilter::OfTenant(tenant), &link).await;
            page.map(|page| page.map(|user| user.id.map(EntityId::from)))
        })
        .await?;
        Ok(ids.into_iter().map(|entity| Subject { tenant, entity }).collect())
    }
}

/// Adds the ids of all pages of a list.
async fn collect<F>(ids: &mut Vec<EntityId>, list: impl Fn(PageLink) -> F) -> StoreResult<()>
where
    F: Future<Output = StoreResult<PageData<Option<EntityId>>>>,
{
    let mut link = PageLink::first(PAGE);
    loop {
        let page = list(link.clone()).await?;
        ids.extend(page.data.into_iter().flatten());
        if !page.has_next {
            return Ok(());
        }
        link.page += 1;
    }
}

/// Adds the ids of all entities of a kind.
async fn assigned_ids<E: Assignable>(
    stores: &EntityStores,
    tenant: TenantId,
    ids: &mut Vec<EntityId>,
) -> StoreResult<()> {
    collect(ids, |link| async move {
        let page = E::store(stores).list(tenant, &E::Filter::default(), &link).await;
        page.map(|page| page.map(|info| E::of_info(info).id().map(Into::into)))
    })
    .await
}

fn check(tenant: &Tenant) -> ServiceResult<()> {
    validate::required("Tenant title", &tenant.title)?;
    if let Some(email) = tenant.contact.email.as_deref().filter(|email| !email.is_empty()) {
        validate::email(email)?;
    }
    validate::json_object("additionalInfo", tenant.additional_info.as_ref())?;
    validate::lengths(&[
        ("title", Some(&tenant.title)),
        ("region", tenant.region.as_deref()),
    ])?;
    check_contact(&tenant.contact)
}

/// Lengths of address and contact.
pub(super) fn check_contact(contact: &Contact) -> ServiceResult<()> {
    validate::lengths(&[
        ("country", contact.country.as_deref()),
        ("state", contact.state.as_deref()),
        ("city", contact.city.as_deref()),
        ("address", contact.address.as_deref()),
        ("address2", contact.address2.as_deref()),
        ("zip or postal code", contact.zip.as_deref()),
        ("phone", contact.phone.as_deref()),
        ("email", contact.email.as_deref()),
    ])
}
