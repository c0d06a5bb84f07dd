//! The options of a telemetry load, most of which ThingsBoard's performance tool has too.

use std::path::PathBuf;

use clap::builder::BoolishValueParser;
use clap::{ArgAction, Args, ValueEnum};

use super::LimitComparison;
use crate::payload::PayloadKind;

/// How ThingsBoard's tool finds the number of a load generator in its name, unless it is told otherwise.
pub(crate) const INSTANCE_REGEX: &str = "([0-9]+)$";

/// Which server, and who logs in.
#[derive(Debug, Clone, Args)]
pub(crate) struct TargetArgs {
    /// Address of the REST API.
    #[arg(
        long,
        env = "REST_URL",
        value_name = "URL",
        default_value = "http://localhost:8080"
    )]
    pub(crate) rest_url: String,
    /// Tenant administrator who makes the devices.
    #[arg(
        long,
        env = "REST_USERNAME",
        value_name = "EMAIL",
        default_value = "tenant@thingsboard.org"
    )]
    pub(crate) username: String,
    /// Password of the tenant administrator.
    #[arg(
        long,
        env = "REST_PASSWORD",
        value_name = "TEXT",
        hide_env_values = true,
        default_value = "tenant"
    )]
    pub(crate) password: String,
    /// REST requests at a time.
    #[arg(long, env = "REST_POOL_SIZE", value_name = "NUMBER", default_value_t = 8)]
    pub(crate) rest_pool_size: usize,
    /// Host of the MQTT server.
    #[arg(long, env = "MQTT_HOST", value_name = "HOST", default_value = "localhost")]
    pub(crate) mqtt_host: String,
    /// Port of the MQTT server.
    #[arg(long, env = "MQTT_PORT", value_name = "PORT", default_value_t = 1883)]
    pub(crate) mqtt_port: u16,
    /// Connects with TLS.
    #[arg(long, env = "MQTT_SSL_ENABLED", value_name = "BOOL", default_value_t = false,
        num_args = 0..=1, default_missing_value = "true", action = ArgAction::Set, value_parser = BoolishValueParser::new())]
    pub(crate) mqtt_tls: bool,
    /// PEM file of the certificates that the MQTT server's has to come from; otherwise those that the system trusts.
    #[arg(long, env = "MQTT_SSL_KEY_STORE", value_name = "FILE")]
    pub(crate) mqtt_ca: Option<PathBuf>,
    /// Starts a server of its own on a temporary directory instead.
    #[arg(long)]
    pub(crate) own_server: bool,
    /// Process of the server, where it cannot be found by its port.
    #[arg(long, value_name = "PID")]
    pub(crate) server_pid: Option<u32>,
}

/// Which devices.
#[derive(Debug, Clone, Args)]
pub(crate) struct DeviceArgs {
    /// Number of the first device; its name and token are `DW` and eight digits.
    #[arg(long, env = "DEVICE_START_IDX", value_name = "NUMBER", default_value_t = 0)]
    pub(crate) device_start: u32,
    /// Number after the last device.
    #[arg(long, env = "DEVICE_END_IDX", value_name = "NUMBER", default_value_t = 1_000)]
    pub(crate) device_end: u32,
    /// Devices of each of several load generators, which `--instance` tells apart.
    #[arg(long, env = "DEVICE_COUNT", value_name = "NUMBER", default_value_t = 1_000)]
    pub(crate) device_count: u32,
    /// Takes the devices by `--instance` and `--device-count`.
    #[arg(long, env = "USE_INSTANCE_IDX", value_name = "BOOL", default_value_t = false,
        num_args = 0..=1, default_missing_value = "true", action = ArgAction::Set, value_parser = BoolishValueParser::new())]
    pub(crate) use_instance: bool,
    /// Number of this load generator among several, from 0.
    #[arg(long, env = "INSTANCE_IDX", value_name = "NUMBER", default_value_t = 0)]
    pub(crate) instance: u32,
    /// Takes the number of this load generator from the digits that `INSTANCE_IDX_REGEX_SOURCE`, usually a host name, ends with.
    #[arg(long, env = "USE_INSTANCE_IDX_REGEX", value_name = "BOOL", default_value_t = false,
        num_args = 0..=1, default_missing_value = "true", action = ArgAction::Set, value_parser = BoolishValueParser::new())]
    pub(crate) instance_from_name: bool,
    /// The name whose last digits number this load generator.
    #[arg(
        long,
        env = "INSTANCE_IDX_REGEX_SOURCE",
        value_name = "TEXT",
        default_value = ""
    )]
    pub(crate) instance_name: String,
    /// Only the tool's own expression is supported: the digits that the name ends with.
    #[arg(long, env = "INSTANCE_IDX_REGEX", hide = true, default_value = INSTANCE_REGEX)]
    pub(crate) instance_regex: String,
    /// Name of the device profile, which is made where there is none; otherwise one that suits the payload.
    #[arg(long, env = "DEVICE_PROFILE", value_name = "NAME")]
    pub(crate) device_profile: Option<String>,
    /// Only `DEFAULT` is supported.
    #[arg(long, env = "DEVICE_NAME_FORMAT", hide = true, default_value = "DEFAULT")]
    pub(crate) name_format: String,
    /// Makes the devices that are not there yet.
    #[arg(long, env = "DEVICE_CREATE_ON_START", value_name = "BOOL", default_value_t = true,
        num_args = 0..=1, default_missing_value = "true", action = ArgAction::Set, value_parser = BoolishValueParser::new())]
    pub(crate) create: bool,
    /// Deletes the devices afterwards, and with them what they sent.
    #[arg(long, env = "DEVICE_DELETE_ON_COMPLETE", value_name = "BOOL", default_value_t = false,
        num_args = 0..=1, default_missing_value = "true", action = ArgAction::Set, value_parser = BoolishValueParser::new())]
    pub(crate) delete: bool,
}

