//! Replays: stored telemetry that goes through a rule chain once more, to see what the chain would do.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

use crate::entity::{AlarmSeverity, CalculatedField, RuleChainMetaData};
use crate::{AlarmId, DeviceProfileId, EntityId, RuleChainId, RuleNodeId};

/// Which telemetry is replayed, and through what. All devices of the tenant where none are chosen.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct ReplayRequest {
    /// First time included, milliseconds.
    pub start_ts: Option<i64>,
    /// First time no longer included, milliseconds.
    pub end_ts: Option<i64>,
    /// Ids of devices.
    pub device_ids: Vec<Uuid>,
    /// The same with their entity type, which is `DEVICE`.
    pub entities: Vec<EntityId>,
    /// All devices of this profile.
    pub device_profile_id: Option<DeviceProfileId>,
    /// Names of the series that devices sent; all that are stored where empty. Series that the chain itself has calculated are
    /// better left out.
    pub keys: Vec<String>,
    /// Nodes and connections in the place of those that are saved.
    pub metadata: Option<RuleChainMetaData>,
    /// Alarm rules in the place of those of the devices' profiles, as in `profileData.alarms`.
    pub alarm_rules: Option<Vec<Value>>,
    /// Calculated fields, alarm rules among them, in the place of those that are saved under the same id, or besides them.
    pub calculated_fields: Vec<CalculatedField>,
    /// Alarms whose times differ by no more than this count as the same, milliseconds.
    pub alarm_tolerance_ms: Option<i64>,
    /// How much is replayed and answered.
    pub limits: ReplayLimits,
}

/// How much is replayed and answered; each has a default and a maximum.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct ReplayLimits {
    /// Devices; more are an error. 100, at most 1,000.
    pub devices: Option<u32>,
    /// Messages; the replay ends after these. 100,000, at most 1,000,000.
    pub messages: Option<u32>,
    /// Milliseconds that it takes; the replay ends after these. 30,000, at most 300,000.
    pub time_ms: Option<u32>,
    /// Points in each of the answer's samples. 20, at most 1,000.
    pub samples: Option<u32>,
    /// Alarms in each of the answer's lists. 200, at most 10,000.
    pub alarms: Option<u32>,
}

/// What a chain would have done.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReplayReport {
    /// What was replayed.
    pub summary: ReplaySummary,
    /// What would have been stored.
    pub stored: ReplayStored,
    /// Which alarms would have been raised, updated and cleared.
    pub alarms: ReplayAlarms,
    /// What the nodes did: all of the chain, and those of other chains that messages came to.
    pub nodes: Vec<ReplayNode>,
    /// How that differs from what is stored.
    pub difference: ReplayDifference,
}

/// What was replayed.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReplaySummary {
    /// The chain.
    pub rule_chain_id: RuleChainId,
    /// Its name.
    pub rule_chain_name: String,
    /// Whether the nodes came with the request.
    pub draft: bool,
    /// First time included, milliseconds.
    pub start_ts: i64,
    /// First time no longer included, milliseconds; earlier than asked for where the replay was cut short.
    pub end_ts: i64,
    /// How many devices were chosen.
    pub devices: u64,
    /// How many series of theirs were read.
    pub series: u64,
    /// Messages that were made of history.
    pub messages: u64,
    /// Messages that the chain made of them and that went through it in their turn.
    pub follow_ups: u64,
    /// Follow-ups that were left out because one message led to too many.
    pub dropped_follow_ups: u64,
    /// Things that came due: delays, windows, durations of alarm rules.
    pub timers: u64,
    /// Messages that ended in a failure.
    pub failed: u64,
    /// The last of these failures.
    pub last_failure: Option<String>,
    /// How long it took, milliseconds.
    pub duration_ms: u64,
    /// Why the replay ended before its end: `messages`, `time` or `memory`.
    pub truncated_by: Option<String>,
    /// Changes of entities that were not made, by what they are.
    pub not_changed: BTreeMap<String, u64>,
}

/// What would have been stored.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReplayStored {
    /// Points of time series; of several at one time the last one counts.
    pub points: u64,
    /// Points by the names of their series.
    pub keys: BTreeMap<String, u64>,
    /// Writes of attributes by scope and name, `SERVER_SCOPE/name`.
    pub attributes: BTreeMap<String, u64>,
    /// Some of the points.
    pub sample: Vec<ReplayPoint>,
}

/// A point.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReplayPoint {
    /// Whose it is.
    pub entity: EntityId,
    /// Name of its series.
    pub key: String,
    /// Its time, milliseconds.
    pub ts: i64,
    /// What is stored; absent where nothing is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stored: Option<Value>,
    /// What the replay stores; absent where that is nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replayed: Option<Value>,
}

