//! Each kind of entities as it is kept, for what reads all kinds alike: queries, names beside ids, unassigning.

use fieldline_core::any_entity::{AnyEntity, EntityVariant, StoreFuture, TenantRuleNode};
use fieldline_core::ports::{DashboardStore as _, StoreResult};
use fieldline_core::usage::ApiUsageState;
use fieldline_model::entity::{
    Alarm, AssetProfile, CalculatedField, Customer, Dashboard, DashboardInfo, DeviceProfile, OtaPackageInfo,
    Queue, QueueStats, RuleChain, TbResourceInfo, Tenant, TenantProfile, User, WidgetTypeInfo, WidgetsBundle,
};
use fieldline_model::{DashboardId, EntityType, TenantId};
use uuid::Uuid;

use super::assignables::AssignableRecord;
use super::database::EntityDatabase;
use super::entities::SqlEntities;
use super::query::{RowOwner, SqlQuery};
use super::record::{self, EntityRecord};

/// A kind of entities as it is kept: another kind does not compile without it.
trait StoredKind: EntityVariant {
    const STORED: KindTable;
}

/// How a kind of entities is kept.
#[derive(Clone, Copy)]
pub(super) struct KindTable {
    /// What people call them, for lists of what refers to them; `None` where those show no names.
    pub(super) titles: Option<KindTitles>,
    /// How many at a time are read; `None` where nobody asks for that.
    pub(super) rows: Option<ReadRows>,
    /// How those of all tenants are counted; `None` where nobody asks for that.
    pub(super) count: Option<CountRows>,
    /// Their table, where a row may be assigned to a customer.
    pub(super) assigned: Option<&'static str>,
}

/// What entities of a kind are called.
#[derive(Clone, Copy)]
pub(super) struct KindTitles {
    /// Where their ids, names and documents are: what a statement begins with.
    pub(super) select: &'static str,
    /// Whether the document may have a label.
    pub(super) labeled: bool,
}

type ReadRows =
    for<'a> fn(&'a EntityDatabase, TenantId, EntitySelection<'a>) -> StoreFuture<'a, Vec<AnyEntity>>;
type CountRows = fn(&EntityDatabase) -> StoreFuture<'_, u64>;

/// Which entities of a kind are read.
#[derive(Clone, Copy)]
pub(super) enum EntitySelection<'a> {
    Page(Option<(i64, Uuid)>, u32),
    Ids(&'a [Uuid]),
}

macro_rules! kind_table {
    ($($name:ident($kind:ty))*) => {
        /// How a kind of entities is kept; `None` for types without entities here.
        pub(super) const fn kind_table(kind: EntityType) -> Option<KindTable> {
            match kind {
                $(EntityType::$name => Some(<$kind>::STORED),)*
                EntityType::Rpc | EntityType::Edge => None,
            }
        }
    };
}

fieldline_core::for_each_entity_kind!(kind_table);

/// The tables of what may be assigned to a customer.
pub(super) fn assigned_tables() -> impl Iterator<Item = &'static str> {
    EntityType::ALL
        .iter()
        .filter_map(|kind| kind_table(*kind)?.assigned)
}

impl KindTable {
    /// Read by nobody alongside other kinds.
    const NONE: Self = Self {
        titles: None,
        rows: None,
        count: None,
        assigned: None,
    };

    const fn read(rows: ReadRows) -> Self {
        Self {
            rows: Some(rows),
            ..Self::NONE
        }
    }

    const fn named(self, select: &'static str) -> Self {
        Self {
            titles: Some(KindTitles {
                select,
                labeled: false,
            }),
            ..self
        }
    }

    const fn counted(self, count: CountRows) -> Self {
        Self {
            count: Some(count),
            ..self
        }
    }
}

impl<E: AssignableRecord> StoredKind for E {
    const STORED: KindTable = KindTable {
        titles: Some(E::TITLES),
        rows: Some(of_tenant::<E>),
        count: Some(count::<E>),
        assigned: Some(E::TABLE),
    };
}

impl StoredKind for DeviceProfile {
    const STORED: KindTable =
        KindTable::read(of_tenant::<Self>).named("SELECT id, name, doc FROM device_profile WHERE id IN (");
}

impl StoredKind for AssetProfile {
    const STORED: KindTable =
        KindTable::read(of_tenant::<Self>).named("SELECT id, name, doc FROM asset_profile WHERE id IN (");
}

impl StoredKind for Customer {
    const STORED: KindTable = KindTable::read(of_tenant::<Self>)
        .counted(count::<Self>)
        .named("SELECT id, title, doc FROM customer WHERE id IN (");
}

impl StoredKind for User {
    const STORED: KindTable = KindTable::read(of_tenant_or_system::<Self>)
        .counted(count::<Self>)
        .named("SELECT id, email, doc FROM user_account WHERE id IN (");
}

