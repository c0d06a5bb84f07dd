//! Tenants.

use std::sync::Arc;

use fieldline_core::events::EntityChange;
use fieldline_model::TenantId;
use fieldline_model::entity::{AssetProfile, Contact, DeviceProfile, EntityDraft, Tenant};

use super::{
    ServiceContext, ServiceError, ServiceResult, conflict, profiles, queues, rule_chains, tenant_profiles,
    validate,
};

/// Rules about tenants.
#[derive(Clone)]
pub struct TenantService(Arc<ServiceContext>);

impl TenantService {
    pub(super) fn new(context: &Arc<ServiceContext>) -> Self {
        Self(Arc::clone(context))
    }

    /// Creates the tenant with default profiles of devices and assets and a root rule chain, or updates it where it has an id.
    ///
    /// # Errors
    /// A rule is broken, or the title is taken.
    pub async fn save(&self, mut tenant: EntityDraft<Tenant>) -> ServiceResult<Tenant> {
        check(&tenant)?;
        let stores = &self.0.stores;
        tenant.name = tenant.title.clone();
        match tenant.tenant_profile_id {
            Some(profile) => {
                if stores.tenant_profiles.get(profile).await?.is_none() {
                    return Err(ServiceError::invalid(
                        "Tenant is referencing to non-existent tenant profile!",
                    ));
                }
            }
            None => {
                tenant.tenant_profile_id = Some(tenant_profiles::ensure_default(&self.0).await?.id);
            }
        }
        const TAKEN: &str = "Tenant with such title already exists!";
        let saved = if let Some(id) = tenant.id {
            let old = stores
                .tenants
                .get(id)
                .await?
                .ok_or_else(|| ServiceError::invalid("Can't update non existing tenant!"))?;
            conflict(stores.tenants.update(tenant.into_update(&old)).await, TAKEN)?
        } else {
            let tenant = tenant.into_new(TenantId::new(), self.0.now());
            let saved = conflict(stores.tenants.insert(tenant).await, TAKEN)?;
            let id = saved.id;
            profiles::ensure_default::<DeviceProfile>(&self.0, id).await?;
            profiles::ensure_default::<AssetProfile>(&self.0, id).await?;
            rule_chains::ensure_root(&self.0, id).await?;
            saved
        };
        let id = saved.id;
        let has_new_queues = queues::align(&self.0, id).await?;
        self.0.publish_change(EntityChange::saved(id, id));
        if has_new_queues {
            queues::in_force(&self.0).await;
        }
        Ok(saved)
    }

    /// Deletes the tenant with everything that belongs to it. Its values go later, see [`super::HousekeeperService`].
    ///
    /// # Errors
    /// The store failed; what was begun is finished later, or by asking again.
    pub async fn delete(&self, tenant: TenantId) -> ServiceResult<()> {
        self.0.stores.tenants.delete(tenant).await?;
        self.0.publish_change(EntityChange::deleted(tenant, tenant));
        Ok(())
    }
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
