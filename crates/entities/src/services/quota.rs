//! How many entities a tenant may have, by its profile.

use fieldline_core::any_entity::{KindLimit, kind_policy};
use fieldline_model::{EntityType, TenantId};

use super::{ServiceContext, ServiceError, ServiceErrorKind, ServiceResult};
use crate::access::title;

/// How many more entities of a type a tenant may have.
pub(super) struct EntityQuota {
    pub(super) left: u64,
    limit: u64,
    entity_type: EntityType,
}

impl EntityQuota {
    /// The answer where there is none left.
    pub(super) fn refuse(&self) -> ServiceError {
        let (entity_type, limit) = (self.entity_type, self.limit);
        ServiceError::new(
            ServiceErrorKind::LimitExceeded { entity_type, limit },
            format!("{}s limit reached", title(&entity_type)),
        )
    }
}

/// Refuses one more entity where the tenant has as many as its profile allows. Two creations at the same moment may
/// both pass: the limit is a plan, not an invariant.
pub(super) async fn check(
    context: &ServiceContext,
    tenant: TenantId,
    entity_type: EntityType,
) -> ServiceResult<()> {
    match room(context, tenant, entity_type).await? {
        Some(room) if room.left == 0 => Err(room.refuse()),
        _ => Ok(()),
    }
}

/// How many more entities of a type a tenant may have; `None` for any number.
pub(super) async fn room(
    context: &ServiceContext,
    tenant: TenantId,
    entity_type: EntityType,
) -> ServiceResult<Option<EntityQuota>> {
    let Some(KindLimit { setting, count }) = kind_policy(entity_type).limit else {
        return Ok(None);
    };
    let stores = &context.stores;
    let profile = stores.profile_of(tenant).await?;
    let limit = profile.map_or(0, |profile| profile.limit(setting));
    if limit == 0 {
        return Ok(None);
    }
    let count = count(stores, tenant).await?;
    Ok(Some(EntityQuota {
        left: limit.saturating_sub(count),
        limit,
        entity_type,
    }))
}