impl StoredKind for DashboardInfo {
    const STORED: KindTable =
        KindTable::read(|database, tenant, which| Box::pin(dashboards(database, tenant, which)))
            .counted(count::<Dashboard>)
            .named("SELECT id, title, doc FROM dashboard WHERE id IN (");
}

impl StoredKind for RuleChain {
    const STORED: KindTable =
        KindTable::read(of_tenant::<Self>).named("SELECT id, name, doc FROM rule_chain WHERE id IN (");
}

impl StoredKind for Alarm {
    const STORED: KindTable = KindTable::NONE.named("SELECT id, type, '{}' FROM alarm WHERE id IN (");
}

impl StoredKind for OtaPackageInfo {
    const STORED: KindTable = KindTable::read(of_tenant::<Self>);
}

impl StoredKind for Queue {
    const STORED: KindTable = KindTable::read(of_tenant_or_system::<Self>);
}

impl StoredKind for Tenant {
    const STORED: KindTable = KindTable::read(|database, tenant, which| {
        // A tenant belongs to itself.
        Box::pin(async move {
            let first = !matches!(which, EntitySelection::Page(Some(_), _));
            let own = [tenant.0];
            let which = match (tenant.is_null(), first) {
                (true, _) => which,
                (false, true) => EntitySelection::Ids(&own),
                (false, false) => EntitySelection::Ids(&[]),
            };
            read::<Self>(database, RowOwner::Installation, which).await
        })
    })
    .named("SELECT id, title, doc FROM tenant WHERE id IN (");
}

impl StoredKind for TenantProfile {
    const STORED: KindTable = KindTable::read(|database, tenant, which| match tenant.is_null() {
        true => Box::pin(read::<Self>(database, RowOwner::Installation, which)),
        false => Box::pin(std::future::ready(Ok(Vec::new()))),
    });
}

// They are made up, or read with what they belong to.

impl StoredKind for TenantRuleNode {
    const STORED: KindTable = KindTable::NONE;
}

impl StoredKind for QueueStats {
    const STORED: KindTable = KindTable::NONE;
}

impl StoredKind for ApiUsageState {
    const STORED: KindTable = KindTable::NONE;
}

impl StoredKind for CalculatedField {
    const STORED: KindTable = KindTable::NONE;
}

// Only their own lists read them.

impl StoredKind for TbResourceInfo {
    const STORED: KindTable = KindTable::NONE;
}

impl StoredKind for WidgetTypeInfo {
    const STORED: KindTable = KindTable::NONE;
}

impl StoredKind for WidgetsBundle {
    const STORED: KindTable = KindTable::NONE;
}

fn of_tenant<'a, R: EntityRecord + EntityVariant + Send + 'static>(
    database: &'a EntityDatabase,
    tenant: TenantId,
    which: EntitySelection<'a>,
) -> StoreFuture<'a, Vec<AnyEntity>> {
    Box::pin(read::<R>(database, RowOwner::Tenant(tenant.0), which))
}

fn of_tenant_or_system<'a, R: EntityRecord + EntityVariant + Send + 'static>(
    database: &'a EntityDatabase,
    tenant: TenantId,
    which: EntitySelection<'a>,
) -> StoreFuture<'a, Vec<AnyEntity>> {
    let owner = match tenant.is_null() {
        true => RowOwner::NoTenant,
        false => RowOwner::Tenant(tenant.0),
    };
    Box::pin(read::<R>(database, owner, which))
}

fn count<R: EntityRecord + Send + 'static>(database: &EntityDatabase) -> StoreFuture<'_, u64> {
    Box::pin(record::count::<R>(database, RowOwner::Installation))
}

async fn read<R: EntityRecord + EntityVariant>(
    database: &EntityDatabase,
    owner: RowOwner,
    which: EntitySelection<'_>,
) -> StoreResult<Vec<AnyEntity>> {
    let (after, limit) = match which {
        EntitySelection::Ids(ids) => {
            let found: Vec<R> = record::by_ids(database, owner, ids.iter().copied()).await?;
            return Ok(found.into_iter().map(R::into_entity).collect());
        }
        EntitySelection::Page(after, limit) => (after, limit),
    };
    let query = in_order(record::select::<R>(), owner, after, limit);
    let rows = database.read_some(query).await?;
    rows.iter()
        .map(|row| R::read(&mut row.columns()).map(R::into_entity))
        .collect()
}

/// Dashboards without what they show, but with the customers they are assigned to.
async fn dashboards(
    database: &EntityDatabase,
    tenant: TenantId,
    which: EntitySelection<'_>,
) -> StoreResult<Vec<AnyEntity>> {
    let dashboards = SqlEntities::<Dashboard>::new(database);
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
