//! Deletes expired data: events, and the alarms and persistent calls of tenants whose profile sets a retention time for
//! them.

use std::sync::Arc;
use std::time::{Duration, Instant};

use fieldline_core::clock::SharedClock;
use fieldline_core::options::HumanDuration;
use fieldline_core::ports::{AuditStore, EventStore, StoreResult};
use fieldline_entities::services::{AlarmService, OtaPackageService, ResourceService, RpcCleanupService};
use fieldline_model::entity::EventKind;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tracing::{info, warn};

/// How often expired data is deleted.
const PERIOD: Duration = Duration::from_secs(2 * 3_600);
/// Nothing is deleted until the clock has run steadily for this long: a clock that is wrong for a while must not cost
/// data.
const CLOCK_STEADY_TIME: Duration = Duration::from_secs(3_600);
/// If the clock is off by more than this after that time, it was set.
const CLOCK_STEP_TOLERANCE: Duration = Duration::from_secs(60);

/// Retention of events: debug output, starts and failures, statistics, the audit log.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct Options {
    /// How long debug events of rule nodes, rule chains and calculated fields are kept; 0 forever.
    pub(crate) debug_ttl: HumanDuration,
    /// How long all other events are kept: starts and stops, errors, statistics; 0 forever.
    pub(crate) ttl: HumanDuration,
    /// How long the audit log keeps the actions of users; 0 forever.
    pub(crate) audit_ttl: HumanDuration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            debug_ttl: HumanDuration::secs(604_800),
            ttl: HumanDuration::secs(0),
            audit_ttl: HumanDuration::secs(31_536_000),
        }
    }
}

/// The stores and services whose expired data is deleted.
pub(crate) struct RetentionWorker {
    pub(crate) alarms: AlarmService,
    pub(crate) rpcs: RpcCleanupService,
    pub(crate) packages: OtaPackageService,
    pub(crate) resources: ResourceService,
    pub(crate) events: Arc<dyn EventStore>,
    pub(crate) audit: Arc<dyn AuditStore>,
    pub(crate) clock: SharedClock,
    pub(crate) options: Options,
}

impl RetentionWorker {
    /// Deletes expired data every two hours, for as long as the program runs.
    pub(crate) async fn run(self) {
        loop {
            let (began, began_ms) = (Instant::now(), self.clock.now_ms());
            tokio::time::sleep(CLOCK_STEADY_TIME).await;
            if !is_clock_steady(began.elapsed(), began_ms, self.clock.now_ms()) {
                warn!("the clock was set: what is old is deleted once it has stood for an hour");
                continue;
            }
            self.delete_expired(self.clock.now_ms()).await;
            tokio::time::sleep(PERIOD.saturating_sub(CLOCK_STEADY_TIME)).await;
        }
    }

    /// Deletes the data that has expired by `now_ms`.
    async fn delete_expired(&self, now_ms: i64) {
        match self.alarms.expire().await {
            Ok(0) => {}
            Ok(alarms) => info!(alarms, "deleted old alarms"),
            Err(error) => warn!(%error, "cannot delete old alarms, trying again later"),
        }
        match self.rpcs.expire().await {
            Ok(0) => {}
            Ok(calls) => info!(calls, "deleted old calls to devices"),
            Err(error) => warn!(%error, "cannot delete old calls to devices, trying again later"),
        }
        match self.packages.discard_abandoned().await {
            Ok(0) => {}
            Ok(uploads) => info!(uploads, "deleted uploads that nobody finished"),
            Err(error) => warn!(%error, "cannot delete uploads that nobody finished, trying again later"),
        }
        match self.resources.discard_abandoned().await {
            Ok(0) => {}
            Ok(files) => info!(files, "deleted files of resources that nobody finished"),
            Err(error) => warn!(%error, "cannot delete files that nobody finished, trying again later"),
        }
        let audit_ttl = millis(self.options.audit_ttl);
        let deleted = match audit_ttl {
            0 => Ok(0),
            ttl_ms => self.audit.delete_before(now_ms.saturating_sub(ttl_ms)).await,
        };
        match deleted {
            Ok(0) => {}
            Ok(entries) => info!(entries, "deleted old entries of the audit log"),
            Err(error) => warn!(%error, "cannot delete old entries of the audit log, trying again later"),
        }
        match self.delete_events(now_ms).await {
            Ok(0) => {}
            Ok(events) => info!(events, "deleted old events"),
            Err(error) => warn!(%error, "cannot delete old events, trying again later"),
        }
    }

