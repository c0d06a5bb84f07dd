//! Entity views.

use std::sync::Arc;

use async_trait::async_trait;
use fieldline_core::events::EntityChange;
use fieldline_core::ports::{AttributeRow, EntityViewFilter};
use fieldline_model::entity::{AttributeKeys, EntityDraft, EntityView};
use fieldline_model::page::PageLink;
use fieldline_model::timeseries::AttributeScope;
use fieldline_model::{
    AssetId, CustomerId, DeviceId, EntityId, EntityKey, EntityType, EntityViewId, TenantId, kv,
};

use super::assignable::{self, AssignableService};
use super::{NameConflict, ServiceContext, ServiceError, ServiceResult, conflict, validate};

/// Rules about entity views.
#[derive(Clone)]
pub struct EntityViewService(Arc<ServiceContext>);

impl EntityViewService {
    pub(super) fn new(context: &Arc<ServiceContext>) -> Self {
        Self(Arc::clone(context))
    }

    /// Creates the view, or updates it where it has an id. It gets copies of the attributes that it names.
    ///
    /// # Errors
    /// A rule is broken, or the name is taken.
    pub async fn save(
        &self,
        tenant: TenantId,
        mut view: EntityDraft<EntityView>,
        names: &NameConflict,
    ) -> ServiceResult<EntityView> {
        let old = assignable::prepare(&self.0, tenant, &mut view, names).await?;
        self.check(&view).await?;
        let view = assignable::complete(&self.0, view, old.as_ref()).await?;
        let saved = self.0.stores.entity_views.save(view, old.is_none()).await;
        let saved = conflict(saved, &assignable::name_taken::<EntityView>())?;
        self.0.publish_change(EntityChange::saved(tenant, saved.id));
        let forgotten = old.and_then(|old| old.keys).unwrap_or_default();
        self.copy_attributes(&saved, forgotten.attributes).await?;
        Ok(saved)
    }

    /// A view has copies of the attributes it names, as they are when it is saved; those that it named before go.
    async fn copy_attributes(&self, view: &EntityView, forgotten: AttributeKeys) -> ServiceResult<()> {
        let Some(shown) = view.entity_id else {
            return Ok(());
        };
        let subject = |entity: EntityId| EntityKey {
            tenant: view.tenant_id,
            entity,
        };
        let (from, to) = (subject(shown), subject(view.id.into()));
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
        assignable::check_customer(&self.0, view).await
    }
}

#[async_trait]
impl AssignableService for EntityViewService {
    type ManagedEntity = EntityView;

    async fn assign(
        &self,
        tenant: TenantId,
        id: EntityViewId,
        customer: CustomerId,
    ) -> ServiceResult<EntityView> {
        match assignable::with_customer::<EntityView>(&self.0, tenant, id, customer).await? {
            (view, true) => self.save(tenant, view.into(), &NameConflict::Fail).await,
            (view, false) => Ok(view),
        }
    }

    async fn delete(&self, tenant: TenantId, id: EntityViewId) -> ServiceResult<()> {
        assignable::delete_source::<EntityView>(&self.0, tenant, id).await
    }
}

/// Whether a view shows an entity.
pub(super) async fn is_viewed(
    context: &ServiceContext,
    tenant: TenantId,
    entity: EntityId,
) -> ServiceResult<bool> {
    let filter = EntityViewFilter {
        entity: Some(entity),
        ..EntityViewFilter::default()
    };
    let views = context
        .stores
        .entity_views
        .list(tenant, &filter, &PageLink::first(1))
        .await?;
    Ok(views.total_elements > 0)
}

/// Refuses to delete what a view shows.
pub(super) async fn refuse_viewed(
    context: &ServiceContext,
    tenant: TenantId,
    entity: EntityId,
    kind: &str,
) -> ServiceResult<()> {
    if is_viewed(context, tenant, entity).await? {
        return Err(ServiceError::invalid(format!(
            "Can't delete {kind} that has entity views!"
        )));
    }
    Ok(())
}
