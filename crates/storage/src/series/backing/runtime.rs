//! A database's own threads, for callers that are threads and wait.

use std::future::Future;
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};

use fieldline_core::ports::StoreResult;
use tokio::runtime::Runtime;

use super::super::error;

/// How long a call that reads may take before its connection counts as dead.
pub(super) const READ_TIMEOUT: Duration = Duration::from_secs(15);
/// The same of one that writes: a commit is as large as what came since the last one, and a slow network needs its time for it.
pub(super) const WRITE_TIMEOUT: Duration = Duration::from_secs(60);
/// How long a commit is tried before the caller is told that the database cannot be reached.
const COMMIT_PATIENCE: Duration = Duration::from_secs(10);
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// Attempts at a commit, with longer and longer pauses between them.
pub(super) struct CommitAttempts {
    started: Instant,
    pause: Duration,
}

impl CommitAttempts {
    pub(super) fn begin() -> Self {
        Self {
            started: Instant::now(),
            pause: FIRST_PAUSE,
        }
    }

    /// Waits before the next attempt, and says whether there is to be one.
    pub(super) fn wait(&mut self) -> bool {
        if self.started.elapsed() >= COMMIT_PATIENCE {
            return false;
        }
        std::thread::sleep(self.pause);
        self.pause = (self.pause * 2).min(LONGEST_PAUSE);
        true
    }
}

/// Runs calls on threads of its own.
pub(super) struct BackingRuntime(Option<Runtime>);

/// A call took too long, or the store was closed meanwhile.
pub(super) struct CallTimedOut;

/// A call that has begun. Whoever drops it does not learn its outcome.
pub(super) struct BackingCall<T, E>(Receiver<Result<T, E>>);

impl<T, E: From<CallTimedOut>> BackingCall<T, E> {
    pub(super) fn wait(self) -> Result<T, E> {
        self.0.recv().unwrap_or(Err(CallTimedOut.into()))
    }
}

impl BackingRuntime {
    pub(super) fn new(name: &str) -> StoreResult<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name(name)
            .enable_all()
            .build()
            .map_err(error::io)?;
        Ok(Self(Some(runtime)))
    }

    /// Runs what must be inside a runtime but does not wait.
    pub(super) fn inside<T>(&self, run: impl FnOnce() -> T) -> T {
        let _inside = self.0.as_ref().map(Runtime::enter);
        run()
    }

    /// Runs a call, and waits for it where the caller is.
    pub(super) fn call<T, E, F>(&self, timeout: Duration, call: F) -> Result<T, E>
    where
        T: Send + 'static,
        E: From<CallTimedOut> + Send + 'static,
        F: Future<Output = Result<T, E>> + Send + 'static,
    {
        self.begin(timeout, call).wait()
    }

    /// Begins a call whose outcome is waited for later.
    pub(super) fn begin<T, E, F>(&self, timeout: Duration, call: F) -> BackingCall<T, E>
    where
        T: Send + 'static,
        E: From<CallTimedOut> + Send + 'static,
        F: Future<Output = Result<T, E>> + Send + 'static,
    {
        let (done, outcome) = mpsc::sync_channel(1);
        self.spawn(async move {
            let outcome = tokio::time::timeout(timeout, call).await;
            // Nobody waits any more where the store has been closed meanwhile.
            let _ = done.send(outcome.unwrap_or(Err(CallTimedOut.into())));
        });
        BackingCall(outcome)
    }

    /// Runs something that nobody waits for.
    pub(super) fn spawn(&self, run: impl Future<Output = ()> + Send + 'static) {
        if let Some(runtime) = &self.0 {
            runtime.spawn(run);
        }
    }
}

impl Drop for BackingRuntime {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            // Whoever drops it may be a thread that must not wait.
            runtime.shutdown_background();
        }
    }
}
