//! The `fieldline` program.

mod banner;
mod bench;
mod broker;
mod cli;
mod config;
mod data_dir;
mod http;
mod licenses;
mod limits;
mod logging;
mod memory_budget;
mod migrate;
mod platform_call;
mod probes;
mod retention;
mod rules;
mod serve;
mod servers;
mod shutdown;
mod system_info;
mod wiring;

use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// Settings of the allocator: background threads return freed memory to the system after a second, so that an idle
/// process takes only the memory it holds. The environment variable `_RJEM_MALLOC_CONF` overrides them.
#[expect(
    unsafe_code,
    reason = "the allocator finds its settings by the name of the symbol"
)]
#[unsafe(export_name = "_rjem_malloc_conf")]
static SETTINGS: &[u8; 60] = b"background_thread:true,dirty_decay_ms:1000,muzzy_decay_ms:0\0";

fn main() -> ExitCode {
    cli::run()
}
