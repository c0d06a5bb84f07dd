//! Stop signals, and a deadline that ends the process whatever hangs.

use std::future::Future;
use std::io;
use std::time::{Duration, Instant};

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;
use tracing::warn;

use crate::logging;

/// Exit code if the stop was cut short.
const EXIT_CUT_SHORT: i32 = 1;
/// How long the last log line may take to be written: the reader of the log may be the part that hangs.
const FINAL_LOG_TIMEOUT: Duration = Duration::from_millis(50);
/// Share of `shutdown-timeout` that the steps of a stop may use; the rest is for the end of the process.
const STEPS_SHARE: f64 = 0.9;

/// Tells whether a stop was requested.
#[derive(Clone)]
pub(crate) struct StopSignal {
    request: watch::Receiver<Option<StopRequest>>,
    timeout: Duration,
}

#[derive(Clone, Copy)]
struct StopRequest {
    signal: &'static str,
    at: Instant,
}

/// Listens for SIGTERM and SIGINT from now on. The process exits `patience` after the first signal, whatever it is
/// doing then, and at once after the second.
pub(crate) fn listen(patience: Duration) -> io::Result<StopSignal> {
    // On a thread of its own, so that it works even if all threads of the platform hang.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let signals = {
        let _inside = runtime.enter();
        UnixSignals {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
        }
    };
    let (tell, told) = watch::channel(None);
    std::thread::Builder::new()
        .name("signals".to_owned())
        .spawn(move || runtime.block_on(handle_signals(signals, tell, patience)))?;
    Ok(StopSignal {
        request: told,
        timeout: patience,
    })
}

struct UnixSignals {
    terminate: Signal,
    interrupt: Signal,
}

impl UnixSignals {
    async fn next(&mut self) -> &'static str {
        tokio::select! {
            _ = self.terminate.recv() => "SIGTERM",
            _ = self.interrupt.recv() => "SIGINT",
        }
    }
}

async fn handle_signals(
    mut signals: UnixSignals,
    tell: watch::Sender<Option<StopRequest>>,
    patience: Duration,
) {
    let signal = signals.next().await;
    tell.send_replace(Some(StopRequest {
        signal,
        at: Instant::now(),
    }));
    let why = tokio::select! {
        _ = signals.next() => "told a second time to stop, exiting at once",
        () = tokio::time::sleep(patience) => "not everything has stopped in time, exiting without it",
    };
    // Exiting at any moment is safe: the next start replays what is not stored.
    warn!("{why}");
    logging::flush(FINAL_LOG_TIMEOUT);
    std::process::exit(EXIT_CUT_SHORT);
}

impl StopSignal {
    /// Waits for the first signal and returns its name.
    pub(crate) async fn wait(&self) -> &'static str {
        let mut told = self.request.clone();
        // The sender lives as long as the process.
        match told.wait_for(Option::is_some).await.map(|told| *told) {
            Ok(Some(told)) => told.signal,
            _ => std::future::pending().await,
        }
    }

    /// Returns the time by which everything should have stopped, counted from the signal, or from now if there was
    /// none.
    pub(crate) fn deadline(&self) -> ShutdownDeadline {
        let start = self.request.borrow().map_or_else(Instant::now, |told| told.at);
        ShutdownDeadline(start + self.timeout.mul_f64(STEPS_SHARE))
    }
}

/// Time by which everything should have stopped.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ShutdownDeadline(Instant);

impl ShutdownDeadline {
    /// Returns a share of the time that is left.
    pub(crate) fn share(self, share: f64) -> Duration {
        self.0.saturating_duration_since(Instant::now()).mul_f64(share)
    }

    /// Runs one step of the stop; gives up on the step if it takes more than that share of the time that is left.
    pub(crate) async fn step<F: Future>(self, what: &'static str, share: f64, step: F) -> Option<F::Output> {
        let done = tokio::time::timeout(self.share(share), step).await.ok();
        if done.is_none() {
            warn!(what, "takes too long to stop, going on without it");
        }
        done
    }
}
