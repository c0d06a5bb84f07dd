//! `fieldline rules`: tries out rule chains on a running platform, over its REST API.

mod table;
mod times;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, Subcommand};
use fieldline_loadgen::error::LoadError;
use fieldline_loadgen::rest::RestClient;
use fieldline_model::replay::ReplayReport;
use serde_json::{Map, Value, json};
use uuid::Uuid;

use crate::platform_call::{PlatformArgs, print_answer};

/// Time the server needs besides the replay itself, to look up, compare and answer.
const OVERHEAD: Duration = Duration::from_secs(120);
const PAGE: &str = "1000";

/// Commands about rule chains.
#[derive(Subcommand)]
pub(crate) enum RulesCommand {
    /// Replays stored telemetry through a rule chain, saved or as a draft, and shows what it would have done. Nothing
    /// is stored, and nothing leaves the platform.
    Replay(Box<ReplayArgs>),
}

/// Options of `rules replay`.
#[derive(Args)]
pub(crate) struct ReplayArgs {
    #[command(flatten)]
    platform: PlatformArgs,
    /// The rule chain, by name or id.
    #[arg(long, value_name = "NAME|ID")]
    chain: String,
    /// Start of the period: milliseconds since 1970, RFC 3339, a date in UTC, or how long ago, such as 7d, 12h, 30m.
    #[arg(long, value_name = "TIME")]
    from: String,
    /// End of the period, exclusive; now by default.
    #[arg(long, value_name = "TIME", default_value = "now")]
    to: String,
    /// A device; can be given several times. All devices of the tenant if neither this nor a profile is given.
    #[arg(long = "device", value_name = "NAME|ID", conflicts_with = "profile")]
    devices: Vec<String>,
    /// All devices of a profile.
    #[arg(long, value_name = "NAME|ID")]
    profile: Option<String>,
    /// A telemetry key that devices sent; can be given several times. All keys by default.
    #[arg(long = "key", value_name = "NAME")]
    keys: Vec<String>,
    /// A file with nodes and connections to use instead of the saved ones: the metadata of a chain, or an exported
    /// chain.
    #[arg(long, value_name = "FILE")]
    draft: Option<PathBuf>,
    /// A file with alarm rules to use instead of those of the devices' profiles: `profileData.alarms`, or an exported
    /// device profile.
    #[arg(long, value_name = "FILE")]
    alarm_rules: Option<PathBuf>,
    /// A file with calculated fields, alarm rules among them, that are added or replace those with the same id: a field
    /// or a list of fields, as the REST API accepts them.
    #[arg(long, value_name = "FILE")]
    calculated_fields: Option<PathBuf>,
    /// Most messages to replay.
    #[arg(long, value_name = "NUMBER")]
    max_messages: Option<u32>,
    /// Most devices to replay.
    #[arg(long, value_name = "NUMBER")]
    max_devices: Option<u32>,
    /// Most seconds the replay may take.
    #[arg(long, value_name = "SECONDS", default_value_t = 30, value_parser = clap::value_parser!(u32).range(1..=300))]
    max_time: u32,
    /// Prints the server's response unchanged.
    #[arg(long)]
    json: bool,
}

