//! Profiles of any kind: of devices, of assets.

use std::marker::PhantomData;

use async_trait::async_trait;
use fieldline_core::ports::{EntityProfile, ProfileStore, StoreResult};
use fieldline_model::entity::RuleChain;
use fieldline_model::page::{PageData, PageLink};
use fieldline_model::{RuleChainId, TenantId};

use super::database::EntityDatabase;
use super::list::{self, ListDefinition};
use super::query::{RowOwner, SqlQuery};
use super::record::{self, EntityRecord, bare};

/// A kind of profiles in a table with the columns `tenant_id`, `name`, `is_default` and `search`.
pub(super) trait ProfileRecord: EntityRecord + EntityProfile {
    /// Their lists.
    const LISTING: ListDefinition;
    /// The table of the entities that have them.
    const MEMBERS: &'static str;
    /// The answer where an entity has one that is deleted.
    const IN_USE: &'static str;

    /// The rule chain that it names, where the database does not see to it that the tenant has that one.
    fn unchecked_chain(&self) -> Option<RuleChainId>;
}

/// The profiles of a kind in a database.
pub(super) struct SqlProfiles<P> {
    pub(super) database: EntityDatabase,
    kind: PhantomData<fn() -> P>,
}

impl<P> SqlProfiles<P> {
    pub(super) fn new(database: &EntityDatabase) -> Self {
        Self {
            database: database.clone(),
            kind: PhantomData,
        }
    }
}

#[async_trait]
impl<P: ProfileRecord> ProfileStore<P> for SqlProfiles<P> {
    async fn save(&self, profile: P, create: bool) -> StoreResult<P> {
        if let Some(chain) = profile.unchecked_chain() {
            let owner = profile.key().owner;
            let chain = record::get::<RuleChain>(&self.database, owner, chain.0).await?;
            chain.ok_or_else(|| record::invalid(P::BROKEN_REFERENCE))?;
        }
        record::save(&self.database, profile, create).await
    }

    async fn get(&self, tenant: TenantId, id: P::Id) -> StoreResult<Option<P>> {
        record::get(&self.database, RowOwner::Tenant(tenant.0), bare(id)).await
    }

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

    async fn by_ids(&self, tenant: TenantId, ids: &[P::Id]) -> StoreResult<Vec<P>> {
        let ids = ids.iter().map(|id| bare(*id));
        record::by_ids(&self.database, RowOwner::Tenant(tenant.0), ids).await
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

    async fn delete(&self, tenant: TenantId, id: P::Id) -> StoreResult<bool> {
        let (owner, subject) = (RowOwner::Tenant(tenant.0), record::subject(tenant, id));
        record::delete_leaving::<P>(&self.database, owner, subject, P::IN_USE).await
    }
}
