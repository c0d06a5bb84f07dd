//! What commands have in common that ask a running platform over its REST API.

use std::fmt::Display;
use std::io::{self, Write as _};
use std::process::ExitCode;

use clap::Args;
use fieldline_loadgen::rest::RestTarget;

use crate::logging;

/// Exit code for invalid options.
const EXIT_USAGE: u8 = 2;

/// The platform that is asked, and who asks.
#[derive(Args)]
pub(crate) struct PlatformArgs {
    /// Address of the platform.
    #[arg(
        long,
        env = "REST_URL",
        value_name = "URL",
        default_value = "http://localhost:8080"
    )]
    url: String,
    /// E-mail address of an administrator: of a tenant for its rule chains, of the system for the broker.
    #[arg(long, env = "REST_USERNAME", value_name = "EMAIL")]
    username: String,
    /// The password; better set in the environment than on the command line.
    #[arg(long, env = "REST_PASSWORD", value_name = "PASSWORD", hide_env_values = true)]
    password: String,
}

impl PlatformArgs {
    /// The target of a client that makes one request at a time.
    pub(crate) fn target(&self) -> RestTarget {
        RestTarget {
            url: self.url.clone(),
            username: self.username.clone(),
            password: self.password.clone(),
            pool_size: 1,
        }
    }
}

/// Prints the answer of a command, or its error; `is_usage` tells errors of whoever called it from others.
pub(crate) fn print_answer<E: Display>(
    command: &str,
    answer: Result<String, E>,
    is_usage: impl FnOnce(&E) -> bool,
) -> ExitCode {
    match answer {
        Ok(text) => {
            let mut out = io::stdout().lock();
            // A reader such as `head` may close the pipe early.
            let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
            ExitCode::SUCCESS
        }
        Err(error) => {
            logging::print_error(format_args!("fieldline {command}: {error}"));
            if is_usage(&error) {
                ExitCode::from(EXIT_USAGE)
            } else {
                ExitCode::FAILURE
            }
        }
    }
}
