//! Entities of any kind, many at a time.

use async_trait::async_trait;
use fieldline_core::any_entity::AnyEntity;
use fieldline_core::ports::{DashboardStore as _, EntityRowStore, StoreResult};
use fieldline_model::entity::{
    Asset, AssetProfile, Customer, Dashboard, Device, DeviceProfile, EntityView, OtaPackageInfo, Queue,
    RuleChain, Tenant, TenantProfile, User,
};
use fieldline_model::{DashboardId, EntityType, TenantId};
use uuid::Uuid;

use super::dashboards::SqlDashboards;
use super::database::EntityDatabase;
use super::query::{RowOwner, SqlQuery};
use super::record::{self, EntityRecord};

/// Entities of any kind in a database.
pub(super) struct SqlEntityRows(pub(super) EntityDatabase);

/// Which of them are read.
#[derive(Clone, Copy)]
enum EntitySelection<'a> {
    Page(Option<(i64, Uuid)>, u32),
    Ids(&'a [Uuid]),
}

#[async_trait]
impl EntityRowStore for SqlEntityRows {
    async fn page(
        &self,
        tenant: TenantId,
        kind: EntityType,
        after: Option<(i64, Uuid)>,
        limit: u32,
    ) -> StoreResult<Vec<AnyEntity>> {
        self.read(tenant, kind, EntitySelection::Page(after, limit)).await
    }

    async fn count_everywhere(&self, kind: EntityType) -> StoreResult<u64> {
        let all = RowOwner::Installation;
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

    async fn by_ids(&self, tenant: TenantId, kind: EntityType, ids: &[Uuid]) -> StoreResult<Vec<AnyEntity>> {
        self.read(tenant, kind, EntitySelection::Ids(ids)).await
    }
}

impl SqlEntityRows {
    async fn read(
        &self,
        tenant: TenantId,
        kind: EntityType,
        which: EntitySelection<'_>,
    ) -> StoreResult<Vec<AnyEntity>> {
        let of_tenant = RowOwner::Tenant(tenant.0);
        match kind {
            EntityType::Device => self.all::<Device>(of_tenant, which, AnyEntity::Device).await,
            EntityType::Asset => self.all::<Asset>(of_tenant, which, AnyEntity::Asset).await,
            EntityType::EntityView => {
                self.all::<EntityView>(of_tenant, which, AnyEntity::EntityView)
                    .await
            }
            EntityType::Customer => self.all::<Customer>(of_tenant, which, AnyEntity::Customer).await,
            EntityType::DeviceProfile => {
                self.all::<DeviceProfile>(of_tenant, which, AnyEntity::DeviceProfile)
                    .await
            }
            EntityType::AssetProfile => {
                self.all::<AssetProfile>(of_tenant, which, AnyEntity::AssetProfile)
                    .await
            }
            EntityType::Dashboard => self.dashboards(tenant, which).await,
            EntityType::OtaPackage => {
                self.all::<OtaPackageInfo>(of_tenant, which, AnyEntity::OtaPackage)
                    .await
            }
            EntityType::RuleChain => {
                self.all::<RuleChain>(of_tenant, which, AnyEntity::RuleChain)
                    .await
            }
            EntityType::User if tenant.is_null() => {
                self.all::<User>(RowOwner::NoTenant, which, AnyEntity::User).await
            }
            EntityType::User => self.all::<User>(of_tenant, which, AnyEntity::User).await,
            EntityType::Queue if tenant.is_null() => {
                self.all::<Queue>(RowOwner::NoTenant, which, AnyEntity::Queue)
                    .await
            }
            EntityType::Queue => self.all::<Queue>(of_tenant, which, AnyEntity::Queue).await,
            // A tenant belongs to itself.
            EntityType::Tenant if tenant.is_null() => {
                self.all::<Tenant>(RowOwner::Installation, which, AnyEntity::Tenant)
                    .await
            }
            EntityType::Tenant => {
                let first = !matches!(which, EntitySelection::Page(Some(_), _));
                let own = [tenant.0];
                let which = EntitySelection::Ids(if first { &own } else { &[] });
                self.all::<Tenant>(RowOwner::Installation, which, AnyEntity::Tenant)
                    .await
            }
            EntityType::TenantProfile if tenant.is_null() => {
                self.all::<TenantProfile>(RowOwner::Installation, which, AnyEntity::TenantProfile)
                    .await
            }
            _ => Ok(Vec::new()),
        }
    }

    /// Dashboards without what they show, but with the customers they are assigned to.
    async fn dashboards(&self, tenant: TenantId, which: EntitySelection<'_>) -> StoreResult<Vec<AnyEntity>> {
        let dashboards = SqlDashboards(self.0.clone());
        let found = match which {
            EntitySelection::Ids(ids) => {
                let ids: Vec<DashboardId> = ids.iter().copied().map(DashboardId).collect();
                dashboards.infos(tenant, &ids).await?
            }
            EntitySelection::Page(after, limit) => {
                let narrow = |query| in_order(query, RowOwner::Tenant(tenant.0), after, limit);
                dashboards.selected(tenant, narrow).await?
            }
        };
        Ok(found.into_iter().map(AnyEntity::Dashboard).collect())
    }

    async fn all<R: EntityRecord>(
        &self,
        owner: RowOwner,
        which: EntitySelection<'_>,
        entity: fn(R) -> AnyEntity,
    ) -> StoreResult<Vec<AnyEntity>> {
        let (after, limit) = match which {
            EntitySelection::Ids(ids) => {
                let found: Vec<R> = record::by_ids(&self.0, owner, ids.iter().copied()).await?;
                return Ok(found.into_iter().map(entity).collect());
            }
            EntitySelection::Page(after, limit) => (after, limit),
        };
        let query = in_order(record::select::<R>(), owner, after, limit);
        let rows = self.0.read_some(query).await?;
        rows.iter()
            .map(|row| R::read(&mut row.columns()).map(entity))
            .collect()
    }
}

/// Continues a selection with the first rows of an owner after the given one.
fn in_order(select: SqlQuery, owner: RowOwner, after: Option<(i64, Uuid)>, limit: u32) -> SqlQuery {
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
