//! What clients send.

use fieldline_model::EntityId;
use fieldline_model::query::{EntityCountQuery, EntityDataQuery, EntityKey};
use serde::{Deserialize, Deserializer};

use crate::alarm_data::{AlarmCountQuery, AlarmDataQuery};

/// Reads `null` as the default.
fn or_default<'de, D: Deserializer<'de>, T: Default + Deserialize<'de>>(from: D) -> Result<T, D::Error> {
    Option::deserialize(from).map(Option::unwrap_or_default)
}

/// Proof of who is there.
#[derive(Deserialize)]
pub(super) struct AuthCommand {
    /// An access token.
    #[serde(default, deserialize_with = "or_default")]
    pub(super) token: String,
}

/// A message to the general endpoint.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Wrapper {
    #[serde(default)]
    pub(super) auth_cmd: Option<AuthCommand>,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) cmds: Vec<Command>,
}

/// A message to the older telemetry endpoint.
#[derive(Deserialize)]
#[serde(default, rename_all = "camelCase")]
#[derive(Default)]
pub(super) struct TelemetryWrapper {
    #[serde(deserialize_with = "or_default")]
    attr_sub_cmds: Vec<Watch>,
    #[serde(deserialize_with = "or_default")]
    ts_sub_cmds: Vec<Watch>,
    #[serde(deserialize_with = "or_default")]
    history_cmds: Vec<Watch>,
    #[serde(deserialize_with = "or_default")]
    entity_data_cmds: Vec<EntityDataCommand>,
    #[serde(deserialize_with = "or_default")]
    entity_data_unsubscribe_cmds: Vec<Unsubscribe>,
    #[serde(deserialize_with = "or_default")]
    alarm_data_cmds: Vec<AlarmDataCommand>,
    #[serde(deserialize_with = "or_default")]
    alarm_data_unsubscribe_cmds: Vec<Unsubscribe>,
    #[serde(deserialize_with = "or_default")]
    entity_count_cmds: Vec<EntityCountCommand>,
    #[serde(deserialize_with = "or_default")]
    entity_count_unsubscribe_cmds: Vec<Unsubscribe>,
    #[serde(deserialize_with = "or_default")]
    alarm_count_cmds: Vec<AlarmCountCommand>,
    #[serde(deserialize_with = "or_default")]
    alarm_count_unsubscribe_cmds: Vec<Unsubscribe>,
    #[serde(deserialize_with = "or_default")]
    alarm_status_cmds: Vec<AlarmStatusCommand>,
    #[serde(deserialize_with = "or_default")]
    alarm_status_unsubscribe_cmds: Vec<Unsubscribe>,
}

impl TelemetryWrapper {
    /// The same commands as the general endpoint has them.
    pub(super) fn into_commands(self) -> Vec<Command> {
        let mut all: Vec<Command> = Vec::new();
        all.extend(self.ts_sub_cmds.into_iter().map(Command::Timeseries));
        all.extend(self.attr_sub_cmds.into_iter().map(Command::Attributes));
        all.extend(self.history_cmds.into_iter().map(Command::TimeseriesHistory));
        all.extend(
            self.entity_data_cmds
                .into_iter()
                .map(Box::new)
                .map(Command::EntityData),
        );
        all.extend(
            self.alarm_data_cmds
                .into_iter()
                .map(Box::new)
                .map(Command::AlarmData),
        );
        all.extend(self.entity_count_cmds.into_iter().map(Command::EntityCount));
        all.extend(self.alarm_count_cmds.into_iter().map(Command::AlarmCount));
        all.extend(self.alarm_status_cmds.into_iter().map(Command::AlarmStatus));
        let ended = self
            .entity_data_unsubscribe_cmds
            .into_iter()
            .chain(self.alarm_data_unsubscribe_cmds)
            .chain(self.entity_count_unsubscribe_cmds)
            .chain(self.alarm_count_unsubscribe_cmds)
            .chain(self.alarm_status_unsubscribe_cmds);
        all.extend(ended.map(Command::EntityDataUnsubscribe));
        all
    }
}

/// A command.
#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "SCREAMING_SNAKE_CASE")]
pub(super) enum Command {
    Attributes(Watch),
    Timeseries(Watch),
    TimeseriesHistory(Watch),
    EntityData(Box<EntityDataCommand>),
    EntityCount(EntityCountCommand),
    AlarmData(Box<AlarmDataCommand>),
    AlarmCount(AlarmCountCommand),
    AlarmStatus(AlarmStatusCommand),
    EntityDataUnsubscribe(Unsubscribe),
    EntityCountUnsubscribe(Unsubscribe),
    AlarmDataUnsubscribe(Unsubscribe),
    AlarmCountUnsubscribe(Unsubscribe),
    AlarmStatusUnsubscribe(Unsubscribe),
}

impl Command {
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
            Self::EntityDataUnsubscribe(ended)
            | Self::EntityCountUnsubscribe(ended)
            | Self::AlarmDataUnsubscribe(ended)
            | Self::AlarmCountUnsubscribe(ended)
            | Self::AlarmStatusUnsubscribe(ended) => ended.cmd_id,
        }
    }
}

/// Values of one entity.
#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Watch {
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

impl Watch {
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

/// Ends a command.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Unsubscribe {
    pub(super) cmd_id: i64,
}

/// Latest values to be followed.
#[derive(Deserialize, Clone)]
pub(super) struct LatestCommand {
    #[serde(default, deserialize_with = "or_default")]
    pub(super) keys: Vec<EntityKey>,
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

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct EntityCountCommand {
    pub(super) cmd_id: i64,
    #[serde(default)]
    pub(super) query: Option<EntityCountQuery>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct AlarmDataCommand {
    pub(super) cmd_id: i64,
    #[serde(default)]
    pub(super) query: Option<AlarmDataQuery>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct AlarmCountCommand {
    pub(super) cmd_id: i64,
    #[serde(default)]
    pub(super) query: Option<AlarmCountQuery>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct AlarmStatusCommand {
    pub(super) cmd_id: i64,
    #[serde(default)]
    pub(super) originator_id: Option<EntityId>,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) type_list: Vec<String>,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) severity_list: Vec<fieldline_model::entity::AlarmSeverity>,
}
