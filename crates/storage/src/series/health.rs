//! Whether the store can write, and how it gets over a full disk.

use std::fs::File;
use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use fieldline_core::overload::{
    OverloadKind, OverloadMeasure, OverloadSample, OverloadScope, OverloadSource,
};
use fieldline_core::ports::{StoreError, StoreErrorKind, StoreResult};

use super::engine::SeriesEngine;
use super::error;
use super::metrics::REOPENED;
use super::store::{SeriesFiles, SeriesStore};

/// Room that must be there before the engine is reopened: its journal and one table.
const PROBE_BYTES: usize = 16 << 20;

/// Whether the store can write.
#[derive(Debug, Default)]
pub(super) enum SeriesHealth {
    #[default]
    Good,
    /// The disk was full when something was written.
    DiskFull,
    /// What is on disk is not known; only a restart finds out.
    Failed(String),
}

impl SeriesHealth {
    pub(super) fn check(&self) -> StoreResult<()> {
        match self {
            Self::Good => Ok(()),
            Self::DiskFull => Err(StoreError::new(
                StoreErrorKind::DiskFull,
                "the disk of the time-series store is full",
            )),
            Self::Failed(reason) => Err(StoreError::new(
                StoreErrorKind::Unavailable,
                format!("the time-series store has failed and needs a restart: {reason}"),
            )),
        }
    }
}

impl OverloadSource for SeriesStore {
    fn collect(&self, into: &mut Vec<OverloadSample>) {
        if let Some(refusal) = self.refusal() {
            into.push(OverloadSample {
                kind: OverloadKind::Disk,
                scope: OverloadScope::All,
                subject: "time series".into(),
                measure: OverloadMeasure::Level(0),
                limit: None,
                // The log has the details, which are not for tenants.
                reason: match refusal.kind() {
                    StoreErrorKind::DiskFull => {
                        "The disk of the time series is full: nothing is stored until there is room"
                    }
                    _ => "The store of time series has failed: nothing is stored until the program is restarted",
                }
                .into(),
            });
        }
    }
}

impl SeriesStore {
    /// Why nothing can be stored now, `None` when the store works.
    pub fn refusal(&self) -> Option<StoreError> {
        self.health.lock().check().err()
    }

    /// Takes note of a failed write, which the engine does not survive, and says what the caller is told.
    pub(super) fn note_write_failure(&self, error: StoreError) -> StoreError {
        let Some(files) = &self.files else {
            return self.note_remote_failure(error);
        };
        // A flush in the background that found the disk full is seen only as an engine that has given up.
        let is_full = error.kind() == StoreErrorKind::DiskFull || files.probe().is_err_and(|it| is_full(&it));
        let mut health = self.health.lock();
        match &*health {
            SeriesHealth::Good if is_full => {
                tracing::error!(%error, "disk full: the time-series store takes no writes until there is room");
                *health = SeriesHealth::DiskFull;
            }
            SeriesHealth::Good if error.kind() != StoreErrorKind::Corrupt => {
                tracing::error!(%error, "the time-series store has failed and needs a restart");
                *health = SeriesHealth::Failed(error.to_string());
            }
            _ => {}
        }
        match health.check() {
            Err(told) => told.caused_by(error),
            Ok(()) => error,
        }
    }

    /// A database that cannot be reached or has no room will be tried again. Only one that belongs to somebody else will not.
    fn note_remote_failure(&self, error: StoreError) -> StoreError {
        if self.engine().is_ok_and(|engine| engine.db.is_taken_over()) {
            tracing::error!(%error, "the time-series store has lost its tables and needs a restart");
            *self.health.lock() = SeriesHealth::Failed(error.to_string());
        }
        error
    }

    /// Takes note of a failed fsync: pages may be lost although they read well now, so there is no going on, not even
    /// where the reason was a full disk. Only when the engine had given up before, it is as with any write.
    pub(super) fn note_sync_failure(&self, error: StoreError) -> StoreError {
        let cause = std::error::Error::source(&error).and_then(|cause| cause.downcast_ref());
        if !matches!(cause, Some(fjall::Error::Poisoned)) {
            tracing::error!(%error, "fsync of the time-series store failed; it needs a restart");
            *self.health.lock() = SeriesHealth::Failed(error.to_string());
        }
        self.note_write_failure(error)
    }

    /// Reopens the engine after the disk was full, once there is room.
    pub(super) fn try_reopen(&self) {
        let Some(files) = &self.files else { return };
        if !matches!(*self.health.lock(), SeriesHealth::DiskFull) || files.probe().is_err() {
            return;
        }
        match self.reopen(files) {
            Ok(()) => {
                *self.health.lock() = SeriesHealth::Good;
                metrics::counter!(REOPENED).increment(1);
                tracing::info!("there is room on the disk again; the time-series store goes on");
            }
            Err(error) => tracing::error!(%error, "the time-series store could not be reopened"),
        }
    }

    fn reopen(&self, files: &SeriesFiles) -> StoreResult<()> {
        // The locks keep writers, the compaction and the sweeper out; readers finish on the old engine.
        let _packing = self.compacting.lock();
        let _one = self.checkpointing.lock();
        let _alone = self.gate.write();
        let mut held = self.engine.write();
        if let Some(mut old) = held.take() {
            loop {
                match Arc::try_unwrap(old) {
                    Ok(engine) => break drop(engine),
                    Err(shared) => old = shared,
                }
                std::thread::sleep(Duration::from_millis(5));
            }
        }
        *held = Some(Arc::new(SeriesEngine::open(
            &files.dir,
            &self.options,
            self.now_ms(),
        )?));
        Ok(())
    }
}

impl SeriesFiles {
    /// Tries whether the disk has room.
    fn probe(&self) -> std::io::Result<()> {
        let path = self.dir.join("room.probe");
        let written = write_probe(&path);
        // Removed in any case; a file left behind is overwritten by the next probe.
        let _ = std::fs::remove_file(&path);
        written
    }
}

fn is_full(error: &std::io::Error) -> bool {
    error::io_kind(error) == StoreErrorKind::DiskFull
}

fn write_probe(path: &std::path::Path) -> std::io::Result<()> {
    let mut file = File::create(path)?;
    let zeros = vec![0; 1 << 20];
    for _ in 0..PROBE_BYTES / zeros.len() {
        file.write_all(&zeros)?;
    }
    file.sync_all()
}
