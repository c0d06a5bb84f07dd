//! Profiles of any kind: of devices, of assets.

use async_trait::async_trait;
use fieldline_core::ports::{EntityProfile, ProfileStore, StoreResult};
use fieldline_model::TenantId;
use fieldline_model::page::{PageData, PageLink};

use super::entities::{SqlEntities, TenantRecord};
use super::list::{self, ListDefinition};
use super::query::{RowOwner, SqlQuery};
use super::record::{self, bare};

/// A kind of profiles in a table with the columns `tenant_id`, `name`, `is_default` and `search`.
pub(super) trait ProfileRecord: TenantRecord + EntityProfile {
    /// Their lists.
    const LISTING: ListDefinition;
    /// The table of the entities that have them.
    const MEMBERS: &'static str;
}

#[async_trait]
impl<P: ProfileRecord> ProfileStore<P> for SqlEntities<P> {
    async fn by_name(&self, tenant: TenantId, name: &str) -> StoreResult<Option<P>> {
        record::by_name(&self.database, RowOwner::Tenant(tenant.0), name).await
    }

    async fn default_profile(&self, tenant: TenantId) -> StoreResult<Option<P>> {
        let query = record::select::<P>()
            .push("is_default")
            .owned_by(RowOwner::Tenant(tenant.0));
        record::first(&self.database.read(query).await?)
    }

    async fn set_default(&self, tenant: TenantId, id: P::Id) -> StoreResult<bool> {
        record::set_default::<P>(&self.database, RowOwner::Tenant(tenant.0), bare(id)).await
    }

    async fn names(&self, tenant: TenantId, in_use_only: bool) -> StoreResult<Vec<(P::Id, String)>> {
        let mut query = SqlQuery::new("SELECT id, name FROM ")
            .push(P::TABLE)
            .push(" WHERE TRUE")
            .owned_by(RowOwner::Tenant(tenant.0));
        if in_use_only {
            query = query
                .push(" AND EXISTS (SELECT 1 FROM ")
                .push(P::MEMBERS)
                .push(" member WHERE member.tenant_id = ")
                .push(P::TABLE)
                .push(".tenant_id AND member.profile_id = ")
                .push(P::TABLE)
                .push(".id)");
        }
        let rows = self.database.read(query).await?;
        let named = rows.iter().map(|row| {
            let mut columns = row.columns();
            Ok((P::typed(columns.next()?), columns.next()?))
        });
        named.collect()
    }

    async fn list(&self, tenant: TenantId, page: &PageLink) -> StoreResult<PageData<P>> {
        let of_tenant = |query: SqlQuery| query.owned_by(RowOwner::Tenant(tenant.0));
        list::page(
            &self.database,
            &P::LISTING,
            page,
            of_tenant,
            list::own_text,
            P::read,
        )
        .await
    }
}