/// How devices talk to the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum DeviceApi {
    /// A connection a device, kept.
    #[value(name = "MQTT")]
    Mqtt,
    /// Posts over `--users` connections.
    #[value(name = "HTTP")]
    Http,
}

/// What is sent, and when.
#[derive(Debug, Clone, Args)]
pub(crate) struct LoadArgs {
    /// Protocol of the devices.
    #[arg(
        long,
        env = "DEVICE_API",
        value_enum,
        ignore_case = true,
        default_value = "MQTT"
    )]
    pub(crate) device_api: DeviceApi,
    /// HTTP connections.
    #[arg(long, value_name = "NUMBER", default_value_t = 500)]
    pub(crate) users: usize,
    /// SMART_METER, SMART_TRACKER, INDUSTRIAL_PLC, RANDOM, ENERGY, KEYS:NUMBER or BYTES:NUMBER.
    #[arg(
        long,
        env = "TEST_PAYLOAD_TYPE",
        value_name = "KIND",
        default_value = "SMART_METER"
    )]
    pub(crate) payload: PayloadKind,
    /// Data points of an INDUSTRIAL_PLC message, 60 if nothing is said.
    #[arg(long, env = "TEST_PAYLOAD_DATAPOINTS", value_name = "NUMBER")]
    pub(crate) payload_points: Option<usize>,
    /// Sends telemetry; otherwise attributes.
    #[arg(long, env = "TEST_TELEMETRY", value_name = "BOOL", default_value_t = true,
        num_args = 0..=1, default_missing_value = "true", action = ArgAction::Set, value_parser = BoolishValueParser::new())]
    pub(crate) telemetry: bool,
    /// MQTT quality of service.
    #[arg(long, value_name = "0|1|2", default_value_t = 1, value_parser = clap::value_parser!(u8).range(0..=2))]
    pub(crate) qos: u8,
    /// Messages a second in all, whatever the server does. Latency counts from the time a message should be sent.
    #[arg(
        long,
        env = "MESSAGES_PER_SECOND",
        value_name = "NUMBER",
        default_value_t = 1_000.0
    )]
    pub(crate) rate: f64,
    /// Instead of a rate, keeps that many messages of each connection in flight; with QoS 0, sends that many at once as soon
    /// as the system takes more. One over HTTP.
    #[arg(long, value_name = "NUMBER")]
    pub(crate) in_flight: Option<u16>,
    /// Seconds of load.
    #[arg(
        long,
        env = "DURATION_IN_SECONDS",
        value_name = "SECONDS",
        default_value_t = 300.0
    )]
    pub(crate) duration: f64,
    /// Messages a second that raise an alarm.
    #[arg(long, env = "ALARMS_PER_SECOND", value_name = "NUMBER", default_value_t = 1.0)]
    pub(crate) alarms: f64,
    /// Second of the load from which alarms are raised.
    #[arg(
        long,
        env = "ALARM_STORM_START_SECOND",
        value_name = "SECONDS",
        default_value_t = 0.0
    )]
    pub(crate) alarms_from: f64,
    /// Second of the load until which alarms are raised.
    #[arg(
        long,
        env = "ALARM_STORM_END_SECOND",
        value_name = "SECONDS",
        default_value_t = 999_999.0
    )]
    pub(crate) alarms_until: f64,
    /// Lets the devices send in the order of their numbers.
    #[arg(long, env = "TEST_SEQUENTIAL", value_name = "BOOL", default_value_t = false,
        num_args = 0..=1, default_missing_value = "true", action = ArgAction::Set, value_parser = BoolishValueParser::new())]
    pub(crate) sequential: bool,
    /// Start of all random choices, for the same order in each run.
    #[arg(long, env = "SEED", value_name = "NUMBER", default_value_t = 0)]
    pub(crate) seed: u64,
    /// Lets each device send one message before the load.
    #[arg(long, env = "WARMUP_ENABLED", value_name = "BOOL", default_value_t = true,
        num_args = 0..=1, default_missing_value = "true", action = ArgAction::Set, value_parser = BoolishValueParser::new())]
    pub(crate) warm_up: bool,
    /// Devices that warm up, and connections that are opened, at a time.
    #[arg(long, env = "WARMUP_PACK_SIZE", value_name = "NUMBER", default_value_t = 100)]
    pub(crate) warm_up_pack: usize,
    /// Sends at all; otherwise only makes (or deletes) the devices.
    #[arg(long, env = "TEST_ENABLED", value_name = "BOOL", default_value_t = true,
        num_args = 0..=1, default_missing_value = "true", action = ArgAction::Set, value_parser = BoolishValueParser::new())]
    pub(crate) enabled: bool,
}

