//! What clients send.

use fieldline_model::EntityId;
use fieldline_model::entity::null_as_default as or_default;
use fieldline_model::query::{EntityCountQuery, EntityDataQuery, EntityQueryKey};
use serde::Deserialize;
use uuid::Uuid;

use crate::alarm_data::{AlarmCountQuery, AlarmDataQuery};

/// Proof of who is there.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct AuthCommand {
    /// An access token.
    #[serde(default, deserialize_with = "or_default")]
    pub(super) token: String,
    /// An API key, which counts where both are there.
    #[serde(default, deserialize_with = "or_default")]
    pub(super) api_key: String,
}

/// A message to the general endpoint.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct CommandWrapper {
    #[serde(default)]
    pub(super) auth_cmd: Option<AuthCommand>,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) cmds: Vec<WsCommand>,
}

/// A message to the older telemetry endpoint.
#[derive(Deserialize)]
#[serde(default, rename_all = "camelCase")]
#[derive(Default)]
pub(super) struct TelemetryWrapper {
    #[serde(deserialize_with = "or_default")]
    attr_sub_cmds: Vec<SubscriptionCommand>,
    #[serde(deserialize_with = "or_default")]
    ts_sub_cmds: Vec<SubscriptionCommand>,
    #[serde(deserialize_with = "or_default")]
    history_cmds: Vec<SubscriptionCommand>,
    #[serde(deserialize_with = "or_default")]
    entity_data_cmds: Vec<EntityDataCommand>,
    #[serde(deserialize_with = "or_default")]
    entity_data_unsubscribe_cmds: Vec<IdOnlyCommand>,
    #[serde(deserialize_with = "or_default")]
    alarm_data_cmds: Vec<QueryCommand<AlarmDataQuery>>,
    #[serde(deserialize_with = "or_default")]
    alarm_data_unsubscribe_cmds: Vec<IdOnlyCommand>,
    #[serde(deserialize_with = "or_default")]
    entity_count_cmds: Vec<QueryCommand<EntityCountQuery>>,
    #[serde(deserialize_with = "or_default")]
    entity_count_unsubscribe_cmds: Vec<IdOnlyCommand>,
    #[serde(deserialize_with = "or_default")]
    alarm_count_cmds: Vec<QueryCommand<AlarmCountQuery>>,
    #[serde(deserialize_with = "or_default")]
    alarm_count_unsubscribe_cmds: Vec<IdOnlyCommand>,
    #[serde(deserialize_with = "or_default")]
    alarm_status_cmds: Vec<AlarmStatusCommand>,
    #[serde(deserialize_with = "or_default")]
    alarm_status_unsubscribe_cmds: Vec<IdOnlyCommand>,
}

impl TelemetryWrapper {
    /// The same commands as the general endpoint has them.
    pub(super) fn into_commands(self) -> Vec<WsCommand> {
        let mut all: Vec<WsCommand> = Vec::new();
        all.extend(self.ts_sub_cmds.into_iter().map(WsCommand::Timeseries));
        all.extend(self.attr_sub_cmds.into_iter().map(WsCommand::Attributes));
        all.extend(self.history_cmds.into_iter().map(WsCommand::TimeseriesHistory));
        all.extend(
            self.entity_data_cmds
                .into_iter()
                .map(Box::new)
                .map(WsCommand::EntityData),
        );
        all.extend(
            self.alarm_data_cmds
                .into_iter()
                .map(Box::new)
                .map(WsCommand::AlarmData),
        );
        all.extend(self.entity_count_cmds.into_iter().map(WsCommand::EntityCount));
        all.extend(self.alarm_count_cmds.into_iter().map(WsCommand::AlarmCount));
        all.extend(self.alarm_status_cmds.into_iter().map(WsCommand::AlarmStatus));
        let ended = self
            .entity_data_unsubscribe_cmds
            .into_iter()
            .chain(self.alarm_data_unsubscribe_cmds)
            .chain(self.entity_count_unsubscribe_cmds)
            .chain(self.alarm_count_unsubscribe_cmds)
            .chain(self.alarm_status_unsubscribe_cmds);
        all.extend(ended.map(WsCommand::EntityDataUnsubscribe));
        all
    }
}

/// A message to the older endpoint of notifications.
#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct NotificationWrapper {
    unread_count_sub_cmd: Option<IdOnlyCommand>,
    unread_sub_cmd: Option<IdOnlyCommand>,
    mark_as_read_cmd: Option<MarkAsRead>,
    mark_all_as_read_cmd: Option<IdOnlyCommand>,
    unsub_cmd: Option<IdOnlyCommand>,
}

