//! Entity views.

use fieldline_core::ports::{AttributeRow, EntityViewFilter};
use fieldline_model::entity::{AttributeKeys, EntityDraft, EntityView};
use fieldline_model::page::PageLink;
use fieldline_model::timeseries::AttributeScope;
use fieldline_model::{AssetId, DeviceId, EntityId, EntityKey, EntityType, TenantId, kv};

use super::assignable::{self, AssignableRules};
use super::{ServiceContext, ServiceError, ServiceResult, validate};

impl AssignableRules for EntityView {
    async fn prepare(context: &ServiceContext, view: &mut EntityDraft<Self>) -> ServiceResult<()> {
        validate::required("Entity view name", &view.name)?;
        validate::required("Entity view type", &view.view_type)?;
        validate::lengths(&[("name", Some(&view.name)), ("type", Some(&view.view_type))])?;
        validate::json_object("additionalInfo", view.additional_info.as_ref())?;
        let stores = &context.stores;
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
        assignable::check_customer::<Self>(context, view).await
    }

    async fn follow(context: &ServiceContext, old: Option<&Self>, saved: &Self) -> ServiceResult<()> {
        let named = old.and_then(|old| old.keys.clone()).unwrap_or_default();
        copy_attributes(context, saved, named.attributes).await
    }
}

/// A view has copies of the attributes it names, as they are when it is saved; those that it named before go.
async fn copy_attributes(
    context: &ServiceContext,
    view: &EntityView,
    forgotten: AttributeKeys,
) -> ServiceResult<()> {
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
        let attributes = &context.attributes;
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
                ts: context.now(),
                values: &values,
            };
            attributes.save(&[row]).await?;
        }
    }
    Ok(())
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
