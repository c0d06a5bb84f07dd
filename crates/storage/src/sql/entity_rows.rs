//! Entities of any kind, many at a time.

use async_trait::async_trait;
use fieldline_core::access::Entity;
use fieldline_core::ports::{DashboardStore as _, EntityRowStore, StoreResult};
use fieldline_model::entity::{
    Asset, AssetProfile, Customer, Dashboard, Device, DeviceProfile, EntityView, OtaPackageInfo, Queue,
    RuleChain, Tenant, TenantProfile, User,
};
use fieldline_model::{DashboardId, EntityType, TenantId};
use uuid::Uuid;

use super::dashboards::Dashboards;
use super::database::Database;
use super::query::{Owner, Query};
use super::record::{self, Record};

/// Entities of any kind in a database.
pub(super) struct EntityRows(pub(super) Database);

/// Which of them are read.
#[derive(Clone, Copy)]
enum Which<'a> {
    Page(Option<(i64, Uuid)>, u32),
    Ids(&'a [Uuid]),
}

#[async_trait]
impl EntityRowStore for EntityRows {
    async fn page(
        &self,
        tenant: TenantId,
        kind: EntityType,
        after: Option<(i64, Uuid)>,
        limit: u32,
    ) -> StoreResult<Vec<Entity>> {
        self.read(tenant, kind, Which::Page(after, limit)).await
    }

    async fn count_everywhere(&self, kind: EntityType) -> StoreResult<u64> {
        let all = Owner::Installation;
        match kind {
            EntityType::Device => record::count::<Device>(&self.0, all).await,
            EntityType::Asset => record::count::<Asset>(&self.0, all).await,
            EntityType::EntityView => record::count::<EntityView>(&self.0, all).await,
            EntityType::Customer => record::count::<Customer>(&self.0, all).await,
            EntityType::User => record::count::<User>(&self.0, all).await,
            EntityType::Dashboard => record::count::<Dashboard>(&self.0, all).await,
            _ => Ok(0),
        }
    }

    async fn by_ids(&self, tenant: TenantId, kind: EntityType, ids: &[Uuid]) -> StoreResult<Vec<Entity>> {
        self.read(tenant, kind, Which::Ids(ids)).await
    }
}

impl EntityRows {
    async fn read(&self, tenant: TenantId, kind: EntityType, which: Which<'_>) -> StoreResult<Vec<Entity>> {
        let of_tenant = Owner::Tenant(tenant.0);
        match kind {
            EntityType::Device => self.all::<Device>(of_tenant, which, Entity::Device).await,
            EntityType::Asset => self.all::<Asset>(of_tenant, which, Entity::Asset).await,
            EntityType::EntityView => self.all::<EntityView>(of_tenant, which, Entity::EntityView).await,
            EntityType::Customer => self.all::<Customer>(of_tenant, which, Entity::Customer).await,
            EntityType::DeviceProfile => {
                self.all::<DeviceProfile>(of_tenant, which, Entity::DeviceProfile)
                    .await
            }
            EntityType::AssetProfile => {
                self.all::<AssetProfile>(of_tenant, which, Entity::AssetProfile)
                    .await
            }
            EntityType::Dashboard => self.dashboards(tenant, which).await,
            EntityType::OtaPackage => {
                self.all::<OtaPackageInfo>(of_tenant, which, Entity::OtaPackage)
                    .await
            }
            EntityType::RuleChain => self.all::<RuleChain>(of_tenant, which, Entity::RuleChain).await,
            EntityType::User if tenant.is_null() => {
                self.all::<User>(Owner::NoTenant, which, Entity::User).await
            }
            EntityType::User => self.all::<User>(of_tenant, which, Entity::User).await,
            EntityType::Queue if tenant.is_null() => {
                self.all::<Queue>(Owner::NoTenant, which, Entity::Queue).await
            }
            EntityType::Queue => self.all::<Queue>(of_tenant, which, Entity::Queue).await,
            // A tenant belongs to itself.
            EntityType::Tenant if tenant.is_null() => {
                self.all::<Tenant>(Owner::Installation, which, Entity::Tenant)
                    .await
            }
            EntityType::Tenant => {
                let first = !matches!(which, Which::Page(Some(_), _));
                let own = [tenant.0];
                let which = Which::Ids(if first { &own } else { &[] });
                self.all::<Tenant>(Owner::Installation, which, Entity::Tenant)
                    .await
            }
            EntityType::TenantProfile if tenant.is_null() => {
                self.all::<TenantProfile>(Owner::Installation, which, Entity::TenantProfile)
                    .await
            }
            _ => Ok(Vec::new()),
        }
    }

    /// Dashboards without what they show, but with the customers they are assigned to.
    async fn dashboards(&self, tenant: TenantId, which: Which<'_>) -> StoreResult<Vec<Entity>> {
        let dashboards = Dashboards(self.0.clone());
        let found = match which {
            Which::Ids(ids) => {
                let ids: Vec<DashboardId> = ids.iter().copied().map(DashboardId).collect();
                dashboards.infos(tenant, &ids).await?
            }
            Which::Page(after, limit) => {
                let narrow = |query| in_order(query, Owner::Tenant(tenant.0), after, limit);
                dashboards.selected(tenant, narrow).await?
            }
        };
        Ok(found.into_iter().map(Entity::Dashboard).collect())
    }

    async fn all<R: Record>(
        &self,
        owner: Owner,
        which: Which<'_>,
        entity: fn(R) -> Entity,
    ) -> StoreResult<Vec<Entity>> {
        let (after, limit) = match which {
            Which::Ids(ids) => {
                let found: Vec<R> = record::by_ids(&self.0, owner, ids.iter().copied()).await?;
                return Ok(found.into_iter().map(entity).collect());
            }
            Which::Page(after, limit) => (after, limit),
        };
        let query = in_order(record::select::<R>(), owner, after, limit);
        let rows = self.0.read_some(query).await?;
        rows.iter()
            .map(|row| R::read(&mut row.columns()).map(entity))
            .collect()
    }
}

/// Continues a selection with the first rows of an owner after the given one.
fn in_order(select: Query, owner: Owner, after: Option<(i64, Uuid)>, limit: u32) -> Query {
    let query = match after {
        None => select.push("1 = 1"),
        Some((time, id)) => select
            .push("(created_time, id) > (")
            .bind(time)
            .push(", ")
            .bind(id)
            .push(")"),
    };
    query
        .owned_by(owner)
        .push(" ORDER BY created_time, id LIMIT ")
        .bind(i64::from(limit))
}
