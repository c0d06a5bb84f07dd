//! Load generators and the measurements behind performance claims: devices that publish over MQTT or HTTP from one
//! event loop, publishers and subscribers on any broker, a limit server that only parses and acknowledges as a reference for the machine's capacity, and reports.
//!
//! This crate knows nothing of the platform's internals. It uses public APIs only, so the same load can be put on any
//! server that speaks them.

use std::net::SocketAddr;
use std::path::Path;

mod child;
mod cleanup;
mod cli;
mod connections;
pub mod devices;
pub mod engine;
pub mod error;
pub mod latency;
pub mod limit;
pub mod metrics;
pub mod payload;
pub mod probe;
pub mod process;
mod pubsub;
pub mod report;
pub mod rest;
pub mod sampler;
mod scenario;
mod target;
mod telemetry;
pub mod verify;
mod workers;

use cleanup::CleanupPath;
pub use cleanup::clean_up_and_exit;
pub use cli::{
    BenchCommand, ConnectionsArgs, LimitArgs, PubSubArgs, ScenarioArgs, TelemetryArgs, WithParentArgs,
};
use error::{LoadError, LoadResult};

/// A bare HTTP handler that appends to the journal, provided by the platform. It listens on the address, keeps its
/// journal in the directory, reports the address it listens on, and serves until the process ends.
pub type HttpLimitServer = fn(SocketAddr, &Path, &mut dyn FnMut(SocketAddr)) -> Result<(), String>;

/// Runs a command of `bench`. Returns false if the run was completed but its checks failed.
///
/// # Errors
/// An option is invalid, or the run could not be completed.
pub fn run(command: &BenchCommand, http_limit: HttpLimitServer) -> LoadResult<bool> {
    match command {
        BenchCommand::Telemetry(args) => telemetry::run(args),
        BenchCommand::Scenario(args) => scenario::run(args),
        BenchCommand::Connections(args) => connections::run(args),
        BenchCommand::PubSub(args) => pubsub::run(args),
        BenchCommand::Limit(args) => run_limit(args, http_limit),
        BenchCommand::WithParent(args) => child::run_with_parent(args),
    }
}

fn run_limit(args: &LimitArgs, http_limit: HttpLimitServer) -> LoadResult<bool> {
    if args.http && args.fsync {
        return Err(LoadError::InvalidOption(
            "--fsync is for MQTT: the bare handler of --http always appends to the journal".to_owned(),
        ));
    }
    // The output may be closed: the process that started this one may have seen enough.
    let mut ready = |address: SocketAddr| {
        use std::io::Write as _;
        let _ = writeln!(std::io::stdout(), "listening on {address}");
    };
    let own = match args.dir {
        None if args.http || args.fsync => Some(CleanupPath::directory()?),
        _ => None,
    };
    let dir = own.as_ref().map(CleanupPath::path).or(args.dir.as_deref());
    if args.http {
        http_limit(args.listen, dir.unwrap_or(Path::new(".")), &mut ready).map_err(LoadError::Engine)?;
    } else {
        let fsync = dir.filter(|_| args.fsync).map(Path::to_owned);
        let listen = args.listen;
        limit::serve(&limit::LimitOptions { listen, fsync }, ready)?;
    }
    Ok(true)
}
