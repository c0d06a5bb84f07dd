//! The options of a telemetry load; ThingsBoard's performance tool has most of them as well.

use clap::builder::BoolishValueParser;
use clap::{ArgAction, Args, ValueEnum};

use super::{LimitComparison, MqttServerArgs, OutputArgs};
use crate::payload::PayloadKind;

/// The expression by which ThingsBoard's tool finds the number of a load generator in its name by default.
pub(crate) const INSTANCE_REGEX: &str = "([0-9]+)$";

/// The server, and the user who logs in.
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
    /// Tenant administrator who creates the devices.
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
    #[command(flatten)]
    pub(crate) mqtt: MqttServerArgs,
    /// Starts a server on a temporary directory, and loads that instead.
    #[arg(long)]
    pub(crate) own_server: bool,
}

/// The devices of a load.
#[derive(Debug, Clone, Args)]
pub(crate) struct DeviceArgs {
    /// Number of the first device; its name and token are `DW` and eight digits.
    #[arg(long, env = "DEVICE_START_IDX", value_name = "NUMBER", default_value_t = 0)]
    pub(crate) device_start: u32,
    /// Number after that of the last device.
    #[arg(long, env = "DEVICE_END_IDX", value_name = "NUMBER", default_value_t = 1_000)]
    pub(crate) device_end: u32,
    /// Devices per load generator, if several generators share the load by `--instance`.
    #[arg(long, env = "DEVICE_COUNT", value_name = "NUMBER", default_value_t = 1_000)]
    pub(crate) device_count: u32,
    /// Selects the devices by `--instance` and `--device-count`.
    #[arg(long, env = "USE_INSTANCE_IDX", value_name = "BOOL", default_value_t = false,
        num_args = 0..=1, default_missing_value = "true", action = ArgAction::Set, value_parser = BoolishValueParser::new())]
    pub(crate) use_instance: bool,
    /// Number of this load generator among several, from 0.
    #[arg(long, env = "INSTANCE_IDX", value_name = "NUMBER", default_value_t = 0)]
    pub(crate) instance: u32,
    /// Takes the number of this load generator from the digits at the end of `INSTANCE_IDX_REGEX_SOURCE`, usually a
    /// host name.
    #[arg(long, env = "USE_INSTANCE_IDX_REGEX", value_name = "BOOL", default_value_t = false,
        num_args = 0..=1, default_missing_value = "true", action = ArgAction::Set, value_parser = BoolishValueParser::new())]
    pub(crate) instance_from_name: bool,
    /// Name that ends with the number of this load generator.
    #[arg(
        long,
        env = "INSTANCE_IDX_REGEX_SOURCE",
        value_name = "TEXT",
        default_value = ""
    )]
    pub(crate) instance_name: String,
    /// Only the tool's default expression is supported: the digits at the end of the name.
    #[arg(long, env = "INSTANCE_IDX_REGEX", hide = true, default_value = INSTANCE_REGEX)]
    pub(crate) instance_regex: String,
    /// Name of the device profile, which is created if it does not exist; otherwise a profile that suits the payload.
    #[arg(long, env = "DEVICE_PROFILE", value_name = "NAME")]
    pub(crate) device_profile: Option<String>,
    /// Only `DEFAULT` is supported.
    #[arg(long, env = "DEVICE_NAME_FORMAT", hide = true, default_value = "DEFAULT")]
    pub(crate) name_format: String,
    /// Creates the devices that do not exist yet.
    #[arg(long, env = "DEVICE_CREATE_ON_START", value_name = "BOOL", default_value_t = true,
        num_args = 0..=1, default_missing_value = "true", action = ArgAction::Set, value_parser = BoolishValueParser::new())]
    pub(crate) create: bool,
    /// Deletes the devices and their data after the run.
    #[arg(long, env = "DEVICE_DELETE_ON_COMPLETE", value_name = "BOOL", default_value_t = false,
        num_args = 0..=1, default_missing_value = "true", action = ArgAction::Set, value_parser = BoolishValueParser::new())]
    pub(crate) delete: bool,
}

