//! A database's own threads, for callers that are threads and wait.

use std::future::Future;
use std::time::Duration;

use fieldline_core::ports::StoreResult;
use tokio::runtime::Runtime;

use super::super::error;

/// Runs calls on threads of its own.
pub(super) struct BackingRuntime(Option<Runtime>);

/// A call took too long, or the store was closed meanwhile.
pub(super) struct CallTimedOut;

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
        let (done, outcome) = std::sync::mpsc::sync_channel(1);
        self.spawn(async move {
            let outcome = tokio::time::timeout(timeout, call).await;
            // Nobody waits any more where the store has been closed meanwhile.
            let _ = done.send(outcome.unwrap_or(Err(CallTimedOut.into())));
        });
        outcome.recv().unwrap_or(Err(CallTimedOut.into()))
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
