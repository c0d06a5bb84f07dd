//! `fieldline bench`: the load generators, and the one limit server that needs parts of the platform.

use std::net::SocketAddr;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::post;
use fieldline_core::ports::{AppendError, Journal, Partition};
use fieldline_journal::{EmbeddedJournal, Options};
use fieldline_loadgen::BenchCommand;
use fieldline_model::record::RecordBatch;

/// Exit code where a run came to its end and what it checked was wrong.
const EXIT_WRONG: u8 = 3;

/// Runs a command of `bench`.
pub(crate) fn run(command: &BenchCommand) -> ExitCode {
    match fieldline_loadgen::run(command, serve_bare) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(EXIT_WRONG),
        Err(error) => {
            eprintln!("fieldline bench: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Serves HTTP posts by appending their bodies to a journal and nothing else: the mark for HTTP telemetry.
fn serve_bare(listen: SocketAddr, dir: &Path, ready: &mut dyn FnMut(SocketAddr)) -> Result<(), String> {
    let journal = EmbeddedJournal::open(dir, &Options::default()).map_err(|error| error.to_string())?;
    let journal: Arc<dyn Journal> = Arc::new(journal);
    let queue = journal.open_queue("Main", 1).map_err(|error| error.to_string())?;
    let bare = Bare {
        journal,
        partition: Partition { queue, index: 0 },
    };
    let routes = Router::new()
        .route("/api/v1/{token}/telemetry", post(append))
        .with_state(bare);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| error.to_string())?;
    runtime.block_on(async {
        let listener = tokio::net::TcpListener::bind(listen)
            .await
            .map_err(|error| error.to_string())?;
        ready(listener.local_addr().map_err(|error| error.to_string())?);
        axum::serve(listener, routes)
            .await
            .map_err(|error| error.to_string())
    })
}

#[derive(Clone)]
struct Bare {
    journal: Arc<dyn Journal>,
    partition: Partition,
}

async fn append(State(bare): State<Bare>, body: Bytes) -> StatusCode {
    let mut batch = RecordBatch::new();
    batch.push(&body);
    loop {
        match bare.journal.append(bare.partition, &batch) {
            Ok(append) => match append.await {
                Ok(()) => return StatusCode::OK,
                Err(_) => return StatusCode::SERVICE_UNAVAILABLE,
            },
            Err(AppendError::Busy) => bare.journal.ready().await,
            Err(_) => return StatusCode::SERVICE_UNAVAILABLE,
        }
    }
}
