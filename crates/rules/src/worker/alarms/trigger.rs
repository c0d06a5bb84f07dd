//! What messages say to alarm rules.

use bytes::Bytes;
use fieldline_alarm_rules::{
    AlarmInputChange, AlarmInputChanges, AlarmInputKind, AlarmRuleEvent, AlarmRuleSet,
};
use fieldline_model::kv::{KvValue, unpack};
use fieldline_model::message::MsgType;
use fieldline_model::timeseries::AttributeScope;
use uuid::Uuid;

use crate::message::{MessageBody, RuleMessage};

/// What a message says to alarm rules, with whatever memory it needs.
pub(in crate::worker) enum AlarmTrigger {
    Values(AlarmInputKind, i64, Bytes),
    Owned(AlarmInputKind, Vec<(i64, String, KvValue)>),
    Removed(AttributeScope, Vec<String>),
    /// Values by the positions of their needs.
    Needs(Vec<(u16, i64, KvValue)>),
    RemovedNeeds(Vec<usize>),
    Started,
    Acknowledged(Uuid),
    Cleared(Uuid),
    Deleted(Uuid),
    Timer,
}

impl AlarmTrigger {
    /// The values that rules read, as changes and as positions of those that are gone; the event that they make, if any,
    /// is told by [`AlarmTrigger::event`].
    pub(super) fn input_changes<'a>(&'a self, rules: &AlarmRuleSet) -> (AlarmInputChanges<'a>, Vec<usize>) {
        let (mut changes, mut removed) = (AlarmInputChanges::default(), Vec::new());
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
                    changes.push(AlarmInputChange {
                        input: *need,
                        ts: *ts,
                        value: value.as_ref(),
                    });
                }
            }
            Self::Removed(scope, names) => {
                let kind = AlarmInputKind::Attribute(Some(*scope));
                removed.extend(names.iter().filter_map(|name| rules.find(kind, name)));
            }
            Self::RemovedNeeds(needs) => removed.extend(needs),
            Self::Started | Self::Acknowledged(_) | Self::Cleared(_) | Self::Deleted(_) | Self::Timer => {}
        }
        (changes, removed)
    }

    /// What has happened as rules see it; `None` where they read none of it.
    pub(super) fn event<'a>(
        &self,
        changes: &'a AlarmInputChanges<'_>,
        removed: &'a [usize],
    ) -> Option<AlarmRuleEvent<'a>> {
        Some(match self {
            Self::Values(..) | Self::Owned(..) | Self::Needs(_) if changes.is_empty() => return None,
            Self::Values(..) | Self::Owned(..) | Self::Needs(_) => AlarmRuleEvent::Update(changes.as_slice()),
            Self::Removed(..) | Self::RemovedNeeds(_) if removed.is_empty() => return None,
            Self::Removed(..) | Self::RemovedNeeds(_) => AlarmRuleEvent::Removed(removed),
            Self::Started => AlarmRuleEvent::Started,
            Self::Acknowledged(id) => AlarmRuleEvent::AlarmAcknowledged(*id),
            Self::Cleared(id) => AlarmRuleEvent::AlarmCleared(*id),
            Self::Deleted(id) => AlarmRuleEvent::AlarmDeleted(*id),
            Self::Timer => AlarmRuleEvent::Timer,
        })
    }
}

/// What a message says to alarm rules; `None` where it says nothing.
pub(super) fn alarm_trigger_of(msg: &mut RuleMessage) -> Option<AlarmTrigger> {
    let scope = |msg: &RuleMessage, default| {
        let named = msg.meta.get("scope");
        named
            .and_then(|name| AttributeScope::from_name(&name))
            .unwrap_or(default)
    };
    match msg.kind {
        MsgType::PostTelemetry => {
            let ts = msg.values_ts();
            match &msg.data {
                MessageBody::Packed(values) => Some(AlarmTrigger::Values(
                    AlarmInputKind::TimeSeries,
                    ts,
                    values.clone(),
                )),
                _ => Some(AlarmTrigger::Owned(
                    AlarmInputKind::TimeSeries,
                    series_of(&*msg.data.to_json().ok()?, ts),
                )),
            }
        }
        MsgType::TimeseriesUpdated => {
            let ts = msg.ts;
            let body = msg.data.to_json().ok()?;
            Some(AlarmTrigger::Owned(
                AlarmInputKind::TimeSeries,
                series_of(body.get("timeseries")?, ts),
            ))
        }
        MsgType::PostAttributes => {
            let kind = AlarmInputKind::Attribute(Some(scope(msg, AttributeScope::Client)));
            match &msg.data {
                MessageBody::Packed(values) => Some(AlarmTrigger::Values(kind, msg.ts, values.clone())),
                _ => Some(AlarmTrigger::Owned(
                    kind,
                    values_of(&*msg.data.to_json().ok()?, msg.ts),
                )),
            }
        }
        MsgType::AttributesUpdated | MsgType::Activity | MsgType::Inactivity => {
            let kind = AlarmInputKind::Attribute(Some(scope(msg, AttributeScope::Server)));
            let ts = msg.ts;
            Some(AlarmTrigger::Owned(
                kind,
                values_of(&*msg.data.to_json().ok()?, ts),
            ))
        }
        MsgType::AttributesDeleted => {
            let scope = scope(msg, AttributeScope::Server);
            let body = msg.data.to_json().ok()?;
            let names = body.get("attributes")?.as_array()?.iter();
            Some(AlarmTrigger::Removed(
                scope,
                names.filter_map(|name| Some(name.as_str()?.to_owned())).collect(),
            ))
        }
        MsgType::AlarmAck => alarm_id(msg).map(AlarmTrigger::Acknowledged),
        MsgType::AlarmClear => alarm_id(msg).map(AlarmTrigger::Cleared),
        MsgType::AlarmDelete => alarm_id(msg).map(AlarmTrigger::Deleted),
        _ => None,
    }
}

fn alarm_id(msg: &mut RuleMessage) -> Option<Uuid> {
    let body = msg.data.to_json().ok()?;
    body.pointer("/id/id")?.as_str()?.parse().ok()
}

fn series_of(body: &serde_json::Value, ts: i64) -> Vec<(i64, String, KvValue)> {
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

fn values_of(body: &serde_json::Value, ts: i64) -> Vec<(i64, String, KvValue)> {
    let Some(object) = body.as_object() else {
        return Vec::new();
    };
    object
        .iter()
        .filter_map(|(key, value)| Some((ts, key.clone(), crate::values::of_json(value)?)))
        .collect()
}
