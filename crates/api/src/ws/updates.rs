//! Messages to clients.

use std::collections::BTreeMap;

use fieldline_core::ports::MAX_ALARM_ENTITIES;
use fieldline_model::EntityId;
use fieldline_model::page::PageData;
use fieldline_model::query::{EntityData, LatestValues, TsValue};
use rustc_hash::FxHashMap;
use serde::Serialize;
use serde_json::{Value, json};

use crate::alarm_data::AlarmData;

/// Internal error.
pub(super) const INTERNAL: u16 = 1;
/// The command is invalid.
pub(super) const BAD_REQUEST: u16 = 2;
/// The caller lacks permission.
pub(super) const UNAUTHORIZED: u16 = 3;
/// More updates than the rate limit of the tenant profile.
pub(super) const TOO_MANY: u16 = 34;

/// Longest value, bytes, remembered to avoid a duplicate; a longer one is sent twice if it is stored while a command
/// starts.
pub(super) const MAX_REMEMBERED: usize = 256;

/// Error of a command.
pub(super) fn error(command: i64, code: u16, message: &str) -> String {
    json!({
        "cmdId": command, "subscriptionId": command, "errorCode": code, "errorMsg": message, "data": null,
    })
    .to_string()
}

/// Values of one entity.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct SubscriptionUpdate {
    subscription_id: i64,
    error_code: u16,
    error_msg: Option<String>,
    data: BTreeMap<String, Vec<(i64, String)>>,
    latest_values: BTreeMap<String, i64>,
}

impl SubscriptionUpdate {
    pub(super) fn new(command: i64) -> Self {
        Self {
            subscription_id: command,
            ..Self::default()
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.data.is_empty()
    }

    pub(super) fn add(&mut self, name: &str, ts: i64, value: String) {
        self.data.entry(name.to_owned()).or_default().push((ts, value));
        let latest = self.latest_values.entry(name.to_owned()).or_insert(ts);
        *latest = (*latest).max(ts);
    }

    /// Returns the newest timestamp of each series.
    pub(super) fn times(&self) -> FxHashMap<String, i64> {
        self.latest_values
            .iter()
            .map(|(name, ts)| (name.clone(), *ts))
            .collect()
    }

    /// Returns the newest value of each series, without long values.
    pub(super) fn newest(&self) -> FxHashMap<String, (i64, String)> {
        let newest = |(name, points): (&String, &Vec<(i64, String)>)| {
            let newest = points.iter().max_by_key(|(ts, _)| *ts);
            let newest = newest.filter(|(_, text)| text.len() <= MAX_REMEMBERED)?;
            Some((name.clone(), newest.clone()))
        };
        self.data.iter().filter_map(newest).collect()
    }

    pub(super) fn text(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }
}

/// Changes of an entity.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct EntityUpdate {
    pub(super) entity_id: EntityId,
    pub(super) latest: Option<LatestValues>,
    pub(super) timeseries: Option<BTreeMap<String, Vec<TsValue>>>,
    pub(super) agg_latest: Option<BTreeMap<i64, Value>>,
}

/// A page of rows or changes of some, which may have megabytes: written as text at once, and not first as a tree of values.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct RowsUpdate<P, C> {
    cmd_id: i64,
    error_code: u16,
    error_msg: Option<String>,
    data: Option<P>,
    update: Option<C>,
    allowed_entities: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    total_entities: Option<u64>,
    cmd_update_type: &'static str,
}

impl<P: Serialize, C: Serialize> RowsUpdate<P, C> {
    fn text(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }
}

fn entities(
    command: i64,
    page: Option<&PageData<EntityData>>,
    changes: Option<&[EntityUpdate]>,
    allowed: usize,
) -> String {
    let update = RowsUpdate {
        cmd_id: command,
        error_code: 0,
        error_msg: None,
        data: page,
        update: changes,
        allowed_entities: allowed,
        total_entities: None,
        cmd_update_type: "ENTITY_DATA",
    };
    update.text()
}

/// The first page of entities.
pub(super) fn entity_page(command: i64, page: &PageData<EntityData>, allowed: usize) -> String {
    entities(command, Some(page), None, allowed)
}

/// Changes of entities.
pub(super) fn entity_changes(command: i64, changes: &[EntityUpdate], allowed: usize) -> String {
    entities(command, None, Some(changes), allowed)
}

/// Number of entities.
pub(super) fn entity_count(command: i64, count: u64) -> String {
    json!({ "cmdId": command, "errorCode": 0, "errorMsg": null, "count": count, "cmdUpdateType": "COUNT_DATA" }).to_string()
}

/// Alarms: a page, or its changed alarms.
pub(super) fn alarms(command: i64, page: &PageData<AlarmData>, changes: Option<&[&AlarmData]>) -> String {
    let update = RowsUpdate {
        cmd_id: command,
        error_code: 0,
        error_msg: None,
        data: Some(page).filter(|_| changes.is_none()),
        update: changes,
        allowed_entities: MAX_ALARM_ENTITIES,
        total_entities: Some(page.total_elements),
        cmd_update_type: "ALARM_DATA",
    };
    update.text()
}

/// Number of alarms.
pub(super) fn alarm_count(command: i64, count: u64) -> String {
    json!({ "cmdId": command, "errorCode": 0, "errorMsg": null, "count": count, "cmdUpdateType": "ALARM_COUNT_DATA" })
        .to_string()
}

/// Whether there are active alarms.
pub(super) fn alarm_status(command: i64, active: bool) -> String {
    json!({ "cmdId": command, "errorCode": 0, "errorMsg": null, "active": active, "cmdUpdateType": "ALARM_STATUS" })
        .to_string()
}

/// Unread notifications of the user: always none, because nothing creates notifications.
pub(super) fn no_notifications(command: i64) -> String {
    json!({
        "cmdId": command, "errorCode": 0, "errorMsg": null, "notifications": [], "update": null,
        "totalUnreadCount": 0, "sequenceNumber": 1, "cmdUpdateType": "NOTIFICATIONS",
    })
    .to_string()
}

/// Number of unread notifications: always 0.
pub(super) fn no_notifications_count(command: i64) -> String {
    json!({
        "cmdId": command, "errorCode": 0, "errorMsg": null, "totalUnreadCount": 0, "sequenceNumber": 1,
        "cmdUpdateType": "NOTIFICATIONS_COUNT",
    })
    .to_string()
}
