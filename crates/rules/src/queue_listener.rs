//! Opens and changes the queues of the engine when somebody saves them.

use std::sync::Arc;

use fieldline_core::events::{ChangeKind, EntityChange, EntityListener, SettledFuture};
use fieldline_core::ingest::IngestService;
use tokio::sync::{Mutex, watch};
use tracing::error;

use crate::engine::RuleEngineService;

/// See the module.
pub struct QueueListener {
    engine: Arc<RuleEngineService>,
    /// Runs the workers of the queues.
    ingest: Arc<IngestService>,
    /// One change after the other.
    opening: Arc<Mutex<()>>,
    progress: Arc<watch::Sender<QueueChanges>>,
}

/// How many changes of queues there were since the start, and how many of them are in force.
#[derive(Clone, Copy, Default)]
struct QueueChanges {
    published: u64,
    in_force: u64,
}

impl QueueListener {
    /// Creates a listener that opens the queues of the engine.
    pub fn new(engine: Arc<RuleEngineService>, ingest: Arc<IngestService>) -> Self {
        Self {
            engine,
            ingest,
            opening: Arc::default(),
            progress: Arc::default(),
        }
    }

    fn open_queues(&self) {
        let mut number = 0;
        self.progress.send_modify(|changes| {
            changes.published += 1;
            number = changes.published;
        });
        let (engine, ingest) = (self.engine.clone(), self.ingest.clone());
        let (opening, progress) = (self.opening.clone(), self.progress.clone());
        self.engine.shared().services.runtime.spawn(async move {
            let _turn = opening.lock().await;
            let begun = *progress.borrow();
            if begun.in_force >= number {
                // All queues were read after this change.
                return;
            }
            match engine.open_queues(&ingest).await {
                Ok(()) => progress.send_modify(|changes| changes.in_force = begun.published),
                // Whoever waits is told after its patience; the next change opens what is missing.
                Err(error) => error!(%error, "cannot open the queues of the rule engine"),
            }
        });
    }
}

impl EntityListener for QueueListener {
    fn on_change(&self, change: EntityChange) {
        match (change.deleted_tenant(), change.what) {
            (Some(tenant), _) => {
                self.engine.lanes().forget(tenant);
                self.open_queues();
            }
            (None, ChangeKind::Queues) => self.open_queues(),
            _ => {}
        }
    }

    fn settled(&self) -> Option<SettledFuture> {
        let mut progress = self.progress.subscribe();
        let published = progress.borrow().published;
        Some(Box::pin(async move {
            let _ = progress.wait_for(|changes| changes.in_force >= published).await;
        }))
    }
}
