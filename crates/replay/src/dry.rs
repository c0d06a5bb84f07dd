//! An engine's parts over stores that keep in memory what is written.

use std::sync::Arc;

use fieldline_core::events::EntityEvents;
use fieldline_core::ports::{NoDeviceRpc, NoRestApiResponder, NoRestEndpoints, NoRuleEngine, NoRuleNodes};
use fieldline_core::usage::UsageStore;
use fieldline_devices::activity::ActivityTracker;
use fieldline_devices::downlink::NoDeviceLink;
use fieldline_entities::password::PasswordHashPool;
use fieldline_entities::services::{ServiceContext, Services as Rules};
use fieldline_model::EntityKey;
use fieldline_model::entity::Alarm;
use fieldline_rules::chain_registry::ChainRegistry;
use fieldline_rules::engine::EngineShared;
use fieldline_rules::events::{DebugLimit, EventRecorder};
use fieldline_rules::originators::OriginatorCache;
use fieldline_rules::services::NodeServices;
use parking_lot::Mutex;
use rustc_hash::FxHashSet;

use super::alarms::DryAlarmStore;
use super::entities::{ReplayDrafts, dry_stores};
use super::play::{FollowUpQueue, ReplayClock};
use super::record::ReplayRecord;
use super::series::{DryAttributeStore, DrySeriesStore};

/// Originators that are remembered besides those that are replayed.
const EXTRA_CACHED_ORIGINATORS: usize = 1000;

/// What is replayed, and what is put in the place of what is stored.
pub(super) struct ReplaySetup {
    /// Begin of the replayed time, milliseconds.
    pub(super) start: i64,
    /// What is there instead of what is stored.
    pub(super) drafts: ReplayDrafts,
    /// Alarms that are active at the beginning.
    pub(super) active: Vec<Alarm>,
    /// Those whose stored series end with the beginning; those of others are seen up to the replayed time.
    pub(super) replayed: FxHashSet<EntityKey>,
    /// Where scripts and the like are counted; nowhere where absent.
    pub(super) usage: Option<Arc<UsageStore>>,
}

/// What a replay works with.
pub(super) struct DryEngine {
    pub(super) shared: Arc<EngineShared>,
    pub(super) record: Arc<Mutex<ReplayRecord>>,
    pub(super) series: Arc<DrySeriesStore>,
    pub(super) alarms: Arc<DryAlarmStore>,
    pub(super) clock: Arc<ReplayClock>,
    pub(super) pushes: Arc<FollowUpQueue>,
}

impl DryEngine {
    pub(super) fn new(real: &NodeServices, setup: ReplaySetup) -> Self {
        let record = Arc::new(Mutex::new(ReplayRecord::default()));
        let clock = ReplayClock::at(setup.start);
        let alarms = Arc::new(DryAlarmStore::new(clock.clone(), setup.active));
        let drafts = Arc::new(setup.drafts);
        let stores = dry_stores(&real.stores, &record, alarms.clone(), &drafts);
        let cached = setup.replayed.len() + EXTRA_CACHED_ORIGINATORS;
        let series = Arc::new(DrySeriesStore::new(
            real.series.clone(),
            record.clone(),
            clock.clone(),
            Arc::new(setup.replayed),
            setup.start,
        ));
        let attributes = Arc::new(DryAttributeStore {
            real: real.attributes.clone(),
            record: record.clone(),
        });
        let pushes = Arc::new(FollowUpQueue::default());
        let rules = Rules::new(ServiceContext {
            stores: stores.clone(),
            series: series.clone(),
            attributes: attributes.clone(),
            events: Arc::new(EntityEvents::default()),
            clock: clock.clone(),
            passwords: PasswordHashPool::new(1),
            rule_engine: pushes.clone(),
            rule_nodes: Arc::new(NoRuleNodes),
            rest_endpoints: Arc::new(NoRestEndpoints),
        });
        let activity = ActivityTracker::new(
            stores.clone(),
            attributes.clone(),
            Arc::new(NoRuleEngine),
            clock.clone(),
            &Default::default(),
        );
        let limit = DebugLimit {
            events: 0,
            ..DebugLimit::default()
        };
        let events = EventRecorder::start(
            stores.events.clone(),
            clock.clone(),
            &real.service_id,
            limit,
            &real.runtime,
        );
        let usage = setup
            .usage
            .unwrap_or_else(|| UsageStore::new(stores.clone(), series.clone(), clock.clone()));
        let services = Arc::new(NodeServices {
            originators: OriginatorCache::new(stores.clone(), cached),
            stores,
            rules,
            series: series.clone(),
            attributes,
            engine: pushes.clone(),
            devices: Arc::new(NoDeviceLink),
            rpc: Arc::new(NoDeviceRpc),
            rest_calls: Arc::new(NoRestApiResponder),
            activity,
            usage,
            external: real.external.clone(),
            // They are the tenant's like any others.
            scripts: real.scripts.clone(),
            clock: clock.clone(),
            runtime: real.runtime.clone(),
            service_id: real.service_id.clone(),
        });
        let common = Arc::new(EngineShared {
            chains: ChainRegistry::new(services.clone(), events.clone()),
            services,
            events,
        });
        Self {
            shared: common,
            record,
            series,
            alarms,
            clock,
            pushes,
        }
    }
}
