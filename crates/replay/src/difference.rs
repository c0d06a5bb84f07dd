//! What a replay has made, against what is stored.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use fieldline_core::ports::{AlarmQuery, AlarmScope, AlarmStore, AlarmTime, StoreResult, TimeSeriesStore};
use fieldline_model::entity::Alarm;
use fieldline_model::kv::KvValue;
use fieldline_model::page::{PageLink, SortOrder};
use fieldline_model::replay::{
    AlarmDifference, ChangedAlarm, KeyDifference, PointDifference, ReplayAlarm, ReplayPoint,
};
use fieldline_model::timeseries::{DataPoint, PointOrder, RangeQuery};
use fieldline_model::{EntityId, EntityKey, TenantId};
use rustc_hash::FxHashMap;

use super::alarms::AlarmTimeline;
use super::record::{RecordedSeries, ReplayRecord};

const PAGE: usize = 5000;
/// Bytes of them.
const PAGE_BYTES: usize = 4 << 20;
/// Alarms that are read at once.
const ALARM_PAGE: u32 = 1000;
/// Stored alarms that are compared.
pub(super) const MAX_STORED_ALARMS: usize = 10_000;
/// Names that are told apart.
const MAX_KEYS: usize = 1000;
const OTHER_KEYS: &str = "...";

/// Compares points with `start <= ts < end`: of the devices those of their keys, and what else the replay has written.
///
/// # Errors
/// The store failed.
pub(super) async fn points(
    store: &Arc<dyn TimeSeriesStore>,
    record: &ReplayRecord,
    read: &BTreeMap<EntityKey, Vec<String>>,
    (start, end): (i64, i64),
    samples: usize,
) -> StoreResult<PointDifference> {
    let mut difference = PointComparison {
        samples,
        result: PointDifference::default(),
    };
    let none = RecordedSeries::new();
    for (subject, keys) in read {
        let written = record.series.get(subject);
        let names: BTreeSet<&str> = keys
            .iter()
            .map(String::as_str)
            .chain(written.into_iter().flat_map(|of| of.keys().map(|key| &**key)))
            .collect();
        for key in names {
            let series = written.and_then(|of| of.get(key)).unwrap_or(&none);
            difference
                .series(store, (*subject, key), series, (start, end), true)
                .await?;
        }
    }
    for (subject, written) in &record.series {
        if read.contains_key(subject) {
            continue;
        }
        for (key, series) in written {
            // What others have stored at this entity meanwhile is none of the replay's.
            difference
                .series(store, (*subject, key), series, (start, end), false)
                .await?;
        }
    }
    Ok(difference.result)
}

struct PointComparison {
    samples: usize,
    result: PointDifference,
}

#[derive(Clone, Copy)]
enum PointMatch {
    Same,
    OnlyStored,
    OnlyReplayed,
    Different,
}

impl PointComparison {
    async fn series(
        &mut self,
        store: &Arc<dyn TimeSeriesStore>,
        (subject, key): (EntityKey, &str),
        written: &RecordedSeries,
        (start, end): (i64, i64),
        is_whole: bool,
    ) -> StoreResult<()> {
        if start >= end {
            return Ok(());
        }
        let inside = written.range(start..end).count();
        self.result.outside += (written.len() - inside) as u64;
        if !is_whole && inside == 0 {
            return Ok(());
        }
        let mut written = written.range(start..end).peekable();
        let mut next = Some(start);
        while let Some(from) = next.take() {
            let query = RangeQuery {
                start: from,
                end,
                limit: PAGE,
                order: PointOrder::Ascending,
            };
            let stored = store.page_or_point(subject, key, query, PAGE_BYTES).await?;
            next = stored.rest.map(|(start, _)| start);
            for DataPoint { ts, value } in stored.points {
                while let Some((at, replayed)) = written.next_if(|(at, _)| **at < ts) {
                    self.add_match(PointMatch::OnlyReplayed, subject, key, *at, None, Some(replayed));
                }
                match written.next_if(|(at, _)| **at == ts) {
                    Some((_, replayed)) if is_same(&value, replayed) => {
                        self.add_match(PointMatch::Same, subject, key, ts, None, None);
                    }
                    Some((_, replayed)) => {
                        self.add_match(
                            PointMatch::Different,
                            subject,
                            key,
                            ts,
                            Some(&value),
                            Some(replayed),
                        );
                    }
                    None if is_whole => {
                        self.add_match(PointMatch::OnlyStored, subject, key, ts, Some(&value), None);
                    }
                    None => {}
                }
            }
        }
        for (at, replayed) in written {
            self.add_match(PointMatch::OnlyReplayed, subject, key, *at, None, Some(replayed));
        }
        Ok(())
    }

