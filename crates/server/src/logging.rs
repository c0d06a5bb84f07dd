//! Log lines on standard error.

mod log_thread;

use std::io::{IsTerminal as _, Write as _};
use std::sync::OnceLock;
use std::time::Duration;

use tracing_subscriber::EnvFilter;

use crate::config::{Config, LogFormat};
use log_thread::LogThread;

/// The log thread of this process, once logging has started.
static LOG_THREAD: OnceLock<LogThread> = OnceLock::new();
/// How long a panicking thread waits for earlier lines to be written, in case the process ends with the panic.
const PANIC_FLUSH_TIMEOUT: Duration = Duration::from_millis(50);

/// Starts logging as configured. The configuration was checked, so its directives can be parsed.
///
/// A thread that logs neither waits for the reader of standard error nor fails with it: lines that exceed the memory of
/// the queue are dropped and counted.
pub(crate) fn start(config: &Config) {
    let filter = EnvFilter::try_new(&config.log).unwrap_or_else(|_| EnvFilter::new("info"));
    let Some(out) = log_thread::standard_error() else {
        // Without standard error there is nowhere to report.
        return;
    };
    let lines = LOG_THREAD.get_or_init(|| LogThread::start(out));
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        // The subscriber would report them on standard error, with a macro that panics if standard error cannot be
        // written.
        .log_internal_errors(false)
        .with_writer(|| lines.writer());
    match config.log_format {
        LogFormat::Text => builder.with_ansi(std::io::stderr().is_terminal()).init(),
        LogFormat::Json => builder.json().init(),
    }
    std::panic::set_hook(Box::new(|panic| {
        let thread = std::thread::current();
        let place = panic.location().map(ToString::to_string).unwrap_or_default();
        let message = panic.payload_as_str().unwrap_or("without a message");
        tracing::error!(thread = thread.name(), place, "panicked: {message}");
        flush(PANIC_FLUSH_TIMEOUT);
    }));
}

/// Waits at most `patience` until all logged lines are written.
pub(crate) fn flush(patience: Duration) {
    if let Some(lines) = LOG_THREAD.get() {
        lines.flush(patience);
    }
}

/// Prints an error of a command to standard error; does nothing if standard error is closed.
pub(crate) fn print_error(message: impl std::fmt::Display) {
    let _ = writeln!(std::io::stderr(), "{message}");
}
