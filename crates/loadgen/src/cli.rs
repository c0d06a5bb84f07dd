//! The options of `fieldline bench`. Those that ThingsBoard's performance tool has too can be given by its environment
//! variables.

use std::net::SocketAddr;
use std::num::NonZeroI32;
use std::path::PathBuf;

use clap::builder::BoolishValueParser;
use clap::{ArgAction, Args, Subcommand, ValueEnum};

mod check;
mod telemetry;

pub use telemetry::TelemetryArgs;
pub(crate) use telemetry::{
    DeviceApi, DeviceArgs, ForeignArgs, INSTANCE_REGEX, LoadArgs, ReportArgs, TargetArgs,
};

/// What to measure.
#[derive(Debug, Subcommand)]
pub enum BenchCommand {
    /// Puts telemetry of many devices on a server, and checks that what was acknowledged is stored.
    ///
    /// Takes the environment variables of ThingsBoard's performance tool.
    #[command(args_override_self = true, allow_negative_numbers = true)]
    Telemetry(Box<TelemetryArgs>),
    /// Runs a server that only parses and acknowledges: what the machine can do at all.
    Limit(LimitArgs),
    /// Repeats a published scenario with one command.
    #[command(allow_negative_numbers = true)]
    Scenario(Box<ScenarioArgs>),
    /// Opens idle connections: how fast they are accepted and how much memory each takes.
    #[command(allow_negative_numbers = true)]
    Connections(Box<ConnectionsArgs>),
    /// Runs another command that ends with the process that starts it.
    #[command(hide = true)]
    WithParent(WithParentArgs),
}

/// What a load generator runs beside itself.
#[derive(Debug, Args)]
pub struct WithParentArgs {
    /// Process id of the one that starts it.
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
    /// Also appends each message to a file and commits many together before they are acknowledged.
    #[arg(long)]
    pub fsync: bool,
    /// Answers HTTP posts by a bare handler that appends to the journal, instead of MQTT.
    #[arg(long)]
    pub http: bool,
    /// Directory of that file, or of the journal; otherwise a temporary one, which is removed.
    #[arg(long, value_name = "DIR")]
    pub dir: Option<PathBuf>,
}

/// Which limit server the result is compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LimitComparison {
    /// None.
    None,
    /// One that parses and acknowledges.
    Plain,
    /// One that appends, commits and acknowledges.
    Fsync,
}

/// Options of a published scenario.
#[derive(Debug, Clone, Args)]
pub struct ScenarioArgs {
    /// Which one; `list`, or nothing, shows them.
    #[arg(value_name = "NAME", default_value = "list")]
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
    /// Compares the rate of connecting with that of a limit server, which speaks no TLS.
    #[arg(long, value_name = "BOOL", default_value_t = true,
        num_args = 0..=1, default_missing_value = "true", action = ArgAction::Set, value_parser = BoolishValueParser::new())]
    pub(crate) limit: bool,
    /// Writes everything measured to a file.
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
}