    fn add_match(
        &mut self,
        found: PointMatch,
        subject: EntityKey,
        key: &str,
        ts: i64,
        stored: Option<&KvValue>,
        replayed: Option<&KvValue>,
    ) {
        let result = &mut self.result;
        let is_known = result.keys.contains_key(key) || result.keys.len() < MAX_KEYS;
        let name = if is_known { key } else { OTHER_KEYS };
        let of_key: &mut KeyDifference = match result.keys.get_mut(name) {
            Some(of_key) => of_key,
            None => result.keys.entry(name.to_owned()).or_default(),
        };
        let (all, of_key) = match found {
            PointMatch::Same => (&mut result.same, &mut of_key.same),
            PointMatch::OnlyStored => (&mut result.only_stored, &mut of_key.only_stored),
            PointMatch::OnlyReplayed => (&mut result.only_replayed, &mut of_key.only_replayed),
            PointMatch::Different => (&mut result.different, &mut of_key.different),
        };
        *all += 1;
        *of_key += 1;
        if !matches!(found, PointMatch::Same) && result.sample.len() < self.samples {
            result.sample.push(ReplayPoint {
                entity: subject.entity,
                key: key.to_owned(),
                ts,
                stored: stored.map(KvValue::to_json),
                replayed: replayed.map(KvValue::to_json),
            });
        }
    }
}

/// Whether two values are the same: a whole number is as good as the same number with a fraction of nothing.
fn is_same(stored: &KvValue, replayed: &KvValue) -> bool {
    stored == replayed
        || match (stored.as_number(), replayed.as_number()) {
            (Some(stored), Some(replayed)) => stored == replayed,
            _ => false,
        }
}

/// The stored alarms of devices that were active at `start`, and those that began with `start <= ts < end`; and whether
/// there are more.
///
/// # Errors
/// The store failed.
pub(super) async fn stored_alarms(
    store: &Arc<dyn AlarmStore>,
    tenant: TenantId,
    devices: &[EntityId],
    (start, end): (i64, i64),
) -> StoreResult<(Vec<Alarm>, Vec<Alarm>, bool)> {
    let of = |cleared, from, to| AlarmQuery {
        scope: AlarmScope::Originators(devices.to_vec()),
        cleared,
        time: AlarmTime::Start,
        from,
        to: Some(to),
        ..AlarmQuery::default()
    };
    let mut is_cut = false;
    let mut active = list(
        store,
        tenant,
        &of(Some(false), None, start - 1),
        |_| true,
        &mut is_cut,
    )
    .await?;
    let was_active = |alarm: &Alarm| alarm.clear_ts >= start;
    active.extend(
        list(
            store,
            tenant,
            &of(Some(true), None, start - 1),
            was_active,
            &mut is_cut,
        )
        .await?,
    );
    let begun = list(
        store,
        tenant,
        &of(None, Some(start), end - 1),
        |_| true,
        &mut is_cut,
    )
    .await?;
    Ok((active, begun, is_cut))
}

/// Alarms, those that were cleared last first, as long as they are wanted.
async fn list(
    store: &Arc<dyn AlarmStore>,
    tenant: TenantId,
    query: &AlarmQuery,
    wanted: impl Fn(&Alarm) -> bool,
    is_cut: &mut bool,
) -> StoreResult<Vec<Alarm>> {
    let mut all = Vec::new();
    for page in 0.. {
        let link = PageLink {
            page,
            page_size: ALARM_PAGE,
            sort_property: Some("clearTs".to_owned()),
            sort_order: Some(SortOrder::Desc),
            ..PageLink::default()
        };
        let found = store.list(tenant, query, &link).await?;
        for alarm in found.data {
            if !wanted(&alarm.alarm) {
                return Ok(all);
            }
            if all.len() >= MAX_STORED_ALARMS {
                *is_cut = true;
                return Ok(all);
            }
            all.push(alarm.alarm);
        }
        if !found.has_next {
            break;
        }
    }
    Ok(all)
}

/// Names of originators.
pub(super) type OriginatorNames = FxHashMap<EntityId, Arc<str>>;

/// An alarm of the replay, as it is answered.
pub(super) fn replayed_alarm(course: &AlarmTimeline, names: &OriginatorNames) -> ReplayAlarm {
    ReplayAlarm {
        was_active: course.was_active,
        updates: course.updates,
        severities: course.severities.clone(),
        ..stored_alarm(&course.alarm, names)
    }
}

