//! The `fieldline` program.

mod banner;
mod bench;
mod cli;
mod config;
mod data_dir;
mod http;
mod limits;
mod logging;
mod probes;
mod serve;
mod servers;
mod shutdown;
mod wiring;

use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    cli::run()
}
