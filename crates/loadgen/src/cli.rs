//! The options of `fieldline bench`. Options that ThingsBoard's performance tool has as well can be set by its
//! environment variables.

use std::net::SocketAddr;
use std::num::NonZeroI32;
use std::path::PathBuf;

use clap::builder::BoolishValueParser;
use clap::{ArgAction, Args, Subcommand, ValueEnum};

mod check;
mod pubsub;
mod telemetry;

pub use pubsub::PubSubArgs;
pub(crate) use pubsub::{ClientVersion, PointToPointArgs};
pub use telemetry::TelemetryArgs;
pub(crate) use telemetry::{
    DeviceApi, DeviceArgs, ForeignArgs, INSTANCE_REGEX, LoadArgs, ReportArgs, TargetArgs,
};

/// The measurement to run.
#[derive(Debug, Subcommand)]
pub enum BenchCommand {
    /// Puts a load of telemetry from many devices on a server, and checks that every acknowledged message is stored.
    ///
    /// Takes the environment variables of ThingsBoard's performance tool.
    #[command(args_override_self = true, allow_negative_numbers = true)]
    Telemetry(Box<TelemetryArgs>),
    /// Runs a server that only parses and acknowledges, to measure the limit of the machine.
    Limit(LimitArgs),
    /// Runs a published scenario with one command.
    #[command(allow_negative_numbers = true)]
    Scenario(Box<ScenarioArgs>),
    /// Opens idle connections, and measures how fast they are accepted and how much memory each takes.
    #[command(allow_negative_numbers = true)]
    Connections(Box<ConnectionsArgs>),
    /// Puts a load of publishers and subscribers on any MQTT broker, or on several in turn, and counts what is lost.
    ///
    /// Takes the files and environment variables of ThingsBoard's tb-mqtt-perf-tests.
    #[command(name = "pubsub", allow_negative_numbers = true)]
    PubSub(Box<PubSubArgs>),
    /// Runs another command of this program, which ends when the calling process ends.
    #[command(hide = true)]
    WithParent(WithParentArgs),
}

/// Arguments of the command that runs a helper process.
#[derive(Debug, Args)]
pub struct WithParentArgs {
    /// Process id of the calling process.
    pub(crate) parent: NonZeroI32,
    /// The command and its arguments.
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    pub(crate) arguments: Vec<std::ffi::OsString>,
}

/// Options of the limit server.
#[derive(Debug, Args)]
pub struct LimitArgs {
    /// Address to listen on.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:1884")]
    pub listen: SocketAddr,
    /// Also appends each message to a file, and commits many together before they are acknowledged.
    #[arg(long)]
    pub fsync: bool,
    /// Serves HTTP posts with a bare handler that appends to the journal, instead of MQTT.
    #[arg(long)]
    pub http: bool,
    /// Directory of that file or of the journal; otherwise a temporary one, which is removed.
    #[arg(long, value_name = "DIR")]
    pub dir: Option<PathBuf>,
}

/// The limit server to compare the result with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LimitComparison {
    /// No limit server.
    None,
    /// A limit server that parses and acknowledges.
    Plain,
    /// A limit server that appends, commits and acknowledges.
    Fsync,
}

/// An MQTT server under load.
#[derive(Debug, Clone, Args)]
pub(crate) struct MqttServerArgs {
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
    /// PEM file of the CA certificates to trust for the MQTT server; otherwise those that the system trusts.
    #[arg(long, env = "MQTT_SSL_KEY_STORE", value_name = "FILE")]
    pub(crate) mqtt_ca: Option<PathBuf>,
    /// Process id of the server, if it cannot be found by its port.
    #[arg(long, value_name = "PID")]
    pub(crate) server_pid: Option<u32>,
}

/// What a run tells, and where.
#[derive(Debug, Clone, Args)]
pub(crate) struct OutputArgs {
    /// Writes all results to a JSON file.
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// Writes an HTML page with plots.
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
    /// Prints no progress.
    #[arg(long)]
    pub(crate) quiet: bool,
}

/// Options of a published scenario.
#[derive(Debug, Clone, Args)]
pub struct ScenarioArgs {
    /// Name of the scenario; `list`, or no name, lists all of them.
    #[arg(value_name = "NAME", default_value = "list")]
    pub(crate) name: String,
    /// Factor by which the scenario's devices and rates are scaled.
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0)]
    pub(crate) scale: f64,
    /// Length of the load, seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 60.0)]
    pub(crate) duration: f64,
    /// Address of the REST API of a running server; otherwise a server is started on a temporary directory.
    #[arg(long, value_name = "URL")]
    pub(crate) rest_url: Option<String>,
    /// Host and port of that server's MQTT listener.
    #[arg(long, value_name = "HOST:PORT", default_value = "localhost:1883")]
    pub(crate) mqtt: String,
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
    /// Limit server to compare the result with.
    #[arg(long, value_enum, default_value = "fsync")]
    pub(crate) limit: LimitComparison,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// Options of the measurement of idle connections.
#[derive(Debug, Clone, Args)]
pub struct ConnectionsArgs {
    #[command(flatten)]
    pub(crate) target: TargetArgs,
    /// Numbers of open connections at which memory is measured, in ascending order.
    #[arg(
        long,
        value_name = "NUMBERS",
        value_delimiter = ',',
        default_value = "1000,15000"
    )]
    pub(crate) counts: Vec<u32>,
    /// Messages that each device sends after it has connected.
    #[arg(long, value_name = "NUMBER", default_value_t = 0)]
    pub(crate) messages: u32,
    /// Pause before memory is measured, seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 15.0)]
    pub(crate) settle: f64,
    /// Connections opened at a time.
    #[arg(long, value_name = "NUMBER", default_value_t = 200)]
    pub(crate) opening: usize,
    /// Compares the connection rate with that of a limit server, which does not support TLS.
    #[arg(long, value_name = "BOOL", default_value_t = true,
        num_args = 0..=1, default_missing_value = "true", action = ArgAction::Set, value_parser = BoolishValueParser::new())]
    pub(crate) limit: bool,
    /// Writes all results to a JSON file.
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
}