impl NotificationWrapper {
    /// The same commands as the general endpoint has them.
    pub(super) fn into_commands(self) -> Vec<WsCommand> {
        let all = [
            self.unread_count_sub_cmd.map(WsCommand::NotificationsCount),
            self.unread_sub_cmd.map(WsCommand::Notifications),
            self.mark_as_read_cmd.map(WsCommand::MarkNotificationsAsRead),
            self.mark_all_as_read_cmd
                .map(WsCommand::MarkAllNotificationsAsRead),
            self.unsub_cmd.map(WsCommand::NotificationsUnsubscribe),
        ];
        all.into_iter().flatten().collect()
    }
}

/// A command.
#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "SCREAMING_SNAKE_CASE")]
pub(super) enum WsCommand {
    Attributes(SubscriptionCommand),
    Timeseries(SubscriptionCommand),
    TimeseriesHistory(SubscriptionCommand),
    EntityData(Box<EntityDataCommand>),
    EntityCount(QueryCommand<EntityCountQuery>),
    AlarmData(Box<QueryCommand<AlarmDataQuery>>),
    AlarmCount(QueryCommand<AlarmCountQuery>),
    AlarmStatus(AlarmStatusCommand),
    Notifications(IdOnlyCommand),
    NotificationsCount(IdOnlyCommand),
    MarkNotificationsAsRead(MarkAsRead),
    MarkAllNotificationsAsRead(IdOnlyCommand),
    EntityDataUnsubscribe(IdOnlyCommand),
    EntityCountUnsubscribe(IdOnlyCommand),
    AlarmDataUnsubscribe(IdOnlyCommand),
    AlarmCountUnsubscribe(IdOnlyCommand),
    AlarmStatusUnsubscribe(IdOnlyCommand),
    NotificationsUnsubscribe(IdOnlyCommand),
}

impl WsCommand {
    pub(super) fn id(&self) -> i64 {
        match self {
            Self::Attributes(watch) | Self::Timeseries(watch) | Self::TimeseriesHistory(watch) => {
                watch.cmd_id
            }
            Self::EntityData(command) => command.cmd_id,
            Self::EntityCount(command) => command.cmd_id,
            Self::AlarmData(command) => command.cmd_id,
            Self::AlarmCount(command) => command.cmd_id,
            Self::AlarmStatus(command) => command.cmd_id,
            Self::MarkNotificationsAsRead(command) => command.cmd_id,
            Self::Notifications(command)
            | Self::NotificationsCount(command)
            | Self::MarkAllNotificationsAsRead(command)
            | Self::EntityDataUnsubscribe(command)
            | Self::EntityCountUnsubscribe(command)
            | Self::AlarmDataUnsubscribe(command)
            | Self::AlarmCountUnsubscribe(command)
            | Self::AlarmStatusUnsubscribe(command)
            | Self::NotificationsUnsubscribe(command) => command.cmd_id,
        }
    }
}

/// Values of one entity.
#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct SubscriptionCommand {
    #[serde(deserialize_with = "or_default")]
    pub(super) cmd_id: i64,
    #[serde(deserialize_with = "or_default")]
    pub(super) entity_type: String,
    #[serde(deserialize_with = "or_default")]
    pub(super) entity_id: String,
    /// Names with commas between them; all where empty.
    #[serde(deserialize_with = "or_default")]
    pub(super) keys: String,
    #[serde(deserialize_with = "or_default")]
    pub(super) scope: String,
    #[serde(deserialize_with = "or_default")]
    pub(super) unsubscribe: bool,
    #[serde(deserialize_with = "or_default")]
    pub(super) start_ts: i64,
    #[serde(deserialize_with = "or_default")]
    pub(super) end_ts: i64,
    #[serde(deserialize_with = "or_default")]
    pub(super) time_window: i64,
    #[serde(deserialize_with = "or_default")]
    pub(super) interval: i64,
    #[serde(deserialize_with = "or_default")]
    pub(super) limit: i64,
    pub(super) agg: Option<String>,
}

