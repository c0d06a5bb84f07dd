//! `fieldline bench`: the load generators, and the one baseline server that needs parts of the platform.

use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::post;
use fieldline_core::ports::{AppendError, AppendOrigin, Journal, JournalConsumer, Partition};
use fieldline_journal::{EmbeddedJournal, Options};
use fieldline_loadgen::BenchCommand;
use fieldline_loadgen::error::LoadError;
use fieldline_model::TenantId;
use fieldline_model::record::RecordBatch;
use tokio::signal::unix::{SignalKind, signal};

use crate::logging;

/// Exit code for invalid options, the same as for unknown ones.
const EXIT_USAGE: u8 = 2;
/// Exit code of a run that completed but failed its checks.
const EXIT_CHECK_FAILED: u8 = 3;
/// Base of the exit code after a signal: the signal's number is added.
const EXIT_SIGNAL: i32 = 128;
/// How often the journal of the bare handler is trimmed.
const TRIM_INTERVAL: Duration = Duration::from_secs(1);

/// Runs a command of `bench`.
pub(crate) fn run(command: &BenchCommand) -> ExitCode {
    // A command that becomes another program has nothing to clean up.
    let is_passing = matches!(command, BenchCommand::WithParent(_));
    if !is_passing && let Err(error) = end_at_signals() {
        logging::print_error(format_args!("fieldline bench: waiting for signals: {error}"));
        return ExitCode::FAILURE;
    }
    match fieldline_loadgen::run(command, serve_bare) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(EXIT_CHECK_FAILED),
        Err(error) => {
            logging::print_error(format_args!("fieldline bench: {error}"));
            match error {
                LoadError::InvalidOption(_) => ExitCode::from(EXIT_USAGE),
                _ => ExitCode::FAILURE,
            }
        }
    }
}

/// Makes a signal that ends this process also end its child processes and remove their files.
fn end_at_signals() -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .build()?;
    let (mut interrupt, mut terminate, mut hang_up) = {
        let _inside = runtime.enter();
        (
            signal(SignalKind::interrupt())?,
            signal(SignalKind::terminate())?,
            signal(SignalKind::hangup())?,
        )
    };
    let wait = move || {
        let received = runtime.block_on(async {
            tokio::select! {
                _ = interrupt.recv() => SignalKind::interrupt(),
                _ = terminate.recv() => SignalKind::terminate(),
                _ = hang_up.recv() => SignalKind::hangup(),
            }
        });
        fieldline_loadgen::clean_up_and_exit(EXIT_SIGNAL + received.as_raw_value());
    };
    std::thread::Builder::new()
        .name("signals".to_owned())
        .spawn(wait)
        .map(drop)
}

/// Serves HTTP posts by appending their bodies to a journal and nothing else: the baseline for HTTP telemetry.
fn serve_bare(listen: SocketAddr, dir: &Path, ready: &mut dyn FnMut(SocketAddr)) -> Result<(), String> {
    let journal = EmbeddedJournal::open(dir, &Options::default()).map_err(|error| error.to_string())?;
    let journal: Arc<dyn Journal> = Arc::new(journal);
    let queue = journal.open_queue("Main", 1).map_err(|error| error.to_string())?;
    let consumers = journal
        .subscribe(queue, "nobody", 1)
        .map_err(|error| error.to_string())?;
    let bare = BareHandler {
        journal,
        partition: Partition { queue, index: 0 },
    };
    let routes = Router::new()
        .route("/api/v1/{token}/telemetry", post(append))
        .route("/api/v1/{token}/attributes", post(append))
        .with_state(bare.clone());
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| error.to_string())?;
    runtime.block_on(async {
        let listener = tokio::net::TcpListener::bind(listen)
            .await
            .map_err(|error| error.to_string())?;
        ready(listener.local_addr().map_err(|error| error.to_string())?);
        tokio::spawn(trim_journal(bare, consumers));
        axum::serve(listener, routes)
            .await
            .map_err(|error| error.to_string())
    })
}

#[derive(Clone)]
struct BareHandler {
    journal: Arc<dyn Journal>,
    partition: Partition,
}

async fn append(State(bare): State<BareHandler>, body: Bytes) -> StatusCode {
    let mut batch = RecordBatch::new();
    batch.push(&body);
    loop {
        match bare
            .journal
            .append(bare.partition, &batch, AppendOrigin::Device(TenantId::NULL))
        {
            Ok(append) => match append.await {
                Ok(()) => return StatusCode::OK,
                Err(_) => return StatusCode::SERVICE_UNAVAILABLE,
            },
            Err(AppendError::Busy) => bare.journal.ready(AppendOrigin::Device(TenantId::NULL)).await,
            Err(_) => return StatusCode::SERVICE_UNAVAILABLE,
        }
    }
}

/// Commits everything that was appended, so that the journal does not fill the disk.
async fn trim_journal(bare: BareHandler, mut consumers: Vec<Box<dyn JournalConsumer>>) {
    loop {
        tokio::time::sleep(TRIM_INTERVAL).await;
        for consumer in &mut consumers {
            let end = bare.journal.end(bare.partition);
            if let Err(error) = consumer.commit(bare.partition, end).await {
                logging::print_error(format_args!("the journal of the bare handler: {error}"));
                return;
            }
        }
    }
}
