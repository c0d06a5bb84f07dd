//! Load generators and the measuring that performance claims rest on: devices that publish over MQTT or HTTP from one
//! event loop, a server that only parses and acknowledges as the mark of what the machine can do, and reports.
//!
//! Nothing here knows the platform from inside: it is driven by its public APIs, so that the same load can be put on any
//! server that speaks them.

use std::net::SocketAddr;
use std::path::Path;

mod child;
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
pub mod report;
pub mod rest;
pub mod sampler;
mod scenario;
mod target;
mod telemetry;
pub mod verify;
mod workers;

pub use cli::BenchCommand;
use error::{LoadError, LoadResult};

/// A bare HTTP handler that appends to the journal, which only the platform can give: listens on the address, keeps its
/// journal in the directory, tells where it listens and serves until the process ends.
pub type HttpLimit = fn(SocketAddr, &Path, &mut dyn FnMut(SocketAddr)) -> Result<(), String>;

/// Runs a command of `bench`. False if the run came to its end and what it checked was not right.
///
/// # Errors
/// An option makes no sense, or the run could not come to its end.
pub fn run(command: &BenchCommand, http_limit: HttpLimit) -> LoadResult<bool> {
    let mut ready = |address: SocketAddr| println!("listening on {address}");
    match command {
        BenchCommand::Telemetry(args) => telemetry::run(args),
        BenchCommand::Scenario(args) => scenario::run(args),
        BenchCommand::Connections(args) => connections::run(args),
        BenchCommand::Limit(args) if args.http => {
            http_limit(args.listen, &args.dir, &mut ready).map_err(LoadError::Engine)?;
            Ok(true)
        }
        BenchCommand::Limit(args) => {
            let options = limit::LimitOptions {
                listen: args.listen,
                fsync: args.fsync.then(|| args.dir.clone()),
            };
            limit::serve(&options, ready)?;
            Ok(true)
        }
    }
}
