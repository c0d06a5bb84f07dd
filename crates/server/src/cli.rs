//! The command line.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};
use fieldline_api::EndpointAccess;
use fieldline_loadgen::BenchCommand;

use crate::config::{self, EffectiveConfig};
use crate::migrate::{self, MigrateCommand, MigrateHistoryCommand};
use crate::{bench, broker, licenses, logging, rules, serve};

/// An IoT platform in one program.
#[derive(Parser)]
#[command(name = "fieldline", version, about = "An IoT platform in one program")]
struct Cli {
    #[command(subcommand)]
    command: CliCommand,
}

#[derive(Subcommand)]
enum CliCommand {
    /// Runs the platform.
    Serve {
        #[command(flatten)]
        settings: CliSettings,
        /// Creates the demo tenant with its accounts and devices in a new data directory, or starts one that has them.
        /// Listens on this machine only unless addresses are configured.
        #[arg(long)]
        demo: bool,
    },
    /// Prints the effective configuration with the documentation, the value and the source of each key.
    Config {
        #[command(flatten)]
        settings: CliSettings,
    },
    Migrate(MigrateCommand),
    MigrateHistory(MigrateHistoryCommand),
    /// Prints the REST endpoints, each with the roles that may call it.
    Endpoints,
    /// Prints the licences of what the program contains, with their texts.
    Licenses,
    /// Puts load on a server and measures it, this one or another with the same APIs.
    #[command(subcommand)]
    Bench(BenchCommand),
    /// Tries out rule chains.
    #[command(subcommand)]
    Rules(rules::RulesCommand),
    /// Looks at the publish/subscribe broker of a running platform.
    #[command(subcommand)]
    Broker(broker::BrokerCommand),
}

#[derive(Args)]
struct CliSettings {
    /// Configuration file in TOML.
    #[arg(long, value_name = "FILE", env = "FIELDLINE_CONFIG")]
    config: Option<PathBuf>,
    /// Directory of all data.
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
}

impl CliSettings {
    fn load(&self) -> Result<EffectiveConfig, ExitCode> {
        let flags: Vec<_> = self
            .data_dir
            .iter()
            .map(|path| ("data-dir", "--data-dir", path.clone().into_os_string()))
            .collect();
        let environment = std::env::vars_os().filter(|(name, _)| name != "FIELDLINE_CONFIG");
        config::load(self.config.as_deref(), environment, &flags).map_err(|error| {
            logging::print_error(format_args!("fieldline: {error}"));
            ExitCode::from(EXIT_CONFIG)
        })
    }
}

/// Exit code for an invalid configuration.
const EXIT_CONFIG: u8 = 2;

/// How long the program waits at its end until the last log lines are written.
const LOG_FLUSH_TIMEOUT: Duration = Duration::from_secs(1);

/// Runs the program.
pub(crate) fn run() -> ExitCode {
    let done = match Cli::parse().command {
        CliCommand::Serve { settings, demo } => settings.load().map(|loaded| run_platform(&loaded, demo)),
        CliCommand::Config { settings } => settings.load().map(|loaded| print_config(&loaded)),
        CliCommand::Migrate(command) => Ok(exit_code("migrate", migrate::run(&command))),
        CliCommand::MigrateHistory(command) => {
            Ok(exit_code("migrate-history", migrate::run_history(&command)))
        }
        CliCommand::Endpoints => Ok(print_endpoints()),
        CliCommand::Licenses => Ok(print_licenses()),
        CliCommand::Bench(command) => Ok(bench::run(&command)),
        CliCommand::Rules(command) => Ok(rules::run(&command)),
        CliCommand::Broker(command) => Ok(broker::run_command(&command)),
    };
    done.unwrap_or_else(|refused| refused)
}

fn run_platform(loaded: &EffectiveConfig, demo: bool) -> ExitCode {
    logging::start(&loaded.config);
    let code = match serve::run(loaded, demo) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!("{error}");
            ExitCode::FAILURE
        }
    };
    logging::flush(LOG_FLUSH_TIMEOUT);
    code
}

/// How a command has ended, after its error was printed.
fn exit_code<E: std::fmt::Display>(command: &str, done: Result<(), E>) -> ExitCode {
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            logging::print_error(format_args!("fieldline {command}: {error}"));
            ExitCode::FAILURE
        }
    }
}

fn print_config(loaded: &EffectiveConfig) -> ExitCode {
    let mut out = std::io::stdout().lock();
    // A reader such as `head` may close the pipe early.
    let _ = config::print(loaded, &mut out).and_then(|()| out.flush());
    ExitCode::SUCCESS
}

fn print_licenses() -> ExitCode {
    let mut out = std::io::stdout().lock();
    let _ = licenses::print(&mut out).and_then(|()| out.flush());
    ExitCode::SUCCESS
}

fn print_endpoints() -> ExitCode {
    let mut out = std::io::stdout().lock();
    for endpoint in fieldline_api::endpoints() {
        let callers = match endpoint.access {
            EndpointAccess::Public => "anybody".to_owned(),
            EndpointAccess::Roles(roles) => {
                roles.iter().map(|role| role.name()).collect::<Vec<_>>().join(" ")
            }
        };
        if writeln!(out, "{:7} {} {callers}", endpoint.method, endpoint.path).is_err() {
            break;
        }
    }
    ExitCode::SUCCESS
}
