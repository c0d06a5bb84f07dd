//! Alarms of a replay: those that were active at its begin, and those that it raises. They are in memory only.

mod store;

use fieldline_core::clock::SharedClock;
use fieldline_core::ports::{AlarmApiResult, AlarmPropagation, AlarmQuery, AlarmScope, AlarmTime};
use fieldline_model::entity::{Alarm, AlarmInfo, AlarmSeverity};
use fieldline_model::page::{PageData, PageLink};
use fieldline_model::{AlarmId, EntityId, TenantId};
use parking_lot::Mutex;
use rustc_hash::FxHashMap;

/// Alarms that are kept; raising more fails.
const MAX_ALARMS: usize = 100_000;
/// Changes of severity that are kept of one alarm.
const MAX_SEVERITIES: usize = 100;

/// An alarm, and what the replay did with it.
#[derive(Debug, Clone)]
pub(super) struct AlarmTimeline {
    pub(super) alarm: Alarm,
    /// Whether it was active before the replayed time.
    pub(super) was_active: bool,
    /// Whether the replay has done something with it.
    pub(super) is_touched: bool,
    pub(super) updates: u64,
    pub(super) severities: Vec<(i64, AlarmSeverity)>,
    pub(super) cleared: bool,
    /// Number in the order in which they were raised.
    number: usize,
}

#[derive(Default)]
struct ReplayAlarmState {
    all: FxHashMap<AlarmId, AlarmTimeline>,
    active: FxHashMap<(EntityId, String), AlarmId>,
    updates: u64,
}

/// See the module.
pub(super) struct DryAlarmStore {
    clock: SharedClock,
    alarms: Mutex<ReplayAlarmState>,
}

impl DryAlarmStore {
    /// The alarms that are active when the replay begins.
    pub(super) fn new(clock: SharedClock, active: Vec<Alarm>) -> Self {
        let mut alarms = ReplayAlarmState::default();
        for mut alarm in active {
            let Some(originator) = alarm.originator else {
                continue;
            };
            let id = alarm.id;
            alarm.cleared = false;
            alarm.clear_ts = 0;
            alarms.active.insert((originator, alarm.alarm_type.clone()), id);
            let number = alarms.all.len();
            alarms.all.insert(
                id,
                AlarmTimeline {
                    severities: alarm
                        .severity
                        .map(|severity| (alarm.start_ts, severity))
                        .into_iter()
                        .collect(),
                    alarm,
                    was_active: true,
                    is_touched: false,
                    updates: 0,
                    cleared: false,
                    number,
                },
            );
        }
        Self {
            clock,
            alarms: Mutex::new(alarms),
        }
    }

    /// All alarms in the order in which they were raised, and how often one was updated.
    pub(super) fn timelines(&self) -> (Vec<AlarmTimeline>, u64) {
        let alarms = self.alarms.lock();
        let mut all: Vec<AlarmTimeline> = alarms.all.values().cloned().collect();
        all.sort_by_key(|course| course.number);
        (all, alarms.updates)
    }

    fn change(
        &self,
        tenant: TenantId,
        id: AlarmId,
        change: impl FnOnce(&mut AlarmTimeline) -> bool,
    ) -> Option<AlarmApiResult> {
        let mut guard = self.alarms.lock();
        let alarms = &mut *guard;
        let course = alarms
            .all
            .get_mut(&id)
            .filter(|course| course.alarm.tenant_id == tenant)?;
        let old = course.alarm.clone();
        let modified = change(course);
        course.is_touched |= modified;
        let cleared = course.alarm.cleared && !old.cleared;
        let alarm = course.alarm.clone();
        if cleared && let Some(originator) = alarm.originator {
            alarms.active.remove(&(originator, alarm.alarm_type.clone()));
        }
        Some(AlarmApiResult {
            alarm,
            old: Some(old),
            created: false,
            modified,
            cleared,
            replayed: false,
            propagated: Vec::new(),
        })
    }

    fn find(&self, tenant: TenantId, query: &AlarmQuery) -> Vec<Alarm> {
        let alarms = self.alarms.lock();
        let mut found: Vec<(usize, Alarm)> = alarms
            .all
            .values()
            .filter(|course| course.alarm.tenant_id == tenant && matches(query, &course.alarm))
            .map(|course| (course.number, course.alarm.clone()))
            .collect();
        found.sort_by_key(|(number, _)| std::cmp::Reverse(*number));
        found.into_iter().map(|(_, alarm)| alarm).collect()
    }
}

fn matches(query: &AlarmQuery, alarm: &Alarm) -> bool {
    let of = |entity: &EntityId| alarm.originator == Some(*entity);
    let in_scope = match &query.scope {
        AlarmScope::All => true,
        AlarmScope::Affecting(entity) => of(entity),
        AlarmScope::AffectingAny(entities) | AlarmScope::Originators(entities) => entities.iter().any(of),
        AlarmScope::AffectingType(kind) | AlarmScope::OriginatorType(kind) => alarm
            .originator
            .is_some_and(|originator| originator.entity_type == *kind),
    };
    let time = match query.time {
        AlarmTime::Created => alarm.created_time,
        AlarmTime::Start => alarm.start_ts,
    };
    in_scope
        && query
            .customer
            .is_none_or(|customer| alarm.customer_id == Some(customer))
        && query.cleared.is_none_or(|cleared| alarm.cleared == cleared)
        && query
            .acknowledged
            .is_none_or(|acknowledged| alarm.acknowledged == acknowledged)
        && (query.severities.is_empty() || alarm.severity.is_some_and(|it| query.severities.contains(&it)))
        && (query.types.is_empty() || query.types.contains(&alarm.alarm_type))
        && query
            .assignee
            .is_none_or(|assignee| alarm.assignee_id == Some(assignee))
        && query.from.is_none_or(|from| time >= from)
        && query.to.is_none_or(|to| time <= to)
}

fn propagate(alarm: &mut Alarm, propagation: AlarmPropagation) {
    alarm.propagate = propagation.related;
    alarm.propagate_to_owner = propagation.owner;
    alarm.propagate_to_tenant = propagation.tenant;
    alarm.propagate_relation_types = propagation.relation_types;
}

impl AlarmTimeline {
    fn set_severity(&mut self, now: i64, severity: AlarmSeverity) {
        if self.alarm.severity != Some(severity) && self.severities.len() < MAX_SEVERITIES {
            self.severities.push((now, severity));
        }
        self.alarm.severity = Some(severity);
    }
}

fn page<T>(all: Vec<T>, page: &PageLink) -> PageData<T> {
    let total = all.len() as u64;
    let skipped = usize::try_from(page.offset()).unwrap_or(usize::MAX);
    let data = all
        .into_iter()
        .skip(skipped)
        .take(page.page_size as usize)
        .collect();
    PageData::new(data, total, page)
}

fn info(alarm: Alarm) -> AlarmInfo {
    AlarmInfo {
        alarm,
        originator_name: None,
        originator_label: None,
        originator_display_name: None,
        assignee: None,
    }
}
