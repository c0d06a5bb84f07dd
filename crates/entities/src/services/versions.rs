//! What dashboards and rule chains were at each save.

use fieldline_model::entity::EntityVersion;
use fieldline_model::page::{PageData, PageLink};
use fieldline_model::{EntityId, TenantId};
use serde::de::DeserializeOwned;

use super::{ServiceContext, ServiceError, ServiceResult};

/// A page of versions, the newest first. Of what has none yet, `present` is the only one.
pub(super) async fn list(
    context: &ServiceContext,
    tenant: TenantId,
    entity: EntityId,
    present: EntityVersion,
    page: &PageLink,
) -> ServiceResult<PageData<EntityVersion>> {
    let kept = context.stores.versions.list(tenant, entity, page).await?;
    if kept.total_elements > 0 {
        return Ok(kept);
    }
    let first = (page.page == 0).then_some(present);
    Ok(PageData::new(first.into_iter().collect(), 1, page))
}

/// What was saved as a version, if it is kept.
pub(super) async fn get<T: DeserializeOwned>(
    context: &ServiceContext,
    tenant: TenantId,
    entity: EntityId,
    version: i64,
) -> ServiceResult<Option<T>> {
    let Some(kept) = context.stores.versions.get(tenant, entity, version).await? else {
        return Ok(None);
    };
    let read = serde_json::from_value(kept);
    read.map(Some)
        .map_err(|error| ServiceError::invalid(format!("Version {version} cannot be read: {error}")))
}

/// A version is not kept.
pub(super) fn not_there(version: i64) -> ServiceError {
    ServiceError::not_found(format!("Version [{version}] is not found"))
}