/// Which alarms would have been raised, updated and cleared.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReplayAlarms {
    /// How many were active when the replay began.
    pub active_at_start: u64,
    /// How many were raised.
    pub raised: u64,
    /// How often one was updated.
    pub updated: u64,
    /// How many were cleared.
    pub cleared: u64,
    /// Those that were touched, in the order of their beginnings.
    pub alarms: Vec<ReplayAlarm>,
}

/// An alarm, as the replay made it or as it is stored.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReplayAlarm {
    /// Its id; of one that the replay has raised, nothing is stored under it.
    pub id: AlarmId,
    /// Whom it is about.
    pub originator: EntityId,
    /// Name of the originator, where it is one of the chosen devices.
    pub originator_name: Option<String>,
    /// Its type.
    #[serde(rename = "type")]
    pub alarm_type: String,
    /// How bad it was in the end.
    pub severity: Option<AlarmSeverity>,
    /// When it began, milliseconds.
    pub start_ts: i64,
    /// When it was last raised, milliseconds.
    pub end_ts: i64,
    /// When it was created, milliseconds of the replayed time.
    pub raised_ts: i64,
    /// When it was cleared, milliseconds of the replayed time.
    pub cleared_ts: Option<i64>,
    /// Whether it was active before the replayed time.
    pub was_active: bool,
    /// How often it was updated.
    pub updates: u64,
    /// Its severities with the times since when it had them.
    pub severities: Vec<(i64, AlarmSeverity)>,
    /// Its details in the end.
    pub details: Option<Value>,
}

/// What a node did.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReplayNode {
    /// Its id; that of a node that was new in a draft means nothing elsewhere.
    pub id: RuleNodeId,
    /// Its chain.
    pub rule_chain_id: RuleChainId,
    /// Name of its chain.
    pub rule_chain_name: String,
    /// Its name.
    pub name: String,
    /// Its class.
    #[serde(rename = "type")]
    pub node_type: String,
    /// Whether it did what it does: nodes that reach out of the platform only pass messages on.
    pub executed: bool,
    /// Messages that came.
    pub input: u64,
    /// Messages that left, by label.
    pub output: BTreeMap<String, u64>,
    /// Messages that it failed with.
    pub failures: u64,
    /// The last failure.
    pub last_error: Option<String>,
    /// Time it took, microseconds.
    pub total_us: u64,
    /// Time a message, microseconds.
    pub mean_us: f64,
}

/// How a replay differs from what is stored.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReplayDifference {
    /// Points.
    pub points: PointDifference,
    /// Alarms.
    pub alarms: AlarmDifference,
}

/// How the points of a replay differ from those that are stored.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct PointDifference {
    /// Stored, and stored the same by the replay.
    pub same: u64,
    /// Stored, and not by the replay.
    pub only_stored: u64,
    /// Stored by the replay only.
    pub only_replayed: u64,
    /// Stored with another value by the replay.
    pub different: u64,
    /// Stored by the replay outside of the replayed time; not compared.
    pub outside: u64,
    /// The same by the names of the series.
    pub keys: BTreeMap<String, KeyDifference>,
    /// Some of the points that differ.
    pub sample: Vec<ReplayPoint>,
}

/// How the points of one name differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct KeyDifference {
    /// Stored, and stored the same by the replay.
    pub same: u64,
    /// Stored, and not by the replay.
    pub only_stored: u64,
    /// Stored by the replay only.
    pub only_replayed: u64,
    /// Stored with another value by the replay.
    pub different: u64,
}

/// How the alarms of a replay differ from those that are stored.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct AlarmDifference {
    /// How many are the same.
    pub same: u64,
    /// How many are stored and not raised by the replay.
    pub only_stored: u64,
    /// How many only the replay raises.
    pub only_replayed: u64,
    /// How many differ in severity or in when they are cleared.
    pub different: u64,
    /// Those that are stored and not raised by the replay.
    pub stored: Vec<ReplayAlarm>,
    /// Those that only the replay raises.
    pub replayed: Vec<ReplayAlarm>,
    /// Those that differ.
    pub changed: Vec<ChangedAlarm>,
    /// Whether there were more stored alarms in the replayed time than are compared.
    pub incomplete: bool,
}

/// An alarm that differs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ChangedAlarm {
    /// What differs: `severity`, `clearedTs`.
    pub fields: Vec<String>,
    /// As it is stored.
    pub stored: ReplayAlarm,
    /// As the replay made it.
    pub replayed: ReplayAlarm,
}
