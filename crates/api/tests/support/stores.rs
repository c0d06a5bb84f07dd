//! Stores for tests and examples: real stores in a directory of their own, with the demo tenant.

use std::path::Path;
use std::sync::Arc;

use fieldline_core::clock::SharedClock;
use fieldline_core::events::EntityEvents;
use fieldline_core::observed_store::ObservedStore;
use fieldline_core::ports::{NoRuleEngine, RuleNodeCatalog};
use fieldline_entities::entity_query::{EntityQueryPorts, EntityQueryService};
use fieldline_entities::password::PasswordHashPool;
use fieldline_entities::services::{ServiceContext, seed};
use fieldline_storage::series::{self, SeriesStore};
use fieldline_storage::sql;

/// The stores; see the module.
pub(crate) struct FixtureStores {
    pub(crate) series: Arc<SeriesStore>,
    pub(crate) live: Arc<ObservedStore>,
    pub(crate) queries: Arc<EntityQueryService>,
    pub(crate) context: ServiceContext,
}

impl FixtureStores {
    /// Opens the stores in an empty directory. Entity queries keep at most `query_memory` bytes of values in memory.
    pub(crate) async fn open(
        dir: &Path,
        clock: SharedClock,
        rule_nodes: Arc<dyn RuleNodeCatalog>,
        query_memory: usize,
    ) -> Self {
        let database = sql::EntityDatabase::sqlite(&dir.join("entities.db"), &sql::Options::default())
            .await
            .unwrap();
        let stores = database.entity_stores();
        let series =
            SeriesStore::open(&dir.join("series"), &series::Options::default(), clock.clone()).unwrap();
        let live = ObservedStore::new(
            series.clone(),
            series.clone(),
            series.clone(),
            series.clone(),
            series.clone(),
        );
        let deps = EntityQueryPorts {
            stores: stores.clone(),
            rows: database.entity_rows(),
            values: series.clone(),
            attributes: series.clone(),
            clock: clock.clone(),
        };
        let queries = EntityQueryService::new(deps, query_memory);
        let events = Arc::new(EntityEvents::default());
        events.listen(queries.entity_listener());
        live.listen(queries.value_listener());
        let context = ServiceContext {
            stores,
            series: live.clone(),
            attributes: live.clone(),
            events,
            clock,
            passwords: PasswordHashPool::new(2),
            rule_engine: Arc::new(NoRuleEngine),
            rule_nodes,
            rest_endpoints: Arc::new(fieldline_core::ports::NoRestEndpoints),
        };
        seed::seed_demo(&context).await.unwrap();
        Self {
            series,
            live,
            queries,
            context,
        }
    }
}
