//! Reads and changes that are tried again while their store cannot serve.

use std::ops::ControlFlow;

use fieldline_core::ingest::{EffectWriter, IngestShutdown};
use fieldline_core::ports::StoreError;
use fieldline_entities::services::{ServiceError, ServiceErrorKind};
use tokio::task::JoinError;
use tracing::warn;

use crate::services::NodeServices;

/// Why an attempt has not succeeded.
#[derive(Debug, thiserror::Error)]
pub(super) enum AttemptError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Service(#[from] ServiceError),
    /// Its task has panicked, or the program ends.
    #[error(transparent)]
    Panicked(#[from] JoinError),
}

impl AttemptError {
    /// Whether the same may succeed later.
    pub(super) fn is_retryable(&self) -> bool {
        match self {
            Self::Store(error) => error.kind().is_retryable(),
            Self::Service(error) => error.kind() == ServiceErrorKind::Unavailable,
            Self::Panicked(_) => false,
        }
    }

    /// Breaks where the same cannot succeed later.
    pub(super) fn decide(&self) -> ControlFlow<()> {
        match self.is_retryable() {
            true => ControlFlow::Continue(()),
            false => ControlFlow::Break(()),
        }
    }
}

/// What is logged of attempts.
pub(super) struct AttemptTexts {
    /// The store cannot serve: the attempt is repeated.
    pub(super) unavailable: &'static str,
    /// It would fail again: nothing comes of it. Nothing is logged where there is no text.
    pub(super) refused: &'static str,
    /// Its task has panicked: nothing comes of it.
    pub(super) panicked: &'static str,
}

impl AttemptTexts {
    /// Those of reads that need no task of their own.
    pub(super) const fn reading(unavailable: &'static str, refused: &'static str) -> Self {
        Self {
            unavailable,
            refused,
            panicked: "",
        }
    }

    /// Logs an error. Breaks where the attempt is not to be repeated.
    pub(super) fn log(&self, error: &AttemptError) -> ControlFlow<()> {
        let text = match error {
            _ if error.is_retryable() => self.unavailable,
            AttemptError::Panicked(_) => self.panicked,
            _ => self.refused,
        };
        if !text.is_empty() {
            warn!(%error, "{text}");
        }
        error.decide()
    }
}

/// Makes attempts until one succeeds, with pauses between them. `None` where `on_error` breaks instead.
///
/// Callers box attempts that go to the database anyway, so that the future of a batch, which holds all others, is not a type
/// too deep for the compiler.
pub(super) async fn with_retry<T>(
    writer: &EffectWriter,
    mut attempt: impl AsyncFnMut() -> Result<T, AttemptError>,
    on_error: impl Fn(&AttemptError) -> ControlFlow<()>,
) -> Result<Option<T>, IngestShutdown> {
    loop {
        match attempt().await {
            Ok(value) => return Ok(Some(value)),
            Err(error) if on_error(&error).is_break() => return Ok(None),
            Err(_) => writer.pause().await?,
        }
    }
}

/// Makes an attempt on the runtime that the database's driver wants.
pub(super) async fn spawn_attempt<T: Send + 'static, E>(
    services: &NodeServices,
    attempt: impl Future<Output = Result<T, E>> + Send + 'static,
) -> Result<T, AttemptError>
where
    E: Send + 'static,
    AttemptError: From<E>,
{
    Ok(services.runtime.spawn(attempt).await??)
}
