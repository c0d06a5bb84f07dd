//! An engine's parts over stores that keep in memory what is written.

use std::sync::Arc;

use fieldline_core::activity::ActivityTracker;
use fieldline_core::downlink::NoDeviceLink;
use fieldline_core::events::EntityEvents;
use fieldline_core::password::Passwords;
use fieldline_core::ports::{NoDeviceRpc, NoRestCalls, NoRuleNodes};
use fieldline_core::services::{Context, Services as Rules};
use fieldline_core::usage::ApiUsage;
use fieldline_model::Subject;
use fieldline_model::entity::Alarm;
use parking_lot::Mutex;
use rustc_hash::FxHashSet;

use super::alarms::DryAlarms;
use super::entities::{Drafts, dry_stores};
use super::play::{Pushes, ReplayClock};
use super::record::Record;
use super::series::{DryAttributes, DrySeries};
use crate::book::Book;
use crate::engine::Common;
use crate::events::{DebugLimit, Events};
use crate::originators::Originators;
use crate::services::Services;

/// Originators that are remembered besides those that are replayed.
const CACHED: usize = 1000;

/// What is replayed, and what is put in the place of what is stored.
pub(super) struct Setup {
    /// Begin of the replayed time, milliseconds.
    pub(super) start: i64,
    /// What is there instead of what is stored.
    pub(super) drafts: Drafts,
    /// Alarms that are active at the beginning.
    pub(super) active: Vec<Alarm>,
    /// Those whose stored series end with the beginning; those of others are seen up to the replayed time.
    pub(super) replayed: FxHashSet<Subject>,
    /// Where scripts and the like are counted; nowhere where absent.
    pub(super) usage: Option<Arc<ApiUsage>>,
}

/// What a replay works with.
pub(super) struct Dry {
    pub(super) common: Arc<Common>,
    pub(super) record: Arc<Mutex<Record>>,
    pub(super) series: Arc<DrySeries>,
    pub(super) alarms: Arc<DryAlarms>,
    pub(super) clock: Arc<ReplayClock>,
    pub(super) pushes: Arc<Pushes>,
}

impl Dry {
    pub(super) fn new(real: &Services, setup: Setup) -> Self {
        let record = Arc::new(Mutex::new(Record::default()));
        let clock = ReplayClock::at(setup.start);
        let alarms = Arc::new(DryAlarms::new(clock.clone(), setup.active));
        let drafts = Arc::new(setup.drafts);
        let stores = dry_stores(&real.stores, &record, alarms.clone(), &drafts);
        let cached = setup.replayed.len() + CACHED;
        let series = Arc::new(DrySeries::new(
            real.series.clone(),
            record.clone(),
            clock.clone(),
            Arc::new(setup.replayed),
            setup.start,
        ));
        let attributes = Arc::new(DryAttributes {
            real: real.attributes.clone(),
            record: record.clone(),
        });
        let pushes = Arc::new(Pushes::default());
        let rules = Rules::new(Context {
            stores: stores.clone(),
            series: series.clone(),
            attributes: attributes.clone(),
            events: Arc::new(EntityEvents::default()),
            clock: clock.clone(),
            passwords: Passwords::new(1),
            rule_engine: pushes.clone(),
            rule_nodes: Arc::new(NoRuleNodes),
        });
        let activity = ActivityTracker::new(
            stores.clone(),
            attributes.clone(),
            clock.clone(),
            &Default::default(),
        );
        let limit = DebugLimit {
            events: 0,
            ..DebugLimit::default()
        };
        let events = Events::start(
            stores.events.clone(),
            clock.clone(),
            &real.service_id,
            limit,
            &real.runtime,
        );
        let usage = setup
            .usage
            .unwrap_or_else(|| ApiUsage::new(stores.clone(), series.clone(), clock.clone()));
        let services = Arc::new(Services {
            originators: Originators::new(stores.clone(), cached),
            stores,
            rules,
            series: series.clone(),
            attributes,
            engine: pushes.clone(),
            devices: Arc::new(NoDeviceLink),
            rpc: Arc::new(NoDeviceRpc),
            rest_calls: Arc::new(NoRestCalls),
            activity,
            usage,
            external: real.external.clone(),
            // They are the tenant's like any others.
            scripts: real.scripts.clone(),
            clock: clock.clone(),
            runtime: real.runtime.clone(),
            service_id: real.service_id.clone(),
        });
        let common = Arc::new(Common {
            book: Book::new(services.clone(), events.clone()),
            services,
            events,
        });
        Self {
            common,
            record,
            series,
            alarms,
            clock,
            pushes,
        }
    }
}
