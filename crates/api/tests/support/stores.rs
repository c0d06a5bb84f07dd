//! What tests and examples stand on: real stores in a directory of their own, with the demo tenant.

use std::path::Path;
use std::sync::Arc;

use fieldline_core::clock::SharedClock;
use fieldline_core::entity_query::{Deps, EntityQueries};
use fieldline_core::events::EntityEvents;
use fieldline_core::live::LiveStore;
use fieldline_core::password::Passwords;
use fieldline_core::ports::{NoRuleEngine, RuleNodeCatalog};
use fieldline_core::services::{Context, seed};
use fieldline_storage::series::{self, SeriesStore};
use fieldline_storage::sql;

/// See the module.
pub(crate) struct Stores {
    pub(crate) series: Arc<SeriesStore>,
    pub(crate) live: Arc<LiveStore>,
    pub(crate) queries: Arc<EntityQueries>,
    pub(crate) context: Context,
}

impl Stores {
    /// Opens them in an empty directory. Entity queries keep so many bytes of values in memory.
    pub(crate) async fn open(
        dir: &Path,
        clock: SharedClock,
        rule_nodes: Arc<dyn RuleNodeCatalog>,
        query_memory: usize,
    ) -> Self {
        let database = sql::Database::sqlite(&dir.join("entities.db"), &sql::Options::default())
            .await
            .unwrap();
        let stores = database.entity_stores();
        let series =
            SeriesStore::open(&dir.join("series"), &series::Options::default(), clock.clone()).unwrap();
        let live = LiveStore::new(
            series.clone(),
            series.clone(),
            series.clone(),
            series.clone(),
            series.clone(),
        );
        let deps = Deps {
            stores: stores.clone(),
            rows: database.entity_rows(),
            values: series.clone(),
            attributes: series.clone(),
            clock: clock.clone(),
        };
        let queries = EntityQueries::new(deps, query_memory);
        let events = Arc::new(EntityEvents::default());
        events.listen(queries.entity_listener());
        live.listen(queries.value_listener());
        let context = Context {
            stores,
            series: live.clone(),
            attributes: live.clone(),
            events,
            clock,
            passwords: Passwords::new(2),
            rule_engine: Arc::new(NoRuleEngine),
            rule_nodes,
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
