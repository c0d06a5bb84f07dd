//! Queries of entities by their fields, attributes and latest values.
//!
//! Entities live in the database and values in the store of series, so no index of either answers a query over both. A
//! tenant that asks gets its entities as a table in memory, with a column for each value that is asked for; what changes
//! is noted by writers and read again by the next query. Queries that name their entities read those alone. Who may see
//! what is asked of [`crate::access`], entity by entity.

mod evaluate;
mod plan;
mod predicate;
mod prepare;
mod row;
mod table;
mod table_cache;

#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use fieldline_core::any_entity::{AnyEntity, EntityTextField, kind_policy};
use fieldline_core::clock::SharedClock;
use fieldline_core::events::EntityListener;
use fieldline_core::ports::{
    AttributeStore, EntityRowStore, EntityStores, StoreError, StoreErrorKind, StoreResult, ValueListener,
    ValueReader,
};
use fieldline_core::queue_stats;
use fieldline_core::tenant_semaphore::TenantSemaphore;
use fieldline_core::usage::ApiUsageState;
use fieldline_model::entity::Authority;
use fieldline_model::page::{PageData, PageLink};
use fieldline_model::query::{EntityCountQuery, EntityData, EntityDataQuery, KeyType};
use fieldline_model::{EntityType, TenantId};
use rustc_hash::FxHashSet;
use uuid::Uuid;

use self::evaluate::OwnerTitles;
use self::plan::{EntityCandidates, EntityQueryPlan, EntityScan};
use self::prepare::{QueryMemoryLimits, TableSource};
use self::table::{ALL_SOURCES, TableData};
use self::table_cache::{EntityTable, EntityTableCache, StaleRefresh};
use crate::access::Principal;
use crate::services::ServiceResult;

/// Entities read at once.
const READ_AT_ONCE: u32 = 5_000;
/// Queries that are answered at the same time, half of them for one tenant.
const MAX_CONCURRENT_QUERIES: usize = 4;
/// How long a query waits for its turn.
const QUEUE_TIMEOUT: Duration = Duration::from_secs(10);
/// Tenants that are counted through at once.
const TENANTS_AT_ONCE: u32 = 100;
/// Beyond so many changed entities, all are read again.
const FULL_READ_THRESHOLD: usize = 20_000;

/// What queries are wired to.
#[derive(Clone)]
pub struct EntityQueryPorts {
    /// Entities.
    pub stores: EntityStores,
    /// Entities, whole kinds at a time.
    pub rows: Arc<dyn EntityRowStore>,
    /// Values, many at a time.
    pub values: Arc<dyn ValueReader>,
    /// Attributes, for what conditions are compared with.
    pub attributes: Arc<dyn AttributeStore>,
    /// The time.
    pub clock: SharedClock,
}

/// Answers queries of entities.
pub struct EntityQueryService {
    stores: EntityStores,
    rows: Arc<dyn EntityRowStore>,
    values: Arc<dyn ValueReader>,
    attributes: Arc<dyn AttributeStore>,
    clock: SharedClock,
    tables: Arc<EntityTableCache>,
    /// What each takes in memory while it is made is bounded, and so is how many there are.
    semaphore: Arc<TenantSemaphore>,
}

impl EntityQueryService {
    /// Queries over these stores that keep at most about `memory` bytes. Both listeners have to hear of every change.
    pub fn new(deps: EntityQueryPorts, memory: usize) -> Arc<Self> {
        Arc::new(Self {
            tables: Arc::new(EntityTableCache::new(Arc::clone(&deps.clock), memory)),
            stores: deps.stores,
            rows: deps.rows,
            values: deps.values,
            attributes: deps.attributes,
            clock: deps.clock,
            semaphore: TenantSemaphore::new(MAX_CONCURRENT_QUERIES, QUEUE_TIMEOUT),
        })
    }

    /// Who has to hear of changed entities.
    pub fn entity_listener(&self) -> Arc<dyn EntityListener> {
        Arc::clone(&self.tables) as _
    }

    /// Who has to hear of changed values.
    pub fn value_listener(&self) -> Arc<dyn ValueListener> {
        Arc::clone(&self.tables) as _
    }

    /// A page of the entities that fit and that the one who asks may see.
    ///
    /// # Errors
    /// The query makes no sense, or a store failed.
    pub async fn find(
        &self,
        who: &Principal,
        query: &EntityDataQuery,
    ) -> ServiceResult<PageData<EntityData>> {
        let mut plan = self.plan(who, &query.to_count_query()).await?;
        plan.page(&query.entity_fields, &query.latest_values, &query.page_link)?;
        let (size, skipped) = (plan.page_size as u64, plan.skipped as u64);
        let (data, total) = self.run(who, plan).await?;
        Ok(PageData {
            has_next: skipped.saturating_add(data.len() as u64) < total,
            data,
            total_pages: total.div_ceil(size.max(1)),
            total_elements: total,
        })
    }

