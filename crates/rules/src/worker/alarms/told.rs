//! What messages say to alarm rules.

use bytes::Bytes;
use fieldline_model::kv::{Value, unpack};
use fieldline_model::message::MsgType;
use fieldline_model::timeseries::AttributeScope;
use uuid::Uuid;

use crate::alarm_rules::{Change, Changes, Event, NeedKind, Rules};
use crate::message::{Data, Msg};

/// What a message says to alarm rules, with whatever memory it needs.
pub(in crate::worker) enum Told {
    Values(NeedKind, i64, Bytes),
    Owned(NeedKind, Vec<(i64, String, Value)>),
    Removed(AttributeScope, Vec<String>),
    /// Values by the positions of their needs.
    Needs(Vec<(u16, i64, Value)>),
    RemovedNeeds(Vec<usize>),
    Started,
    Acknowledged(Uuid),
    Cleared(Uuid),
    Deleted(Uuid),
    Timer,
}

impl Told {
    /// The values that rules read, as changes and as positions of those that are gone; the event that they make, if any,
    /// is told by [`Told::event`].
    pub(super) fn news<'a>(&'a self, rules: &Rules) -> (Changes<'a>, Vec<usize>) {
        let (mut changes, mut removed) = (Changes::default(), Vec::new());
        match self {
            Self::Values(kind, ts, values) => {
                for (name, value) in unpack(values).filter_map(Result::ok) {
                    changes.add(rules, *kind, name, *ts, value);
                }
            }
            Self::Owned(kind, values) => {
                for (ts, name, value) in values {
                    changes.add(rules, *kind, name, *ts, value.as_ref());
                }
            }
            Self::Needs(values) => {
                for (need, ts, value) in values {
                    changes.push(Change {
                        need: *need,
                        ts: *ts,
                        value: value.as_ref(),
                    });
                }
            }
            Self::Removed(scope, names) => {
                let kind = NeedKind::Attribute(Some(*scope));
                removed.extend(names.iter().filter_map(|name| rules.find(kind, name)));
            }
            Self::RemovedNeeds(needs) => removed.extend(needs),
            Self::Started | Self::Acknowledged(_) | Self::Cleared(_) | Self::Deleted(_) | Self::Timer => {}
        }
        (changes, removed)
    }

    /// What has happened as rules see it; `None` where they read none of it.
    pub(super) fn event<'a>(&self, changes: &'a Changes<'_>, removed: &'a [usize]) -> Option<Event<'a>> {
        Some(match self {
            Self::Values(..) | Self::Owned(..) | Self::Needs(_) if changes.is_empty() => return None,
            Self::Values(..) | Self::Owned(..) | Self::Needs(_) => Event::Update(changes.as_slice()),
            Self::Removed(..) | Self::RemovedNeeds(_) if removed.is_empty() => return None,
            Self::Removed(..) | Self::RemovedNeeds(_) => Event::Removed(removed),
            Self::Started => Event::Started,
            Self::Acknowledged(id) => Event::AlarmAcknowledged(*id),
            Self::Cleared(id) => Event::AlarmCleared(*id),
            Self::Deleted(id) => Event::AlarmDeleted(*id),
            Self::Timer => Event::Timer,
        })
    }
}

/// What a message says to alarm rules; `None` where it says nothing.
pub(super) fn told_by(msg: &mut Msg) -> Option<Told> {
    let scope = |msg: &Msg, default| {
        let named = msg.meta.get("scope");
        named
            .and_then(|name| AttributeScope::from_name(&name))
            .unwrap_or(default)
    };
    match msg.kind {
        MsgType::PostTelemetry => {
            let ts = msg.values_ts();
            match &msg.data {
                Data::Packed(values) => Some(Told::Values(NeedKind::TimeSeries, ts, values.clone())),
                _ => Some(Told::Owned(
                    NeedKind::TimeSeries,
                    series_of(&*msg.data.to_json().ok()?, ts),
                )),
            }
        }
        MsgType::TimeseriesUpdated => {
            let ts = msg.ts;
            let body = msg.data.to_json().ok()?;
            Some(Told::Owned(
                NeedKind::TimeSeries,
                series_of(body.get("timeseries")?, ts),
            ))
        }
        MsgType::PostAttributes => {
            let kind = NeedKind::Attribute(Some(scope(msg, AttributeScope::Client)));
            match &msg.data {
                Data::Packed(values) => Some(Told::Values(kind, msg.ts, values.clone())),
                _ => Some(Told::Owned(kind, values_of(&*msg.data.to_json().ok()?, msg.ts))),
            }
        }
        MsgType::AttributesUpdated | MsgType::Activity | MsgType::Inactivity => {
            let kind = NeedKind::Attribute(Some(scope(msg, AttributeScope::Server)));
            let ts = msg.ts;
            Some(Told::Owned(kind, values_of(&*msg.data.to_json().ok()?, ts)))
        }
        MsgType::AttributesDeleted => {
            let scope = scope(msg, AttributeScope::Server);
            let body = msg.data.to_json().ok()?;
            let names = body.get("attributes")?.as_array()?.iter();
            Some(Told::Removed(
                scope,
                names.filter_map(|name| Some(name.as_str()?.to_owned())).collect(),
            ))
        }
        MsgType::AlarmAck => alarm_id(msg).map(Told::Acknowledged),
        MsgType::AlarmClear => alarm_id(msg).map(Told::Cleared),
        MsgType::AlarmDelete => alarm_id(msg).map(Told::Deleted),
        _ => None,
    }
}

fn alarm_id(msg: &mut Msg) -> Option<Uuid> {
    let body = msg.data.to_json().ok()?;
    body.pointer("/id/id")?.as_str()?.parse().ok()
}

fn series_of(body: &serde_json::Value, ts: i64) -> Vec<(i64, String, Value)> {
    match body {
        serde_json::Value::Array(rows) => rows.iter().flat_map(|row| series_of(row, ts)).collect(),
        serde_json::Value::Object(object) => match (
            object.get("ts").and_then(serde_json::Value::as_i64),
            object.get("values"),
        ) {
            (Some(ts), Some(values)) => values_of(values, ts),
            _ => values_of(body, ts),
        },
        _ => Vec::new(),
    }
}

fn values_of(body: &serde_json::Value, ts: i64) -> Vec<(i64, String, Value)> {
    let Some(object) = body.as_object() else {
        return Vec::new();
    };
    object
        .iter()
        .filter_map(|(key, value)| Some((ts, key.clone(), crate::values::of_json(value)?)))
        .collect()
}
