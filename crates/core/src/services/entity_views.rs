//! Entity views.

use std::sync::Arc;

use fieldline_model::entity::{AttributeKeys, EntityView};
use fieldline_model::page::PageLink;
use fieldline_model::timeseries::AttributeScope;
use fieldline_model::{
    AssetId, CustomerId, DeviceId, EntityId, EntityType, EntityViewId, Subject, TenantId, kv,
};

use super::names::no_free_name;
use super::{Context, NameConflict, ServiceError, ServiceResult, conflict, validate};
use crate::events::EntityChange;
use crate::ports::{AttributeRow, EntityViewFilter};

const NAME_TAKEN: &str = "Entity view with such name already exists!";

/// Rules about entity views.
#[derive(Clone)]
pub struct EntityViews(Arc<Context>);

impl EntityViews {
    pub(super) fn new(context: &Arc<Context>) -> Self {
        Self(Arc::clone(context))
    }

    /// Creates the view, or updates it where it has an id. It gets copies of the attributes that it names.
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
        let forgotten = old.as_ref().and_then(|old| old.keys.clone());
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
        self.copy_attributes(&saved, forgotten.unwrap_or_default().attributes)
            .await?;
        Ok(saved)
    }

    /// A view has copies of the attributes it names, as they are when it is saved; those that it named before go.
    async fn copy_attributes(&self, view: &EntityView, forgotten: AttributeKeys) -> ServiceResult<()> {
        let Some(shown) = view.entity_id else {
            return Ok(());
        };
        let subject = |entity: EntityId| Subject {
            tenant: view.tenant_id,
            entity,
        };
        let (from, to) = (subject(shown), subject(view.id.unwrap_or_default().into()));
        let named = view.keys.clone().unwrap_or_default().attributes;
        let (start, end) = (view.start_time_ms, view.end_time_ms);
        for (scope, old, new) in [
            (AttributeScope::Client, forgotten.cs, named.cs),
            (AttributeScope::Server, forgotten.ss, named.ss),
            (AttributeScope::Shared, forgotten.sh, named.sh),
        ] {
            let attributes = &self.0.attributes;
            if !old.is_empty() {
                attributes.delete(to, scope, &old).await?;
            }
            if new.is_empty() {
                continue;
            }
            let mut values = Vec::new();
            for attribute in attributes.get(from, scope, Some(&new)).await? {
                let ts = attribute.last_update_ts;
                if (start == 0 || start <= ts) && (end == 0 || ts <= end) {
                    kv::pack(&attribute.key, attribute.value.as_ref(), &mut values);
                }
            }
            if !values.is_empty() {
                let row = AttributeRow {
                    subject: to,
                    scope,
                    ts: self.0.now(),
                    values: &values,
                };
                attributes.save(&[row]).await?;
            }
        }
        Ok(())
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