/// The protocol between devices and server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum DeviceApi {
    /// One lasting connection per device.
    #[value(name = "MQTT")]
    Mqtt,
    /// Posts over `--users` connections.
    #[value(name = "HTTP")]
    Http,
}

/// The messages of a load, and their pace.
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
    /// Number of HTTP connections.
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
    /// Data points of an INDUSTRIAL_PLC message; 60 by default.
    #[arg(long, env = "TEST_PAYLOAD_DATAPOINTS", value_name = "NUMBER")]
    pub(crate) payload_points: Option<usize>,
    /// Sends telemetry; otherwise attributes.
    #[arg(long, env = "TEST_TELEMETRY", value_name = "BOOL", default_value_t = true,
        num_args = 0..=1, default_missing_value = "true", action = ArgAction::Set, value_parser = BoolishValueParser::new())]
    pub(crate) telemetry: bool,
    /// MQTT quality of service.
    #[arg(long, value_name = "0|1|2", default_value_t = 1, value_parser = clap::value_parser!(u8).range(0..=2))]
    pub(crate) qos: u8,
    /// Messages a second in total, even if the server is slower. Latency counts from a message's scheduled time.
    #[arg(
        long,
        env = "MESSAGES_PER_SECOND",
        value_name = "NUMBER",
        default_value_t = 1_000.0
    )]
    pub(crate) rate: f64,
    /// Keeps that many messages of each connection in flight, instead of a rate; with QoS 0, sends that many at once as
    /// soon as the system accepts more. Must be 1 over HTTP.
    #[arg(long, value_name = "NUMBER")]
    pub(crate) in_flight: Option<u16>,
    /// Length of the load, seconds.
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
    /// Sends in the order of the device numbers, instead of a shuffled order.
    #[arg(long, env = "TEST_SEQUENTIAL", value_name = "BOOL", default_value_t = false,
        num_args = 0..=1, default_missing_value = "true", action = ArgAction::Set, value_parser = BoolishValueParser::new())]
    pub(crate) sequential: bool,
    /// Seed of all random choices; the same seed gives the same order in each run.
    #[arg(long, env = "SEED", value_name = "NUMBER", default_value_t = 0)]
    pub(crate) seed: u64,
    /// Sends one message from each device before the load.
    #[arg(long, env = "WARMUP_ENABLED", value_name = "BOOL", default_value_t = true,
        num_args = 0..=1, default_missing_value = "true", action = ArgAction::Set, value_parser = BoolishValueParser::new())]
    pub(crate) warm_up: bool,
    /// Number of devices that warm up at a time, and of connections opened at a time.
    #[arg(long, env = "WARMUP_PACK_SIZE", value_name = "NUMBER", default_value_t = 100)]
    pub(crate) warm_up_pack: usize,
    /// Runs the load; otherwise only creates (or deletes) the devices.
    #[arg(long, env = "TEST_ENABLED", value_name = "BOOL", default_value_t = true,
        num_args = 0..=1, default_missing_value = "true", action = ArgAction::Set, value_parser = BoolishValueParser::new())]
    pub(crate) enabled: bool,
}

/// The measurements and reports of a run.
#[derive(Debug, Clone, Args)]
pub(crate) struct ReportArgs {
    /// Checks through the API that every acknowledged message is stored.
    #[arg(long, value_name = "BOOL", default_value_t = true,
        num_args = 0..=1, default_missing_value = "true", action = ArgAction::Set, value_parser = BoolishValueParser::new())]
    pub(crate) verify: bool,
    /// Time for the server to store what it has acknowledged, seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 120.0)]
    pub(crate) patience: f64,
    /// Number of measurements a second of the time from acknowledgement to queryable; 0 for none.
    #[arg(long, value_name = "NUMBER", default_value_t = 5.0)]
    pub(crate) probes: f64,
    /// Puts the same load on a limit server before and after, for at most five seconds each. For HTTP, every choice but
    /// `none` is a bare handler that appends to the journal.
    #[arg(long, value_enum, default_value = "none")]
    pub(crate) limit: LimitComparison,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// Variables of ThingsBoard's tool for features that this tool does not have.
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
