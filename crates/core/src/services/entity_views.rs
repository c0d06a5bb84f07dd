//! Entity views.

use std::sync::Arc;

use fieldline_model::entity::EntityView;
use fieldline_model::page::PageLink;
use fieldline_model::{AssetId, CustomerId, DeviceId, EntityId, EntityType, EntityViewId, Subject, TenantId};

use super::names::no_free_name;
use super::{Context, NameConflict, ServiceError, ServiceResult, conflict, validate};
use crate::events::EntityChange;
use crate::ports::EntityViewFilter;

const NAME_TAKEN: &str = "Entity view with such name already exists!";

/// Rules about entity views.
#[derive(Clone)]
pub struct EntityViews(Arc<Context>);

impl EntityViews {
    pub(super) fn new(context: &Arc<Context>) -> Self {
        Self(Arc::clone(context))
    }

    /// Creates the view, or updates it where it has an id.
    ///
    /// # Errors
    /// A rule is broken, or the name is taken.
    pub async fn save(
        &self,
        tenant: TenantId,
        mut view: EntityView,
        names: &NameConflict,
    ) -> ServiceResult<EntityView> {
        let stores = &self.0.stores.entity_views;
        let old = match view.id {
            Some(id) => Some(
                stores
                    .get(tenant, id)
                    .await?
                    .ok_or_else(|| ServiceError::invalid("Can't update non existing entity view!"))?,
            ),
            None => None,
        };
        view.tenant_id = tenant;
        let renamed = old.as_ref().is_none_or(|old| old.name != view.name);
        if names.uniquifies() && renamed {
            view.name = self.free_name(tenant, view.name, names).await?;
        }
        self.check(&view).await?;
        let create = old.is_none();
        match old {
            Some(old) => view.created_time = old.created_time,
            None => {
                view.id = Some(EntityViewId::new());
                view.created_time = self.0.now();
            }
        }
        let saved = conflict(stores.save(view, create).await, NAME_TAKEN)?;
        self.0.tell(EntityChange::EntityViewChanged(
            tenant,
            saved.id.unwrap_or_default(),
        ));
        Ok(saved)
    }

    async fn free_name(&self, tenant: TenantId, name: String, names: &NameConflict) -> ServiceResult<String> {
        let stores = &self.0.stores.entity_views;
        if stores.by_name(tenant, &name).await?.is_none() {
            return Ok(name);
        }
        for candidate in names.alternatives(&name) {
            if stores.by_name(tenant, &candidate).await?.is_none() {
                return Ok(candidate);
            }
        }
        no_free_name(&name)
    }

    async fn check(&self, view: &EntityView) -> ServiceResult<()> {
        validate::required("Entity view name", &view.name)?;
        validate::required("Entity view type", &view.view_type)?;
        validate::lengths(&[("name", Some(&view.name)), ("type", Some(&view.view_type))])?;
        validate::json_object("additionalInfo", view.additional_info.as_ref())?;
        let stores = &self.0.stores;
        let shown = view
            .entity_id
            .ok_or_else(|| ServiceError::invalid("Entity view entityId should be specified!"))?;
        let exists = match shown.entity_type {
            EntityType::Device => stores
                .devices
                .get(view.tenant_id, DeviceId(shown.id))
                .await?
                .is_some(),
            EntityType::Asset => stores
                .assets
                .get(view.tenant_id, AssetId(shown.id))
                .await?
                .is_some(),
            _ => {
                return Err(ServiceError::invalid(
                    "Entity view entityId must be that of a device or an asset!",
                ));
            }
        };
        if !exists {
            return Err(ServiceError::invalid(
                "Entity view is referencing to non-existent entity!",
            ));
        }
        if !view.customer_id.is_null()
            && stores
                .customers
                .get(view.tenant_id, view.customer_id)
                .await?
                .is_none()
        {
            return Err(ServiceError::invalid(
                "Can't assign entity view to non-existent customer!",
            ));
        }
        Ok(())
    }

    /// Assigns the view to a customer of the tenant, or with the null id to none.
    ///
    /// # Errors
    /// There is no such view or customer.
    pub async fn assign(
        &self,
        tenant: TenantId,
        id: EntityViewId,
        customer: CustomerId,
    ) -> ServiceResult<EntityView> {
        let mut view = self
            .0
            .stores
            .entity_views
            .get(tenant, id)
            .await?
            .ok_or_else(|| ServiceError::not_found(format!("Entity view with id [{id}] is not found")))?;
        if view.customer_id == customer {
            return Ok(view);
        }
        view.customer_id = customer;
        self.save(tenant, view, &NameConflict::Fail).await
    }

    /// Deletes a view with its relations and alarms; what it shows stays.
    ///
    /// # Errors
    /// The store failed; asking again goes on where it stopped.
    pub async fn delete(&self, tenant: TenantId, id: EntityViewId) -> ServiceResult<()> {
        let subject = Subject {
            tenant,
            entity: id.into(),
        };
        self.0.stores.entity_views.delete(tenant, id).await?;
        self.0.tell(EntityChange::EntityViewChanged(tenant, id));
        self.0.forget_links(subject).await?;
        self.0.forget_data(subject).await?;
        Ok(())
    }
}

/// Refuses to delete what a view shows.
pub(super) async fn refuse_viewed(
    context: &Context,
    tenant: TenantId,
    entity: EntityId,
    kind: &str,
) -> ServiceResult<()> {
    let filter = EntityViewFilter {
        entity: Some(entity),
        ..EntityViewFilter::default()
    };
    let views = context
        .stores
        .entity_views
        .list(tenant, &filter, &PageLink::first(1))
        .await?;
    if views.total_elements > 0 {
        return Err(ServiceError::invalid(format!(
            "Can't delete {kind} that has entity views!"
        )));
    }
    Ok(())
}