fn stored_alarm(alarm: &Alarm, names: &OriginatorNames) -> ReplayAlarm {
    let originator = alarm.originator.unwrap_or_else(|| alarm.tenant_id.into());
    ReplayAlarm {
        id: alarm.id,
        originator,
        originator_name: names.get(&originator).map(|name| name.to_string()),
        alarm_type: alarm.alarm_type.clone(),
        severity: alarm.severity,
        start_ts: alarm.start_ts,
        end_ts: alarm.end_ts,
        raised_ts: alarm.created_time,
        cleared_ts: alarm.cleared.then_some(alarm.clear_ts),
        was_active: false,
        updates: 0,
        severities: Vec::new(),
        details: alarm.details.clone(),
    }
}

/// What the replay has raised, and what is stored.
type AlarmGroup<'a> = (Vec<&'a AlarmTimeline>, Vec<&'a Alarm>);

/// Compares alarms: those of one originator and type pair up where they began at about the same time.
pub(super) fn alarms(
    replayed: &[AlarmTimeline],
    (active, begun): (&[Alarm], &[Alarm]),
    end: i64,
    tolerance: i64,
    names: &OriginatorNames,
    limit: usize,
) -> AlarmDifference {
    let mut result = AlarmDifference::default();
    let mut groups: BTreeMap<(EntityId, &str), AlarmGroup<'_>> = BTreeMap::new();
    for course in replayed.iter().filter(|course| !course.was_active) {
        let key = course
            .alarm
            .originator
            .map(|originator| (originator, course.alarm.alarm_type.as_str()));
        if let Some(key) = key {
            groups.entry(key).or_default().0.push(course);
        }
    }
    for alarm in begun {
        if let Some(originator) = alarm.originator {
            groups
                .entry((originator, &alarm.alarm_type))
                .or_default()
                .1
                .push(alarm);
        }
    }
    let pair = |course: &AlarmTimeline, alarm: &Alarm, result: &mut AlarmDifference| {
        let mut fields = Vec::new();
        if course.alarm.severity != alarm.severity {
            fields.push("severity".to_owned());
        }
        let cleared = |alarm: &Alarm| alarm.cleared.then_some(alarm.clear_ts).filter(|ts| *ts < end);
        let is_same = match (cleared(&course.alarm), cleared(alarm)) {
            (None, None) => true,
            (Some(replayed), Some(stored)) => (replayed - stored).abs() <= tolerance,
            _ => false,
        };
        if !is_same {
            fields.push("clearedTs".to_owned());
        }
        if fields.is_empty() {
            result.same += 1;
            return;
        }
        result.different += 1;
        if result.changed.len() < limit {
            result.changed.push(ChangedAlarm {
                fields,
                stored: stored_alarm(alarm, names),
                replayed: replayed_alarm(course, names),
            });
        }
    };
    let only_stored = |alarm: &Alarm, result: &mut AlarmDifference| {
        result.only_stored += 1;
        if result.stored.len() < limit {
            result.stored.push(stored_alarm(alarm, names));
        }
    };
    let only_replayed = |course: &AlarmTimeline, result: &mut AlarmDifference| {
        result.only_replayed += 1;
        if result.replayed.len() < limit {
            result.replayed.push(replayed_alarm(course, names));
        }
    };
    for (_, (mut courses, mut stored)) in groups {
        courses.sort_by_key(|course| course.alarm.start_ts);
        stored.sort_by_key(|alarm| alarm.start_ts);
        let (mut courses, mut stored) = (courses.into_iter().peekable(), stored.into_iter().peekable());
        loop {
            match (courses.peek(), stored.peek()) {
                (Some(course), Some(alarm)) => {
                    let apart = course.alarm.start_ts - alarm.start_ts;
                    if apart.abs() <= tolerance {
                        pair(course, alarm, &mut result);
                        courses.next();
                        stored.next();
                    } else if apart < 0 {
                        only_replayed(course, &mut result);
                        courses.next();
                    } else {
                        only_stored(alarm, &mut result);
                        stored.next();
                    }
                }
                (Some(course), None) => {
                    only_replayed(course, &mut result);
                    courses.next();
                }
                (None, Some(alarm)) => {
                    only_stored(alarm, &mut result);
                    stored.next();
                }
                (None, None) => break,
            }
        }
    }
    let before: FxHashMap<_, _> = active.iter().map(|alarm| (alarm.id, alarm)).collect();
    for course in replayed.iter().filter(|course| course.was_active) {
        if let Some(alarm) = before.get(&course.alarm.id) {
            pair(course, alarm, &mut result);
        }
    }
    result
}
