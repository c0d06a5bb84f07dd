//! The options of `fieldline bench`. Those that ThingsBoard's performance tool has too can be given by its environment
//! variables.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::builder::BoolishValueParser;
use clap::{ArgAction, Args, Subcommand, ValueEnum};

use crate::error::{LoadError, LoadResult};
use crate::payload::PayloadKind;

/// What to measure.
#[derive(Debug, Subcommand)]
pub enum BenchCommand {
    /// Puts telemetry of many devices on a server, and checks that what was acknowledged is stored.
    ///
    /// Takes the environment variables of ThingsBoard's performance tool.
    #[command(args_override_self = true)]
    Telemetry(Box<TelemetryArgs>),
    /// Runs a server that only parses and acknowledges: what the machine can do at all.
    Limit(LimitArgs),
    /// Repeats a published scenario with one command.
    Scenario(Box<ScenarioArgs>),
    /// Opens idle connections: how fast they are accepted and how much memory each takes.
    Connections(Box<ConnectionsArgs>),
}

/// Options of the limit server.
#[derive(Debug, Args)]
pub struct LimitArgs {
    /// Address to listen on.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:1884")]
    pub listen: SocketAddr,
    /// Also appends each message to a file and commits many together before they are acknowledged.
    #[arg(long)]
    pub fsync: bool,
    /// Answers HTTP posts by a bare handler that appends to the journal, instead of MQTT.
    #[arg(long)]
    pub http: bool,
    /// Directory of that file.
    #[arg(long, value_name = "DIR", default_value = "fieldline-limit")]
    pub dir: PathBuf,
}

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
    #[arg(long, env = "REST_POOL_SIZE", value_name = "NUMBER", default_value_t = 4)]
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
    /// PEM file of the certificates that the MQTT server's has to come from.
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
    /// Makes the devices that are not there yet.
    #[arg(long, env = "DEVICE_CREATE_ON_START", value_name = "BOOL", default_value_t = true,
        num_args = 0..=1, default_missing_value = "true", action = ArgAction::Set, value_parser = BoolishValueParser::new())]
    pub(crate) create: bool,
    /// Deletes the devices afterwards, and with them what they sent.
    #[arg(long, env = "DEVICE_DELETE_ON_COMPLETE", value_name = "BOOL", default_value_t = false,
        num_args = 0..=1, default_missing_value = "true", action = ArgAction::Set, value_parser = BoolishValueParser::new())]
    pub(crate) delete: bool,
}

impl DeviceArgs {
    /// Numbers of the first device and after the last one.
    pub(crate) fn range(&self) -> LoadResult<(u32, u32)> {
        let (start, end) = if self.use_instance {
            let instance = if self.instance_from_name {
                let name = self.instance_name.as_str();
                let digits = name.trim_start_matches(|c: char| !c.is_ascii_digit());
                let digits = digits
                    .rsplit(|c: char| !c.is_ascii_digit())
                    .next()
                    .unwrap_or(digits);
                digits.parse().unwrap_or(self.instance)
            } else {
                self.instance
            };
            let start = self.device_count.saturating_mul(instance);
            (start, start.saturating_add(self.device_count))
        } else {
            (self.device_start, self.device_end)
        };
        if start < end {
            Ok((start, end))
        } else {
            Err(LoadError::InvalidOption(format!(
                "there is no device from {start} to {end}"
            )))
        }
    }
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

/// Which limit server the result is compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LimitKind {
    /// None.
    None,
    /// One that parses and acknowledges.
    Plain,
    /// One that appends, commits and acknowledges.
    Fsync,
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
    /// Data points of an INDUSTRIAL_PLC message.
    #[arg(
        long,
        env = "TEST_PAYLOAD_DATAPOINTS",
        value_name = "NUMBER",
        default_value_t = 60
    )]
    pub(crate) payload_points: usize,
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
    /// Instead of a rate, keeps that many messages of each connection in flight.
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
    /// Puts the same load, in closed loop, on a limit server before and after.
    #[arg(long, value_enum, default_value = "none")]
    pub(crate) limit: LimitKind,
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

