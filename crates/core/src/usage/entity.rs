//! The entity that carries the usage of a tenant. It is not stored: each tenant has one, and its id is derived from the
//! tenant's.

use fieldline_model::{ApiUsageStateId, EntityId, EntityKey, TenantId};
use serde::Serialize;
use uuid::Uuid;

/// Makes the id differ from the tenant's own.
const SALT: u128 = 0x6170_695f_7573_6167_655f_7374_6174_6531;

/// Derives the id of the entity that carries the usage of a tenant: always the same.
pub fn usage_id(tenant: TenantId) -> ApiUsageStateId {
    let mixed = (tenant.0.as_u128() ^ SALT).wrapping_mul(0x0000_0000_0100_0000_0000_0000_0000_013b);
    let id = uuid::Builder::from_custom_bytes(Uuid::from_u128(mixed).into_bytes()).into_uuid();
    ApiUsageStateId(id)
}

/// The key under which the usage of a tenant is stored.
pub fn usage_subject(tenant: TenantId) -> EntityKey {
    EntityKey {
        tenant,
        entity: usage_id(tenant).into(),
    }
}

/// The entity that carries the usage of a tenant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ApiUsageState {
    /// Id.
    pub id: ApiUsageStateId,
    /// The tenant.
    pub tenant_id: TenantId,
    /// The entity whose usage it carries: the tenant.
    pub entity_id: EntityId,
}

impl ApiUsageState {
    /// Returns the usage entity of a tenant.
    pub fn of(tenant: TenantId) -> Self {
        Self {
            id: usage_id(tenant),
            tenant_id: tenant,
            entity_id: tenant.into(),
        }
    }
}
