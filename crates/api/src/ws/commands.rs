//! Messages from clients.

use fieldline_model::EntityId;
use fieldline_model::entity::null_as_default as or_default;
use fieldline_model::query::{EntityCountQuery, EntityDataQuery, EntityQueryKey};
use serde::Deserialize;
use uuid::Uuid;

use crate::alarm_data::{AlarmCountQuery, AlarmDataQuery};

/// Messages from clients. Any member may be absent or null, which is the same.
macro_rules! messages {
    ($($(#[$attribute:meta])* $name:ident { $($(#[$member_attribute:meta])* $member:ident: $type:ty,)* })*) => {$(
        $(#[$attribute])*
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        pub(super) struct $name {
            $($(#[$member_attribute])* #[serde(default, deserialize_with = "or_default")] pub(super) $member: $type,)*
        }
    )*};
}

messages! {
    /// Authentication of the client.
    AuthCommand {
        /// An access token.
        token: String,
        /// An API key; takes precedence over a token.
        api_key: String,
    }

    /// A message to the general endpoint.
    CommandWrapper {
        auth_cmd: Option<AuthCommand>,
        cmds: Vec<WsCommand>,
    }

    /// A message to the older telemetry endpoint.
    TelemetryWrapper {
        attr_sub_cmds: Vec<SubscriptionCommand>,
        ts_sub_cmds: Vec<SubscriptionCommand>,
        history_cmds: Vec<SubscriptionCommand>,
        entity_data_cmds: Vec<EntityDataCommand>,
        entity_data_unsubscribe_cmds: Vec<IdOnlyCommand>,
        alarm_data_cmds: Vec<QueryCommand<AlarmDataQuery>>,
        alarm_data_unsubscribe_cmds: Vec<IdOnlyCommand>,
        entity_count_cmds: Vec<QueryCommand<EntityCountQuery>>,
        entity_count_unsubscribe_cmds: Vec<IdOnlyCommand>,
        alarm_count_cmds: Vec<QueryCommand<AlarmCountQuery>>,
        alarm_count_unsubscribe_cmds: Vec<IdOnlyCommand>,
        alarm_status_cmds: Vec<AlarmStatusCommand>,
        alarm_status_unsubscribe_cmds: Vec<IdOnlyCommand>,
    }

    /// A message to the older endpoint of notifications.
    NotificationWrapper {
        unread_count_sub_cmd: Option<IdOnlyCommand>,
        unread_sub_cmd: Option<IdOnlyCommand>,
        mark_as_read_cmd: Option<MarkAsRead>,
        mark_all_as_read_cmd: Option<IdOnlyCommand>,
        unsub_cmd: Option<IdOnlyCommand>,
    }

    /// Subscribes to values of one entity.
    SubscriptionCommand {
        cmd_id: i64,
        entity_type: String,
        entity_id: String,
        /// Comma-separated names; all if empty.
        keys: String,
        scope: String,
        unsubscribe: bool,
        start_ts: i64,
        end_ts: i64,
        time_window: i64,
        interval: i64,
        limit: i64,
        agg: Option<String>,
    }

    /// A command with an id only.
    IdOnlyCommand {
        cmd_id: i64,
    }

    /// Marks notifications as read.
    MarkAsRead {
        cmd_id: i64,
        #[allow(dead_code, reason = "part of the shape: ids that are none are refused")]
        notifications: Vec<Uuid>,
    }

    /// Latest values to subscribe to.
    #[derive(Clone)]
    LatestCommand {
        keys: Vec<EntityQueryKey>,
    }

    /// Points of series: in a past range, or from a time on.
    #[derive(Clone)]
    PointsCommand {
        keys: Vec<String>,
        start_ts: i64,
        end_ts: i64,
        time_window: i64,
        interval_type: Option<String>,
        interval: i64,
        time_zone_id: Option<String>,
        limit: i64,
        agg: Option<String>,
        fetch_latest_previous_point: bool,
    }

    /// Aggregated values of series: over a past range, or from a time on.
    #[derive(Clone)]
    AggregateCommand {
        keys: Vec<AggregationKey>,
        start_ts: i64,
        end_ts: i64,
        time_window: i64,
    }

    /// Entities, and the values of them to subscribe to.
    EntityDataCommand {
        cmd_id: i64,
        query: Option<EntityDataQuery>,
        latest_cmd: Option<LatestCommand>,
        ts_cmd: Option<PointsCommand>,
        history_cmd: Option<PointsCommand>,
        agg_history_cmd: Option<AggregateCommand>,
        agg_ts_cmd: Option<AggregateCommand>,
    }

    /// Subscribes to whether an entity has active alarms.
    AlarmStatusCommand {
        cmd_id: i64,
        originator_id: Option<EntityId>,
        type_list: Vec<String>,
        severity_list: Vec<fieldline_model::entity::AlarmSeverity>,
    }
}

impl TelemetryWrapper {
    /// Converts the message to the commands of the general endpoint.
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

impl NotificationWrapper {
    /// Converts the message to the commands of the general endpoint.
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

impl SubscriptionCommand {
    /// Returns the names; `None` for all.
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

/// An aggregated value of a series.
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

impl EntityDataCommand {
    pub(super) const fn asks_for_values(&self) -> bool {
        self.latest_cmd.is_some()
            || self.ts_cmd.is_some()
            || self.history_cmd.is_some()
            || self.agg_history_cmd.is_some()
            || self.agg_ts_cmd.is_some()
    }

    /// Names of the series whose aggregates the client continues with the values that arrive.
    pub(super) fn followed_aggregates(&self) -> Vec<String> {
        let of_window = self.agg_ts_cmd.iter().flat_map(|values| &values.keys);
        let mut names: Vec<String> = of_window.map(|key| key.key.clone()).collect();
        if let Some(points) = &self.ts_cmd
            && points.agg.as_deref().is_some_and(|agg| agg != "NONE")
        {
            names.extend(points.keys.iter().cloned());
        }
        names.sort_unstable();
        names.dedup();
        names
    }
}

/// A query that is evaluated repeatedly.
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
