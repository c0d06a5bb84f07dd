//! Dashboards.

use std::sync::Arc;

use fieldline_core::events::EntityChange;
use fieldline_model::entity::{AssetProfile, Customer, Dashboard, DashboardInfo, DeviceProfile, EntityDraft};
use fieldline_model::{DashboardId, EntityId, EntityKey, EntityType, TenantId};

use super::{ServiceContext, ServiceError, ServiceResult, profiles, quota, saving, validate};

/// Rules about dashboards.
#[derive(Clone)]
pub struct DashboardService(Arc<ServiceContext>);

impl DashboardService {
    pub(super) fn new(context: &Arc<ServiceContext>) -> Self {
        Self(Arc::clone(context))
    }

    /// Creates the dashboard, or updates it where it has an id. Whom it is assigned to stays as it is.
    ///
    /// # Errors
    /// A rule is broken, or the tenant has as many dashboards as it may have.
    pub async fn save(
        &self,
        tenant: TenantId,
        mut dashboard: EntityDraft<Dashboard>,
    ) -> ServiceResult<Dashboard> {
        let stores = &self.0.stores.dashboards;
        validate::required("Dashboard title", &dashboard.info.title)?;
        validate::lengths(&[("title", Some(&dashboard.info.title))])?;
        validate::json_object("configuration", dashboard.configuration.as_ref())?;
        let info = &mut dashboard.info;
        info.tenant_id = tenant;
        info.name.clone_from(&info.title);
        let saved = match dashboard.id {
            Some(id) => {
                let old = stores.info(tenant, id).await?;
                let old = old.ok_or_else(|| saving::not_there(EntityType::Dashboard))?;
                stores.update(dashboard.into_new(id, old.created_time)).await?
            }
            None => {
                quota::check(&self.0, tenant, EntityType::Dashboard).await?;
                let dashboard = dashboard.into_new(DashboardId::new(), self.0.now());
                stores.insert(dashboard).await?
            }
        };
        let id = saved.info.id;
        self.0.publish_change(EntityChange::saved(tenant, id));
        Ok(saved)
    }

    /// Assigns the dashboard to a customer of the same tenant, beside those it is assigned to already. Returns whether
    /// that is new.
    ///
    /// # Errors
    /// The store failed.
    pub async fn assign(
        &self,
        tenant: TenantId,
        id: DashboardId,
        customer: &Customer,
    ) -> ServiceResult<bool> {
        let customer = customer.id;
        let changed = self.0.stores.dashboards.assign(tenant, id, customer).await?;
        self.0.publish_change(EntityChange::saved(tenant, id));
        Ok(changed)
    }

    /// Takes the dashboard back from a customer. Returns whether it was assigned to it.
    ///
    /// # Errors
    /// The store failed.
    pub async fn unassign(
        &self,
        tenant: TenantId,
        id: DashboardId,
        customer: &Customer,
    ) -> ServiceResult<bool> {
        let customer = customer.id;
        let changed = self.0.stores.dashboards.unassign(tenant, id, customer).await?;
        self.0.publish_change(EntityChange::saved(tenant, id));
        Ok(changed)
    }

    /// Deletes a dashboard with its data and relations.
    ///
    /// # Errors
    /// A profile names it as the dashboard of its devices or assets.
    pub async fn delete(&self, dashboard: &DashboardInfo) -> ServiceResult<()> {
        let (tenant, id) = (dashboard.tenant_id, dashboard.id);
        self.refuse_named(tenant, id.into()).await?;
        let subject = EntityKey {
            tenant,
            entity: id.into(),
        };
        self.0.stores.dashboards.delete(tenant, id).await?;
        self.0.publish_change(EntityChange::deleted(tenant, id));
        self.0.delete_links(subject).await?;
        Ok(())
    }

    async fn refuse_named(&self, tenant: TenantId, dashboard: EntityId) -> ServiceResult<()> {
        let stores = &self.0.stores;
        let names = |profile: &Option<EntityId>| *profile == Some(dashboard);
        let refused = |profile: &str| {
            Err(ServiceError::invalid(format!(
                "The dashboard is referenced by {profile}"
            )))
        };
        if profiles::any::<DeviceProfile>(stores, tenant, |it| names(&it.default_dashboard_id)).await? {
            return refused("a device profile");
        }
        if profiles::any::<AssetProfile>(stores, tenant, |it| names(&it.default_dashboard_id)).await? {
            return refused("an asset profile");
        }
        Ok(())
    }
}
