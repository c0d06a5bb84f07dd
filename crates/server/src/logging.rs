//! Log lines on standard error.

use std::io::IsTerminal as _;

use tracing_subscriber::EnvFilter;

use crate::config::{Config, LogFormat};

/// Starts logging as configured. The configuration was checked, so its directives can be read.
pub(crate) fn start(config: &Config) {
    let filter = EnvFilter::try_new(&config.log).unwrap_or_else(|_| EnvFilter::new("info"));
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr);
    match config.log_format {
        LogFormat::Text => builder.with_ansi(std::io::stderr().is_terminal()).init(),
        LogFormat::Json => builder.json().init(),
    }
}
