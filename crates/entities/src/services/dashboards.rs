//! Dashboards.

use std::sync::Arc;

use fieldline_core::events::EntityChange;
use fieldline_core::ports::SavedBy;
use fieldline_model::entity::{
    AssetProfile, Customer, Dashboard, DashboardInfo, DeviceProfile, EntityDraft, EntityVersion,
};
use fieldline_model::page::{PageData, PageLink};
use fieldline_model::{DashboardId, EntityId, EntityKey, EntityType, TenantId};

use super::{
    ServiceContext, ServiceError, ServiceResult, profiles, quota, resources, saving, validate, versions,
};

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
        by: &SavedBy,
    ) -> ServiceResult<Dashboard> {
        let stores = &self.0.stores.dashboards;
        validate::required("Dashboard title", &dashboard.info.title)?;
        validate::lengths(&[("title", Some(&dashboard.info.title))])?;
        validate::json_object("configuration", dashboard.configuration.as_ref())?;
        // They were imported, or nobody can say whose they are.
        dashboard.resources = None;
        let info = &mut dashboard.info;
        info.tenant_id = tenant;
        info.name.clone_from(&info.title);
        let name = info.title.clone();
        let title = format!("\"{name}\" dashboard image");
        resources::keep_image(&self.0, tenant, &title, &mut info.image).await?;
        if let Some(configuration) = &mut dashboard.configuration {
            resources::keep_dashboard_images(&self.0, tenant, &name, configuration).await?;
        }
        let saved = match dashboard.id {
            Some(id) => {
                let old = stores.info(tenant, id).await?;
                let old = old.ok_or_else(|| saving::not_there(EntityType::Dashboard))?;
                let dashboard = dashboard.into_new(id, old.created_time);
                stores.update_by(dashboard, by).await?
            }
            None => {
                quota::check(&self.0, tenant, EntityType::Dashboard).await?;
                let dashboard = dashboard.into_new(DashboardId::new(), self.0.now());
                stores.insert_by(dashboard, by).await?
            }
        };
        let id = saved.info.id;
        self.0.publish_change(EntityChange::saved(tenant, id));
        Ok(saved)
    }

    /// A page of what was saved of the dashboard, the newest first; that it was saved as it is now is always among it.
    ///
    /// # Errors
    /// The store failed.
    pub async fn versions(
        &self,
        dashboard: &DashboardInfo,
        page: &PageLink,
    ) -> ServiceResult<PageData<EntityVersion>> {
        let present = EntityVersion {
            version: dashboard.version.unwrap_or_default(),
            created_time: dashboard.created_time,
            user_id: None,
            user_name: None,
            title: dashboard.title.clone(),
        };
        versions::list(&self.0, dashboard.tenant_id, dashboard.id.into(), present, page).await
    }

    /// The dashboard as it was saved as a version, assigned to those whom it is assigned to now.
    ///
    /// # Errors
    /// There is no such version any more.
    pub async fn version(&self, dashboard: &DashboardInfo, version: i64) -> ServiceResult<Dashboard> {
        let (tenant, id) = (dashboard.tenant_id, dashboard.id);
        match versions::get::<Dashboard>(&self.0, tenant, id.into(), version).await? {
            Some(mut saved) => {
                saved.info.version = Some(version);
                saved
                    .info
                    .assigned_customers
                    .clone_from(&dashboard.assigned_customers);
                Ok(saved)
            }
            None => {
                let present = self.0.stores.dashboards.get(tenant, id).await?;
                present
                    .filter(|present| present.info.version == Some(version))
                    .ok_or_else(|| versions::not_there(version))
            }
        }
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
