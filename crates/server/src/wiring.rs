//! Builds the platform: the stores, and the message path between them.

mod background;
mod endpoints;
mod platform;
mod stages;

use std::sync::Arc;

use fieldline_core::clock::{SharedClock, SystemClock};
use fieldline_core::events::EntityEvents;
use fieldline_core::observed_store::ObservedStore;
use fieldline_core::overload::{JournalOverload, OverloadMonitor};
use fieldline_core::ports::{
    Journal, NoRuleEngine, NoRuleNodes, RuleEngine, RuleNodeCatalog, TimeSeriesStore,
};
use fieldline_entities::entity_query::{self, EntityQueryService};
use fieldline_entities::password::PasswordHashPool;
use fieldline_entities::services::{ServiceContext, seed};
use fieldline_journal::{EmbeddedJournal, InFlightFile, JournalKind, KafkaJournal};
use fieldline_storage::series::{SeriesKind, SeriesStore, SqlSeriesOptions};
use fieldline_storage::sql::EntityDatabase;
use tracing::warn;

use self::endpoints::OperatorEndpoints;
pub(crate) use self::platform::PlatformCore;
use crate::banner;
use crate::config::Config;
use crate::data_dir::DataDir;
use crate::serve::ServeError;
use crate::shutdown::ShutdownDeadline;

/// All stores, and the listeners for changes.
pub(crate) struct PlatformStores {
    pub(crate) journal: Arc<dyn Journal>,
    pub(crate) series: Arc<SeriesStore>,
    /// Write access to the series, for all writers.
    observed_store: Arc<ObservedStore>,
    database: EntityDatabase,
    /// Records the work in progress, if the file for it could be opened.
    in_flight: Option<Arc<InFlightFile>>,
    events: Arc<EntityEvents>,
    /// What is throttled or behind.
    overload: Arc<OverloadMonitor>,
    clock: SharedClock,
}

/// Says what lies in the data directory although the settings have it elsewhere: nothing moves it there.
fn warn_of_unused(dir: &DataDir, config: &Config) {
    let kept_elsewhere = [
        (
            dir.entities(),
            config.sql.url.is_some(),
            "the database of `sql.url`",
        ),
        (
            dir.series(),
            config.series.kind != SeriesKind::Embedded,
            "the database that `series.kind` names",
        ),
        (dir.journal(), config.journal.kind == JournalKind::Kafka, "Kafka"),
    ];
    for (path, is_elsewhere, place) in kept_elsewhere {
        if is_elsewhere && path.exists() {
            warn!(path = %path.display(), "not used: the settings have it in {place}, and only `fieldline migrate` moves it there");
        }
    }
}

/// Opens the journal that the settings ask for.
pub(crate) async fn open_journal(dir: &DataDir, config: &Config) -> Result<Arc<dyn Journal>, ServeError> {
    let options = config.journal.clone();
    match options.kind {
        JournalKind::Embedded => Ok(Arc::new(EmbeddedJournal::open(&dir.journal(), &options)?)),
        JournalKind::Kafka => {
            let open = tokio::task::spawn_blocking(move || KafkaJournal::open(&options));
            Ok(Arc::new(open.await.map_err(ServeError::start)??))
        }
    }
}

/// Opens the time-series store that the settings ask for.
pub(crate) async fn open_series(
    dir: &DataDir,
    config: &Config,
    clock: &SharedClock,
) -> Result<Arc<SeriesStore>, ServeError> {
    let (dir, options, clock) = (dir.series(), config.series.clone(), clock.clone());
    let cassandra = config.cassandra.clone();
    let owner = SqlSeriesOptions {
        // The settings are refused without, where there is a need for it.
        url: config.sql.url.clone().unwrap_or_default(),
        connections: options.connections,
        plain_rows: options.plain_rows,
    };
    let open = move || match options.kind {
        SeriesKind::Embedded => SeriesStore::open(&dir, &options, clock),
        SeriesKind::Sql => SeriesStore::open_sql(&owner, &options, clock),
        SeriesKind::Cassandra => SeriesStore::open_cassandra(&owner, &cassandra, &options, clock),
    };
    Ok(tokio::task::spawn_blocking(open)
        .await
        .map_err(ServeError::start)??)
}