impl ReportArgs {
    /// How long the server may take.
    pub(crate) fn patience(&self) -> Duration {
        Duration::try_from_secs_f64(self.patience).unwrap_or(Duration::from_secs(120))
    }
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

impl TelemetryArgs {
    /// Refuses what makes no sense, by the name of the option.
    pub(crate) fn check(&self) -> LoadResult<()> {
        let refuse = |text: &str| Err(LoadError::InvalidOption(text.to_owned()));
        if self.foreign.test_api != "device" {
            return refuse("TEST_API: only `device` is supported");
        }
        if self.foreign.update_root_rule_chain {
            return refuse("UPDATE_ROOT_RULE_CHAIN: the rule chain of the tenant is left alone");
        }
        let LoadArgs {
            rate,
            duration,
            alarms,
            ..
        } = self.load;
        if !(rate.is_finite() && rate > 0.0 && rate <= 1e7) {
            return refuse("--rate must be more than 0 and at most 10,000,000");
        }
        if !(duration.is_finite() && duration > 0.0 && duration <= 1e7) {
            return refuse("--duration must be more than 0 and at most 10,000,000 seconds");
        }
        if !(alarms.is_finite() && alarms >= 0.0) {
            return refuse("--alarms must not be negative");
        }
        if self.load.in_flight == Some(0) {
            return refuse("--in-flight must be at least 1");
        }
        if self.load.users == 0 {
            return refuse("--users must be at least 1");
        }
        self.devices.range().map(drop)
    }

    /// The payload with the number of points that goes with it.
    pub(crate) fn payload(&self) -> PayloadKind {
        match self.load.payload {
            PayloadKind::IndustrialPlc(60) => {
                PayloadKind::IndustrialPlc(self.load.payload_points.clamp(1, 999))
            }
            other => other,
        }
    }
}

/// Options of a published scenario.
#[derive(Debug, Clone, Args)]
pub struct ScenarioArgs {
    /// Which one; `list` shows them.
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
    /// Part of its devices and rate.
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0)]
    pub(crate) scale: f64,
    /// Seconds of load.
    #[arg(long, value_name = "SECONDS", default_value_t = 60.0)]
    pub(crate) duration: f64,
    /// Address of the REST API of a server that runs already; otherwise one is started on a temporary directory.
    #[arg(long, value_name = "URL")]
    pub(crate) rest_url: Option<String>,
    /// Host and port of its MQTT server.
    #[arg(long, value_name = "HOST:PORT", default_value = "localhost:1883")]
    pub(crate) mqtt: String,
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
    /// What the result is compared with.
    #[arg(long, value_enum, default_value = "fsync")]
    pub(crate) limit: LimitKind,
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

/// Options of the measuring of idle connections.
#[derive(Debug, Clone, Args)]
pub struct ConnectionsArgs {
    #[command(flatten)]
    pub(crate) target: TargetArgs,
    /// Numbers of open connections at which memory is measured, ascending.
    #[arg(
        long,
        value_name = "NUMBERS",
        value_delimiter = ',',
        default_value = "1000,15000"
    )]
    pub(crate) counts: Vec<u32>,
    /// Messages that each device sends once it is connected.
    #[arg(long, value_name = "NUMBER", default_value_t = 0)]
    pub(crate) messages: u32,
    /// Seconds of silence before memory is measured.
    #[arg(long, value_name = "SECONDS", default_value_t = 15.0)]
    pub(crate) settle: f64,
    /// Connections that are opened at a time.
    #[arg(long, value_name = "NUMBER", default_value_t = 200)]
    pub(crate) opening: usize,
    /// Compares the rate of connecting with a limit server's.
    #[arg(long, value_name = "BOOL", default_value_t = true,
        num_args = 0..=1, default_missing_value = "true", action = ArgAction::Set, value_parser = BoolishValueParser::new())]
    pub(crate) limit: bool,
    /// Writes everything measured to a file.
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
}