    async fn delete_events(&self, now_ms: i64) -> StoreResult<u64> {
        let mut count = 0;
        for kind in EventKind::ALL {
            let ttl = match kind {
                EventKind::DebugRuleNode | EventKind::DebugRuleChain | EventKind::DebugCalculatedField => {
                    self.options.debug_ttl
                }
                EventKind::LcEvent | EventKind::Error | EventKind::Stats => self.options.ttl,
            };
            let ttl_ms = millis(ttl);
            if ttl_ms > 0 {
                count += self
                    .events
                    .delete_before(kind, now_ms.saturating_sub(ttl_ms))
                    .await?;
            }
        }
        Ok(count)
    }
}

fn millis(span: HumanDuration) -> i64 {
    i64::try_from(span.0.as_millis()).unwrap_or(i64::MAX)
}

/// Whether the clock has advanced by the time that has passed.
fn is_clock_steady(passed: Duration, began_ms: i64, now_ms: i64) -> bool {
    let passed_ms = i64::try_from(passed.as_millis()).unwrap_or(i64::MAX);
    let by_the_clock = now_ms.saturating_sub(began_ms);
    Duration::from_millis(by_the_clock.abs_diff(passed_ms)) <= CLOCK_STEP_TOLERANCE
}

#[cfg(test)]
mod tests {
    use fieldline_core::clock::SystemClock;
    use fieldline_core::events::EntityEvents;
    use fieldline_core::ports::{EventFilter, NoRuleEngine, NoRuleNodes};
    use fieldline_entities::password::PasswordHashPool;
    use fieldline_entities::services::{ServiceContext, Services};
    use fieldline_model::entity::{EntityEvent, EventBody, RuleNodeDebug};
    use fieldline_model::page::PageLink;
    use fieldline_model::{RuleNodeId, TenantId};
    use fieldline_storage::series::SeriesStore;
    use fieldline_storage::{series, sql};

    use super::*;

    const DAY_MS: i64 = 86_400_000;
    const NOW: i64 = 1_800_000_000_000;

    #[test]
    fn a_clock_that_was_set_is_noticed() {
        let hour = Duration::from_secs(3_600);
        assert!(is_clock_steady(hour, NOW, NOW + 3_600_000) && is_clock_steady(hour, NOW, NOW + 3_601_000));
        assert!(!is_clock_steady(hour, NOW, NOW + DAY_MS) && !is_clock_steady(hour, NOW, NOW - DAY_MS));
    }

    #[tokio::test]
    async fn old_debug_events_go_and_others_when_the_settings_say_so() {
        let dir = tempfile::tempdir().expect("a directory");
        let clock: SharedClock = Arc::new(SystemClock);
        let stores = sql::open_sqlite(&dir.path().join("entities.db"), &sql::Options::default())
            .await
            .expect("a database");
        let series = SeriesStore::open(
            &dir.path().join("series"),
            &series::Options::default(),
            clock.clone(),
        )
        .expect("a store");
        let context = ServiceContext {
            stores: stores.clone(),
            series: series.clone(),
            attributes: series,
            events: Arc::new(EntityEvents::default()),
            clock: clock.clone(),
            passwords: PasswordHashPool::new(1),
            rule_engine: Arc::new(NoRuleEngine),
            rule_nodes: Arc::new(NoRuleNodes),
            rest_endpoints: Arc::new(fieldline_core::ports::NoRestEndpoints),
        };
        let services = Services::new(context);
        let mut housekeeping = RetentionWorker {
            alarms: services.alarms,
            rpcs: services.rpc_cleanup,
            packages: services.ota_packages,
            resources: services.resources,
            events: stores.events.clone(),
            audit: stores.audit.clone(),
            clock,
            options: Options::default(),
        };
        // Events of a deleted tenant are not stored.
        let (tenant, node) = (TenantId::NULL, RuleNodeId::new().into());
        let bodies = || {
            let lifecycle = EventBody::Lifecycle {
                event: "STARTED".to_owned(),
                success: true,
                error: None,
            };
            [EventBody::RuleNode(RuleNodeDebug::default()), lifecycle]
        };
        let written: Vec<_> = [6, 8]
            .into_iter()
            .flat_map(|days| bodies().map(|body| (days, body)))
            .map(|(days, body)| {
                EntityEvent::new(tenant, node, "fieldline".to_owned(), NOW - days * DAY_MS, body)
            })
            .collect();
        stores.events.append(&written).await.expect("events are stored");

        for (ttl, left) in [(0, [1, 2]), (7, [1, 1]), (5, [1, 0])] {
            housekeeping.options.ttl = HumanDuration::secs(ttl * 86_400);
            housekeeping.delete_expired(NOW).await;
            for (kind, left) in [EventKind::DebugRuleNode, EventKind::LcEvent]
                .into_iter()
                .zip(left)
            {
                let page = PageLink::first(10);
                let found = stores
                    .events
                    .list(tenant, node, &EventFilter::of(kind), &page)
                    .await;
                assert_eq!(
                    found.expect("events are read").data.len(),
                    left,
                    "{kind:?} after {ttl} days"
                );
            }
        }
    }
}
