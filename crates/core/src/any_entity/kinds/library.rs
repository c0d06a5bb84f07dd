//! Kinds of the widget library: what tenants have beside what the system shares with all.

use fieldline_model::entity::{Authority, TbResourceInfo, WidgetTypeInfo, WidgetsBundle};
use fieldline_model::{EntityType, TbResourceId, TenantId, WidgetTypeId, WidgetsBundleId};

use super::super::{AccessGrant as Grant, EntityKind, KindDeclaration, KindPolicy, QueryFields};
use super::{of_nobody, of_tenant, rights};
use crate::ports::{EntityStores, StoreResult};

/// Policy of the widget library: everybody of a tenant reads what the system shares.
const OF_LIBRARY: KindPolicy = KindPolicy {
    rights: rights(Grant::Shared, Grant::Anything, Grant::Read),
    beyond_tenants: true,
    shared_readers: &[Authority::TenantAdmin, Authority::CustomerUser],
    ..of_tenant(Grant::Read)
};

declare! {
    WidgetTypeInfo as WidgetType;
    policy: OF_LIBRARY,
    resource: |it| of_nobody(it.base.id, it.base.tenant_id),
    name: |it| &it.base.name,
    query: QueryFields::NAME_ONLY,
    find: |stores, tenant, _, id| Box::pin(widget_type(stores, tenant, id)),
    find_all: None,
}

declare! {
    WidgetsBundle as WidgetsBundle;
    policy: OF_LIBRARY,
    resource: |it| of_nobody(it.id, it.tenant_id),
    name: |it| &it.title,
    query: QueryFields::NAME_ONLY,
    find: |stores, tenant, _, id| Box::pin(widgets_bundle(stores, tenant, id)),
    find_all: None,
}

/// Finds a widget type of the tenant or of the system.
async fn widget_type(
    stores: &EntityStores,
    tenant: TenantId,
    id: WidgetTypeId,
) -> StoreResult<Option<WidgetTypeInfo>> {
    match stores.widget_types.info(tenant, id).await? {
        None => stores.widget_types.info(TenantId::NULL, id).await,
        found => Ok(found),
    }
}

/// Finds a bundle of the tenant or of the system.
async fn widgets_bundle(
    stores: &EntityStores,
    tenant: TenantId,
    id: WidgetsBundleId,
) -> StoreResult<Option<WidgetsBundle>> {
    match stores.widgets_bundles.get(tenant, id).await? {
        None => stores.widgets_bundles.get(TenantId::NULL, id).await,
        found => Ok(found),
    }
}

declare! {
    TbResourceInfo as TbResource;
    policy: OF_LIBRARY,
    resource: |it| of_nobody(it.id, it.tenant_id),
    name: |it| &it.title,
    query: QueryFields::NAME_ONLY,
    find: |stores, tenant, authority, id| Box::pin(resource(stores, tenant, authority, id)),
    find_all: None,
}

/// Finds a resource of the tenant or of the system. Users of customers know of those that widgets and pages need.
async fn resource(
    stores: &EntityStores,
    tenant: TenantId,
    authority: Authority,
    id: TbResourceId,
) -> StoreResult<Option<TbResourceInfo>> {
    let found = match stores.resources.get(tenant, id).await? {
        None => stores.resources.get(TenantId::NULL, id).await?,
        found => found,
    };
    Ok(found.filter(|found| {
        authority != Authority::CustomerUser
            || found.resource_type.is_some_and(|kind| kind.open_to_customers())
    }))
}