impl PlatformStores {
    pub(crate) async fn open(dir: &DataDir, config: &Config) -> Result<Self, ServeError> {
        let clock: SharedClock = Arc::new(SystemClock);
        let journal = open_journal(dir, config).await?;
        warn_of_unused(dir, config);
        let database = EntityDatabase::open(&dir.entities(), &config.sql).await?;
        if let Some(source) = database.unfinished_copy().await? {
            return Err(ServeError::start(format!(
                "`fieldline migrate` has not copied all of {source} yet: run it to its end, or name another database"
            )));
        }
        let series = open_series(dir, config, &clock).await?;
        let live = ObservedStore::new(
            series.clone(),
            series.clone(),
            series.clone(),
            series.clone(),
            series.clone(),
        );
        let hands = InFlightFile::open(dir.root())
            .inspect_err(|error| warn!(%error, "cannot open the notes of what is in hand, going on without"))
            .ok();
        let overload = OverloadMonitor::new(clock.clone());
        overload.add(Arc::new(JournalOverload(journal.clone())));
        overload.add(series.clone());
        Ok(Self {
            journal,
            overload,
            observed_store: live,
            in_flight: hands.map(Arc::new),
            series,
            database,
            events: Arc::default(),
            clock,
        })
    }

    /// Returns the time series, for writers beside the message path.
    pub(crate) fn time_series(&self) -> Arc<dyn TimeSeriesStore> {
        self.observed_store.clone()
    }

    /// Returns the context that the services work with.
    fn context(
        &self,
        passwords: PasswordHashPool,
        rule_engine: Arc<dyn RuleEngine>,
        rule_nodes: Arc<dyn RuleNodeCatalog>,
    ) -> ServiceContext {
        ServiceContext {
            stores: self.database.entity_stores(),
            series: self.observed_store.clone(),
            attributes: self.observed_store.clone(),
            events: self.events.clone(),
            clock: self.clock.clone(),
            passwords,
            rule_engine,
            rule_nodes,
            rest_endpoints: Arc::new(OperatorEndpoints),
        }
    }

    /// Creates the initial data of a new installation.
    pub(crate) async fn seed(&self, config: &Config, demo: bool) -> Result<(), ServeError> {
        let context = self.context(
            PasswordHashPool::new(1),
            Arc::new(NoRuleEngine),
            Arc::new(NoRuleNodes),
        );
        let is_shared = config.sql.url.is_some();
        if demo && is_shared && seed::has_admin(&context).await? && !seed::has_demo(&context).await? {
            return Err(ServeError::start(
                "`--demo`: the database of `sql.url` is in use without the demo, and would get accounts with well-known \
                 passwords; name an empty database for the demo",
            ));
        }
        let mut password = config.admin_password.clone();
        if demo {
            password.get_or_insert_with(|| seed::DEMO_ADMIN_PASSWORD.to_owned());
        }
        if password.is_none() && !seed::has_admin(&context).await? {
            // Printed before it is stored: if the program dies in between, there is no administrator with a password
            // that nobody saw.
            let generated = seed::new_password();
            banner::print_admin(seed::ADMIN_EMAIL, &generated);
            password = Some(generated);
        }
        seed::ensure_system(&context, password.as_deref()).await?;
        if demo {
            seed::seed_demo(&context).await?;
            seed::seed_thermostats(&context).await?;
        }
        Ok(())
    }

    /// Creates the service for entity queries and registers it for changes of entities and values.
    fn queries(&self, config: &Config) -> Arc<EntityQueryService> {
        let deps = entity_query::EntityQueryPorts {
            stores: self.database.entity_stores(),
            rows: self.database.entity_rows(),
            values: self.series.clone(),
            attributes: self.observed_store.clone(),
            clock: self.clock.clone(),
        };
        let queries = EntityQueryService::new(deps, config.api.query_memory.as_usize());
        self.events.listen(queries.entity_listener());
        self.observed_store.listen(queries.value_listener());
        queries
    }

    /// Closes the stores, as far as the time allows; a store that is not closed recovers at the next start.
    pub(crate) async fn close(&self, deadline: ShutdownDeadline) {
        deadline.step("journal", 0.4, self.journal.close()).await;
        let series = self.series.clone();
        let closing = tokio::task::spawn_blocking(move || series.close());
        match deadline.step("series", 0.6, closing).await {
            Some(Ok(Err(error))) => warn!(%error, "the time-series store did not close cleanly"),
            Some(Err(error)) => warn!(%error, "the time-series store did not close cleanly"),
            Some(Ok(Ok(()))) | None => {}
        }
        deadline.step("entities", 1.0, self.database.close()).await;
    }
}