impl SubscriptionCommand {
    /// The names; `None` for all.
    pub(super) fn names(&self) -> Option<Vec<String>> {
        let mut names: Vec<String> = self
            .keys
            .split(',')
            .filter(|name| !name.is_empty())
            .map(str::to_owned)
            .collect();
        let mut seen = std::collections::HashSet::new();
        names.retain(|name| seen.insert(name.clone()));
        (!names.is_empty()).then_some(names)
    }
}

/// A command of which no more than its number counts.
#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct IdOnlyCommand {
    #[serde(deserialize_with = "or_default")]
    pub(super) cmd_id: i64,
}

/// Marks notifications as read.
#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct MarkAsRead {
    #[serde(deserialize_with = "or_default")]
    pub(super) cmd_id: i64,
    #[serde(deserialize_with = "or_default")]
    #[allow(dead_code, reason = "part of the shape: ids that are none are refused")]
    notifications: Vec<Uuid>,
}

/// Latest values to be followed.
#[derive(Deserialize, Clone)]
pub(super) struct LatestCommand {
    #[serde(default, deserialize_with = "or_default")]
    pub(super) keys: Vec<EntityQueryKey>,
}

/// Points of series: those of a time that is over, or from a time on.
#[derive(Deserialize, Clone, Default)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct PointsCommand {
    #[serde(deserialize_with = "or_default")]
    pub(super) keys: Vec<String>,
    #[serde(deserialize_with = "or_default")]
    pub(super) start_ts: i64,
    #[serde(deserialize_with = "or_default")]
    pub(super) end_ts: i64,
    #[serde(deserialize_with = "or_default")]
    pub(super) time_window: i64,
    pub(super) interval_type: Option<String>,
    #[serde(deserialize_with = "or_default")]
    pub(super) interval: i64,
    pub(super) time_zone_id: Option<String>,
    #[serde(deserialize_with = "or_default")]
    pub(super) limit: i64,
    pub(super) agg: Option<String>,
    #[serde(deserialize_with = "or_default")]
    pub(super) fetch_latest_previous_point: bool,
}

/// One value of a series over a time.
#[derive(Deserialize, Clone)]
#[serde(rename_all = "camelCase")]
pub(super) struct AggregationKey {
    pub(super) id: i64,
    pub(super) key: String,
    pub(super) agg: Option<String>,
    #[serde(default)]
    pub(super) previous_start_ts: Option<i64>,
    #[serde(default)]
    pub(super) previous_end_ts: Option<i64>,
    #[serde(default)]
    pub(super) previous_value_only: Option<bool>,
}

/// Values of series over a time that is over, or from a time on.
#[derive(Deserialize, Clone)]
#[serde(rename_all = "camelCase")]
pub(super) struct AggregateCommand {
    #[serde(default, deserialize_with = "or_default")]
    pub(super) keys: Vec<AggregationKey>,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) start_ts: i64,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) end_ts: i64,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) time_window: i64,
}

/// Entities and what is followed of them.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct EntityDataCommand {
    #[serde(default, deserialize_with = "or_default")]
    pub(super) cmd_id: i64,
    #[serde(default)]
    pub(super) query: Option<EntityDataQuery>,
    #[serde(default)]
    pub(super) latest_cmd: Option<LatestCommand>,
    #[serde(default)]
    pub(super) ts_cmd: Option<PointsCommand>,
    #[serde(default)]
    pub(super) history_cmd: Option<PointsCommand>,
    #[serde(default)]
    pub(super) agg_history_cmd: Option<AggregateCommand>,
    #[serde(default)]
    pub(super) agg_ts_cmd: Option<AggregateCommand>,
}

impl EntityDataCommand {
    pub(super) const fn asks_for_values(&self) -> bool {
        self.latest_cmd.is_some()
            || self.ts_cmd.is_some()
            || self.history_cmd.is_some()
            || self.agg_history_cmd.is_some()
            || self.agg_ts_cmd.is_some()
    }
}

/// A query that is evaluated again and again.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct QueryCommand<Q> {
    #[serde(default, deserialize_with = "or_default")]
    pub(super) cmd_id: i64,
    #[serde(default = "none")]
    pub(super) query: Option<Q>,
}

fn none<Q>() -> Option<Q> {
    None
}

/// Whether an entity has alarms.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct AlarmStatusCommand {
    #[serde(default, deserialize_with = "or_default")]
    pub(super) cmd_id: i64,
    #[serde(default)]
    pub(super) originator_id: Option<EntityId>,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) type_list: Vec<String>,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) severity_list: Vec<fieldline_model::entity::AlarmSeverity>,
}