    /// How many entities fit that the one who asks may see. System administrators learn how many all tenants have
    /// together, though they may not see them.
    ///
    /// # Errors
    /// The query makes no sense, or a store failed.
    pub async fn count(&self, who: &Principal, query: &EntityCountQuery) -> ServiceResult<u64> {
        let plan = self.plan(who, query).await?;
        if who.authority == Authority::SysAdmin && is_of_tenants(&plan) {
            return self.count_everywhere(who, query, plan).await;
        }
        Ok(self.run(who, plan).await?.1)
    }

    async fn count_everywhere(
        &self,
        who: &Principal,
        query: &EntityCountQuery,
        plan: EntityQueryPlan,
    ) -> ServiceResult<u64> {
        if let ([part], true) = (plan.parts.as_slice(), plan.conditions.is_empty())
            && (&part.candidates, &part.types) == (&EntityCandidates::All, &None)
        {
            return Ok(self.rows.count_everywhere(part.kind).await?);
        }
        let mut total = self.run(who, plan).await?.1;
        let mut link = PageLink::first(TENANTS_AT_ONCE);
        loop {
            let tenants = self.stores.tenants.list(&link).await?;
            for tenant in tenants.data {
                let administrator = Principal {
                    authority: Authority::TenantAdmin,
                    tenant: tenant.id,
                    ..*who
                };
                let plan = self.plan(&administrator, query).await?;
                total += self.run(&administrator, plan).await?.1;
            }
            if !tenants.has_next {
                return Ok(total);
            }
            link.page += 1;
        }
    }

    async fn run(&self, who: &Principal, plan: EntityQueryPlan) -> ServiceResult<(Vec<EntityData>, u64)> {
        let turn = self.semaphore.acquire(who.tenant).await?;
        let mut sources = Vec::with_capacity(plan.parts.len());
        for part in &plan.parts {
            sources.push(self.source(who.tenant, part).await?);
        }
        let shows_owner = |key: &fieldline_model::query::EntityQueryKey| {
            key.key_type == KeyType::EntityField && key.key == "ownerName"
        };
        let owners = match plan.keys().any(shows_owner) && !who.tenant.is_null() {
            true => Some(self.owners(who.tenant).await?),
            false => None,
        };
        let (who, values, now) = (*who, Arc::clone(&self.values), self.clock.now_ms());
        let tables = Arc::clone(&self.tables);
        // Reading values may touch the disk, and walking through many entities takes a while.
        blocking(move || {
            let owners = owners.map_or_else(OwnerTitles::default, |(table, title)| owners_of(&table, title));
            let limits = QueryMemoryLimits {
                memory: tables.budget(),
                ..QueryMemoryLimits::default()
            };
            let answer = evaluate::evaluate(&who, &plan, &mut sources, &owners, values.as_ref(), now, limits);
            drop(sources);
            tables.trim();
            drop(turn);
            answer
        })
        .await?
        .map_err(Into::into)
    }

    /// Where the entities of a part are looked for.
    async fn source(&self, tenant: TenantId, part: &EntityScan) -> StoreResult<TableSource> {
        let table = match &part.candidates {
            // A few entities are no reason to read all.
            EntityCandidates::Ids(ids) => match self.tables.get(tenant, part.kind) {
                Some(table) => table,
                None => return self.own(tenant, part.kind, ids).await,
            },
            _ => self.tables.get_or_new(tenant, part.kind),
        };
        self.read_rows(&table, tenant, part.kind).await?;
        Ok(TableSource::Shared(table))
    }

    async fn own(&self, tenant: TenantId, kind: EntityType, ids: &[Uuid]) -> StoreResult<TableSource> {
        let mut data = TableData::new(tenant, kind);
        for entity in self.entities(tenant, kind, Some(ids)).await? {
            data.put(&entity);
        }
        Ok(TableSource::Own(Box::new(data)))
    }

    /// Reads the entities again that have changed.
    async fn read_rows(
        &self,
        table: &Arc<EntityTable>,
        tenant: TenantId,
        kind: EntityType,
    ) -> StoreResult<()> {
        let _one = table.reading.lock().await;
        let refresh = StaleRefresh::begin(table);
        let stale = &refresh.stale;
        if !stale.all && stale.ids.is_empty() {
            return Ok(());
        }
        if stale.all || stale.ids.len() > FULL_READ_THRESHOLD {
            self.read_all(table, tenant, kind).await?;
        } else {
            self.read_some(table, tenant, kind, &stale.ids).await?;
        }
        refresh.finish();
        Ok(())
    }