/// What is measured and written down.
#[derive(Debug, Clone, Args)]
pub(crate) struct ReportArgs {
    /// Checks through the API that every acknowledged message is stored.
    #[arg(long, value_name = "BOOL", default_value_t = true,
        num_args = 0..=1, default_missing_value = "true", action = ArgAction::Set, value_parser = BoolishValueParser::new())]
    pub(crate) verify: bool,
    /// How long the server may take to store what it has acknowledged, in seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 120.0)]
    pub(crate) patience: f64,
    /// How often a second the time from receipt to queryable is measured; 0 for not at all.
    #[arg(long, value_name = "NUMBER", default_value_t = 5.0)]
    pub(crate) probes: f64,
    /// Puts the same load on a limit server before and after, for five seconds at most. For HTTP, either is a bare handler that appends
    /// to the journal.
    #[arg(long, value_enum, default_value = "none")]
    pub(crate) limit: LimitComparison,
    /// Writes everything measured to a file.
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// Writes a page with plots to a file.
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
    /// Prints no progress.
    #[arg(long)]
    pub(crate) quiet: bool,
}

/// Variables of ThingsBoard's tool that ask for something else than this tool does.
#[derive(Debug, Clone, Args)]
pub(crate) struct ForeignArgs {
    /// Only `device` is supported.
    #[arg(long, env = "TEST_API", hide = true, default_value = "device")]
    pub(crate) test_api: String,
    /// Not supported.
    #[arg(long, env = "UPDATE_ROOT_RULE_CHAIN", hide = true, default_value_t = false,
        action = ArgAction::Set, value_parser = BoolishValueParser::new())]
    pub(crate) update_root_rule_chain: bool,
    /// Not supported.
    #[arg(long, env = "REVERT_ROOT_RULE_CHAIN", hide = true, default_value_t = false,
        action = ArgAction::Set, value_parser = BoolishValueParser::new())]
    pub(crate) revert_root_rule_chain: bool,
}

/// Options of a telemetry load.
#[derive(Debug, Clone, Args)]
pub struct TelemetryArgs {
    #[command(flatten)]
    pub(crate) target: TargetArgs,
    #[command(flatten)]
    pub(crate) devices: DeviceArgs,
    #[command(flatten)]
    pub(crate) load: LoadArgs,
    #[command(flatten)]
    pub(crate) report: ReportArgs,
    #[command(flatten)]
    pub(crate) foreign: ForeignArgs,
    /// Title of the report.
    #[arg(long, value_name = "TEXT", default_value = "telemetry")]
    pub(crate) title: String,
}
