//! Helper servers: the platform on a temporary directory, and the limit server. They end when their handle is dropped,
//! and with this process, however it ends.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, getppid, kill_process, set_parent_process_death_signal};

use crate::cleanup::{register_child, try_wait_child};
use crate::cli::WithParentArgs;
use crate::error::{LoadError, LoadResult};

const START_TIMEOUT: Duration = Duration::from_secs(30);
const STOP_TIMEOUT: Duration = Duration::from_secs(15);
const EXIT_POLL_INTERVAL: Duration = Duration::from_millis(10);
/// Log lines shown if a server does not start.
const SHOWN_LINES: usize = 10;

/// A child process that is stopped when this handle is dropped.
#[derive(Debug)]
pub(crate) struct ChildProcess {
    process: std::process::Child,
    pid: Pid,
}

impl ChildProcess {
    /// Starts a command of this program.
    fn start(arguments: &mut Command) -> LoadResult<Self> {
        let process = arguments.spawn().map_err(cannot_start)?;
        let pid = Pid::from_child(&process);
        register_child(pid);
        Ok(Self { process, pid })
    }

    /// The process id.
    pub(crate) fn pid(&self) -> u32 {
        self.process.id()
    }

    fn has_ended(&mut self) -> bool {
        !matches!(try_wait_child(self.pid, &mut self.process), Ok(None))
    }
}

impl Drop for ChildProcess {
    fn drop(&mut self) {
        // The process may have ended already.
        let _ = kill_process(self.pid, Signal::TERM);
        let asked = Instant::now();
        let mut is_killed = false;
        while !self.has_ended() {
            if !is_killed && asked.elapsed() > STOP_TIMEOUT {
                is_killed = true;
                let _ = self.process.kill();
            }
            std::thread::sleep(EXIT_POLL_INTERVAL);
        }
    }
}

/// Returns a command that runs this program, and ends with the calling process.
fn program() -> LoadResult<Command> {
    let program = std::env::current_exe().map_err(cannot_start)?;
    let mut command = Command::new(program);
    command.args(["bench", "with-parent", &std::process::id().to_string()]);
    command.stdin(Stdio::null());
    Ok(command)
}

/// Replaces this process by another command of the program, which ends with the calling process.
///
/// # Errors
/// The program cannot be run, or the calling process has ended already.
pub(crate) fn run_with_parent(args: &WithParentArgs) -> LoadResult<bool> {
    set_parent_process_death_signal(Some(Signal::TERM)).map_err(|error| cannot_start(error.into()))?;
    // A parent that ended before the signal was requested sends none.
    if getppid().map(Pid::as_raw_nonzero) != Some(args.parent) {
        return Err(LoadError::Engine("who has asked for this has ended".to_owned()));
    }
    let program = std::env::current_exe().map_err(cannot_start)?;
    Err(cannot_start(Command::new(program).args(&args.arguments).exec()))
}

/// A platform server with its demo tenant, on a directory of its own.
#[derive(Debug)]
pub(crate) struct OwnServer {
    pub(crate) process: ChildProcess,
    /// Base URL of REST and HTTP devices.
    pub(crate) url: String,
    /// Address for MQTT devices.
    pub(crate) mqtt: SocketAddr,
}

/// Starts the platform. `home` must be empty, and must outlive the server.
pub(crate) fn own_server(home: &Path) -> LoadResult<OwnServer> {
    let data = home.join("data");
    let log_path = home.join("server.log");
    let log = File::create(&log_path).map_err(|error| LoadError::Io {
        path: log_path.clone(),
        error,
    })?;
    let mut command = program()?;
    command
        .args(["serve", "--demo", "--data-dir"])
        .arg(&data)
        .env("FIELDLINE_HTTP_LISTEN", "127.0.0.1:0")
        .env("FIELDLINE_MQTT_LISTEN", "127.0.0.1:0")
        .stdout(Stdio::null())
        .stderr(log);
    let mut process = ChildProcess::start(&mut command)?;
    let asked = Instant::now();
    let listening: BTreeMap<String, SocketAddr> = loop {
        let found = std::fs::read(data.join("listening.json")).ok();
        if let Some(found) = found.and_then(|text| serde_json::from_slice(&text).ok()) {
            break found;
        }
        if process.has_ended() || asked.elapsed() > START_TIMEOUT {
            let text = std::fs::read_to_string(&log_path).unwrap_or_default();
            let lines: Vec<_> = text.lines().rev().take(SHOWN_LINES).collect();
            let lines: Vec<_> = lines.into_iter().rev().collect();
            return Err(LoadError::Engine(format!(
                "the server did not start:\n{}",
                lines.join("\n")
            )));
        }
        std::thread::sleep(EXIT_POLL_INTERVAL);
    };
    match (listening.get("http"), listening.get("mqtt")) {
        (Some(http), Some(mqtt)) => Ok(OwnServer {
            process,
            url: format!("http://{http}"),
            mqtt: *mqtt,
        }),
        _ => Err(LoadError::Engine(
            "the server does not listen for HTTP and MQTT".to_owned(),
        )),
    }
}

/// The kind of limit server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LimitServerKind {
    /// Parses and acknowledges MQTT messages.
    Plain,
    /// Appends and commits messages before it acknowledges them.
    Fsync,
    /// A bare HTTP handler that appends to the journal.
    Http,
}

impl LimitServerKind {
    /// Describes the server's work, for the report.
    pub(crate) fn what(self) -> &'static str {
        match self {
            Self::Plain => "parse and acknowledge",
            Self::Fsync => "append, group commit and acknowledge",
            Self::Http => "bare HTTP handler that appends to the journal",
        }
    }
}

/// Starts a limit server, with its file in `home` if it has one.
pub(crate) fn limit_server(kind: LimitServerKind, home: &Path) -> LoadResult<(ChildProcess, SocketAddr)> {
    let mut command = program()?;
    command
        .args(["bench", "limit", "--listen", "127.0.0.1:0", "--dir"])
        .arg(home.join("limit"));
    match kind {
        LimitServerKind::Plain => &mut command,
        LimitServerKind::Fsync => command.arg("--fsync"),
        LimitServerKind::Http => command.arg("--http"),
    };
    let mut child = ChildProcess::start(command.stdout(Stdio::piped()))?;
    let mut line = String::new();
    if let Some(output) = child.process.stdout.take() {
        // If the read fails, the empty line fails to parse below.
        let _ = BufReader::new(output).read_line(&mut line);
    }
    line.trim()
        .strip_prefix("listening on ")
        .and_then(|address| address.parse().ok())
        .map(|address| (child, address))
        .ok_or_else(|| LoadError::Engine("the limit server did not start".to_owned()))
}

fn cannot_start(error: std::io::Error) -> LoadError {
    LoadError::Engine(format!("starting a server: {error}"))
}