    async fn read_all(
        &self,
        table: &Arc<EntityTable>,
        tenant: TenantId,
        kind: EntityType,
    ) -> StoreResult<()> {
        let mut seen: FxHashSet<Uuid> = FxHashSet::default();
        let mut after = None;
        loop {
            // Few rows are no end where they are long.
            let (entities, is_last) = match self.made_up(tenant, kind).await? {
                Some(entities) => (entities, true),
                None => {
                    let page = self.rows.page(tenant, kind, after, READ_AT_ONCE).await?;
                    let is_last = page.is_empty();
                    (page, is_last)
                }
            };
            seen.extend(entities.iter().map(|entity| entity.resource().entity.id));
            let last = change(table, move |data, table| put(data, table, &entities)).await?;
            if is_last || last == after {
                break;
            }
            after = last;
        }
        change(table, move |data, _| data.retain(|id| seen.contains(&id))).await
    }

    async fn read_some(
        &self,
        table: &Arc<EntityTable>,
        tenant: TenantId,
        kind: EntityType,
        ids: &FxHashSet<Uuid>,
    ) -> StoreResult<()> {
        let wanted: Vec<Uuid> = ids.iter().copied().collect();
        let found = self.entities(tenant, kind, Some(&wanted)).await?;
        change(table, move |data, table| {
            put(data, table, &found);
            let there: FxHashSet<Uuid> = found.iter().map(|entity| entity.resource().entity.id).collect();
            for id in wanted.iter().filter(|id| !there.contains(*id)) {
                data.remove(*id);
            }
        })
        .await
    }

    async fn entities(
        &self,
        tenant: TenantId,
        kind: EntityType,
        ids: Option<&[Uuid]>,
    ) -> StoreResult<Vec<AnyEntity>> {
        let ids = ids.unwrap_or_default();
        match self.made_up(tenant, kind).await? {
            Some(entities) => {
                let wanted = |entity: &AnyEntity| ids.contains(&entity.resource().entity.id);
                Ok(entities.into_iter().filter(wanted).collect())
            }
            None => self.rows.by_ids(tenant, kind, ids).await,
        }
    }

    /// Entities that are not stored but follow from others.
    async fn made_up(&self, tenant: TenantId, kind: EntityType) -> StoreResult<Option<Vec<AnyEntity>>> {
        Ok(match kind {
            EntityType::QueueStats => {
                let stats = queue_stats::of_tenant(&self.stores, tenant).await?;
                Some(stats.into_iter().map(AnyEntity::QueueStats).collect())
            }
            EntityType::ApiUsageState => Some(vec![AnyEntity::ApiUsageState(ApiUsageState::of(tenant))]),
            _ => None,
        })
    }

    /// The customers of a tenant, up to date, and its own title.
    async fn owners(&self, tenant: TenantId) -> StoreResult<(Arc<EntityTable>, String)> {
        let table = self.tables.get_or_new(tenant, EntityType::Customer);
        self.read_rows(&table, tenant, EntityType::Customer).await?;
        let title = self.stores.tenants.get(tenant).await?.map(|tenant| tenant.title);
        Ok((table, title.unwrap_or_default()))
    }
}

/// Whether a query is about what tenants have, as far as system administrators count it.
fn is_of_tenants(plan: &EntityQueryPlan) -> bool {
    let counted =
        |part: &EntityScan| part.kind == EntityType::Customer || kind_policy(part.kind).of_customers;
    !plan.parts.is_empty() && plan.parts.iter().all(counted)
}

fn owners_of(customers: &EntityTable, tenant: String) -> OwnerTitles {
    let data = customers.data.read();
    let customers = data.rows.iter().flatten();
    OwnerTitles {
        tenant,
        customers: customers
            .filter_map(|row| Some((row.id, row.text(EntityTextField::Name)?.to_owned())))
            .collect(),
    }
}

/// Does what takes a while, or waits for somebody who reads from the disk, where nobody else waits for it.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> StoreResult<T> {
    tokio::task::spawn_blocking(work).await.map_err(|cause| {
        StoreError::new(StoreErrorKind::Unavailable, "the query has failed").caused_by(cause)
    })
}

/// Changes a table.
async fn change<T: Send + 'static>(
    table: &Arc<EntityTable>,
    work: impl FnOnce(&mut TableData, &EntityTable) -> T + Send + 'static,
) -> StoreResult<T> {
    let table = Arc::clone(table);
    blocking(move || {
        let mut data = table.data.write();
        let done = work(&mut data, &table);
        table.bytes.store(data.cost(), Ordering::Relaxed);
        done
    })
    .await
}

/// Puts entities into a table; the values of new ones are read by the next query. Says where the last one stands.
fn put(data: &mut TableData, table: &EntityTable, entities: &[AnyEntity]) -> Option<(i64, Uuid)> {
    let mut last = None;
    for entity in entities {
        let id = entity.resource().entity.id;
        let (created_time, is_new) = data.put(entity);
        if is_new {
            table.note(id, ALL_SOURCES);
        }
        last = Some((created_time, id));
    }
    last
}