/// Why the replay failed.
#[derive(Debug, thiserror::Error)]
enum RulesError {
    #[error("{0}")]
    Usage(String),
    #[error(transparent)]
    Server(#[from] LoadError),
    #[error("the answer of the server is not what it should be: {0}")]
    Answer(String),
}

/// Runs a command of `rules`.
pub(crate) fn run(command: &RulesCommand) -> ExitCode {
    let RulesCommand::Replay(args) = command;
    print_answer("rules", replay(args), |error| {
        matches!(error, RulesError::Usage(_))
    })
}

fn replay(args: &ReplayArgs) -> Result<String, RulesError> {
    let now = chrono::Utc::now().timestamp_millis();
    let time = |name: &str, text: &str| {
        times::parse(text, now).ok_or_else(|| RulesError::Usage(format!("--{name}: `{text}` is no time")))
    };
    let mut request = json!({
        "startTs": time("from", &args.from)?,
        "endTs": time("to", &args.to)?,
        "keys": args.keys,
        "limits": {
            "messages": args.max_messages,
            "devices": args.max_devices,
            "timeMs": args.max_time.saturating_mul(1000),
        },
    });
    if let Some(path) = &args.draft {
        request["metadata"] = draft_of(read(path)?);
    }
    if let Some(path) = &args.alarm_rules {
        request["alarmRules"] = alarms_of(read(path)?);
    }
    if let Some(path) = &args.calculated_fields {
        request["calculatedFields"] = match read(path)? {
            Value::Array(fields) => Value::Array(fields),
            field => json!([field]),
        };
    }
    let patience = OVERHEAD + Duration::from_secs(args.max_time.into());
    let client = RestClient::with_timeout(args.platform.target(), patience)?;
    let chain = find(&client, "/api/ruleChains", "rule chain", &args.chain)?;
    if let Some(profile) = &args.profile {
        let id = find(&client, "/api/deviceProfiles", "device profile", profile)?;
        request["deviceProfileId"] = json!({"entityType": "DEVICE_PROFILE", "id": id});
    }
    let devices: Result<Vec<Uuid>, RulesError> = args
        .devices
        .iter()
        .map(|device| find_device(&client, device))
        .collect();
    request["deviceIds"] = json!(devices?);
    let answer = client.post(&format!("/api/ruleChain/{chain}/replay"), &[], &request)?;
    if args.json {
        let text =
            serde_json::to_string_pretty(&answer).map_err(|error| RulesError::Answer(error.to_string()))?;
        return Ok(text + "\n");
    }
    let report: ReplayReport =
        serde_json::from_value(answer).map_err(|error| RulesError::Answer(error.to_string()))?;
    Ok(table::report(&report))
}

fn read(path: &Path) -> Result<Value, RulesError> {
    let wrong = |error: String| RulesError::Usage(format!("{}: {error}", path.display()));
    let bytes = fs::read(path).map_err(|error| wrong(error.to_string()))?;
    serde_json::from_slice(&bytes).map_err(|error| wrong(error.to_string()))
}

/// Returns the metadata of a chain; an export has it beside the chain.
fn draft_of(file: Value) -> Value {
    match file {
        Value::Object(mut export) if export.contains_key("metadata") => {
            export.remove("metadata").unwrap_or_default()
        }
        other => other,
    }
}

/// Returns the alarm rules of a profile.
fn alarms_of(file: Value) -> Value {
    match file {
        Value::Object(mut profile) => match profile.remove("profileData") {
            Some(Value::Object(mut data)) => data.remove("alarms").unwrap_or_else(|| json!([])),
            _ => profile.remove("alarms").unwrap_or(Value::Object(profile)),
        },
        other => other,
    }
}

fn id_of(entity: &Value) -> Option<Uuid> {
    entity.pointer("/id/id")?.as_str()?.parse().ok()
}

/// Returns the id of the entity with that name, from a list that supports text search.
fn find(client: &RestClient, path: &str, what: &str, name: &str) -> Result<Uuid, RulesError> {
    if let Ok(id) = name.parse() {
        return Ok(id);
    }
    let page = client.get(path, &[("pageSize", PAGE), ("page", "0"), ("textSearch", name)])?;
    let found: Vec<&Map<String, Value>> = page["data"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_object)
        .filter(|entity| entity.get("name").and_then(Value::as_str) == Some(name))
        .collect();
    match found.as_slice() {
        [one] => id_of(&Value::Object((*one).clone()))
            .ok_or_else(|| RulesError::Answer(format!("the {what} has no id"))),
        [] => Err(RulesError::Usage(format!("there is no {what} `{name}`"))),
        several => {
            let count = several.len();
            Err(RulesError::Usage(format!(
                "there are {count} of the name `{name}`: give the id of the {what}"
            )))
        }
    }
}

fn find_device(client: &RestClient, name: &str) -> Result<Uuid, RulesError> {
    if let Ok(id) = name.parse() {
        return Ok(id);
    }
    let device = client.get_optional("/api/tenant/devices", &[("deviceName", name)])?;
    let device = device.ok_or_else(|| RulesError::Usage(format!("there is no device `{name}`")))?;
    id_of(&device).ok_or_else(|| RulesError::Answer("the device has no id".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drafts_are_taken_from_exports() {
        let metadata = json!({"firstNodeIndex": 0, "nodes": []});
        assert_eq!(draft_of(metadata.clone()), metadata);
        assert_eq!(draft_of(json!({"ruleChain": {}, "metadata": metadata})), metadata);
        let alarms = json!([{"id": "a"}]);
        assert_eq!(alarms_of(alarms.clone()), alarms);
        assert_eq!(
            alarms_of(json!({"name": "p", "profileData": {"alarms": alarms}})),
            alarms
        );
        assert_eq!(alarms_of(json!({"alarms": alarms})), alarms);
    }
}
