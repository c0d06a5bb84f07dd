//! The running broker: starts, keeps what it knows, and stops.

use std::sync::Arc;
use std::time::Duration;

use fieldline_codec::ReasonCode;
use fieldline_core::clock::SharedClock;
use fieldline_core::partial_budget::PartialBudget;
use fieldline_core::ports::{
    BrokerAdmin, BrokerStatistics, BrokerStore, ClientAuthenticator, Journal, JournalConsumer, Partition,
};
use fieldline_event_loop::{EventLoopGroup, TrustedProxies};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinError;
use tokio::time::timeout;
use tracing::{error, info, warn};

use crate::admin::BrokerAdministration;
use crate::broker::Broker;
use crate::checkpoint::BrokerStartError;
use crate::connection::BrokerConnection;
use crate::driver::BrokerDriver;
use crate::login::BridgeAccess;
use crate::options::Options;
use crate::stats::BrokerStats;

/// Interval between checkpoints.
const CHECKPOINT_INTERVAL: Duration = Duration::from_secs(1);
/// Interval at which wills and sessions are looked for that are due.
const DUE_INTERVAL: Duration = Duration::from_millis(250);
/// Name of the broker's queue in its journal, and of the group that consumes it.
pub(crate) const QUEUE: &str = "broker";

/// What the broker stands on.
pub struct BrokerPorts {
    /// The time.
    pub clock: SharedClock,
    /// The broker's own journal.
    pub journal: Arc<dyn Journal>,
    /// The broker's own store.
    pub store: Arc<dyn BrokerStore>,
    /// Decides who may connect.
    pub authenticator: Arc<dyn ClientAuthenticator>,
    /// Proxies that may name the client behind them; they count if the options turn the PROXY protocol on.
    pub proxies: TrustedProxies,
}

/// The running broker.
pub struct BrokerServer {
    pub(crate) broker: Arc<Broker>,
    pub(crate) authenticator: Arc<dyn ClientAuthenticator>,
    /// Lets bridges in.
    pub(crate) bridges: Arc<dyn ClientAuthenticator>,
    /// Proxies that must send a PROXY protocol header; empty if the protocol is off.
    pub(crate) proxies: TrustedProxies,
    pub(crate) permits: Arc<Semaphore>,
    pub(crate) partial_budget: Arc<PartialBudget>,
    pub(crate) max_packet: u32,
    /// Accepts nobody any more.
    pub(crate) closing: watch::Sender<bool>,
    /// Stores what has changed a last time.
    stop: watch::Sender<bool>,
    pub(crate) loops: EventLoopGroup<BrokerConnection>,
    /// Ends when the last checkpoint is stored, and says whether it is.
    keeping: parking_lot::Mutex<Option<tokio::task::JoinHandle<bool>>>,
}

impl BrokerServer {
    /// Restores what was stored, and starts a broker that does not listen yet, in the context of a runtime.
    ///
    /// # Errors
    /// What was stored cannot be read, or the system has no threads or files left.
    pub async fn start(options: Options, ports: BrokerPorts) -> Result<Arc<Self>, BrokerStartError> {
        BrokerStats::describe();
        let queue = ports.journal.open_queue(QUEUE, 1)?;
        let partition = Partition { queue, index: 0 };
        let broker = Arc::new(Broker::new(
            options,
            ports.clock,
            ports.journal,
            partition,
            ports.store,
        ));
        let mut consumer = broker.restore().await?;
        let options = &broker.options;
        let stop = watch::Sender::new(false);
        let for_loops = broker.clone();
        let loops = EventLoopGroup::start("broker", options.event_loops, move |handle, runtime| {
            BrokerDriver::new(for_loops.clone(), handle, runtime)
        })?;
        let connections = permits_of(options);
        // What the restored positions say is stored before anything new is appended: the offsets of records that a crash
        // has taken are given out again.
        store_changes(&broker, &mut consumer, stop.subscribe())
            .await
            .map_err(std::io::Error::other)?;
        let closing = watch::Sender::new(false);
        let keeping = tokio::spawn(keep(broker.clone(), consumer, stop.subscribe(), closing.clone()));
        tokio::spawn(watch_due(broker.clone(), stop.subscribe()));
        tokio::spawn(crate::sys::run(broker.clone(), stop.subscribe()));
        info!(
            sessions = broker.sessions.read().len(),
            retained = broker.retained.read().count(),
            "the broker is restored"
        );
        Ok(Arc::new(Self {
            authenticator: ports.authenticator,
            bridges: Arc::new(BridgeAccess),
            proxies: match options.proxy_protocol {
                true => ports.proxies,
                false => TrustedProxies::default(),
            },
            permits: Arc::new(Semaphore::new(connections)),
            partial_budget: PartialBudget::new(options.partial_memory.as_usize()),
            // The fixed header takes up to five bytes.
            max_packet: u32::try_from(options.max_packet.0 + 5).unwrap_or(u32::MAX),
            closing,
            stop,
            loops,
            broker,
            keeping: parking_lot::Mutex::new(Some(keeping)),
        }))
    }

    /// The administration of the broker.
    pub fn admin(&self) -> Arc<dyn BrokerAdmin> {
        Arc::new(BrokerAdministration::new(self.broker.clone()))
    }

    /// The statistics of each minute of the clock that ends from now on, with what the broker had then. Who looks too late
    /// finds those of the last one only.
    pub fn minutes(&self) -> watch::Receiver<Option<BrokerStatistics>> {
        self.broker.stats.minutes.subscribe()
    }

    /// Stops accepting, ends all connections, and stores what has changed, within `patience`. Returns whether all has
    /// ended.
    pub async fn stop(&self, patience: Duration) -> bool {
        self.closing.send_replace(true);
        end_connections(&self.broker);
        let connections = u32::try_from(permits_of(&self.broker.options)).unwrap_or(u32::MAX);
        let ended = timeout(patience.mul_f64(0.5), self.permits.acquire_many(connections))
            .await
            .is_ok();
        self.stop.send_replace(true);
        let keeping = self.keeping.lock().take();
        let kept = match keeping {
            Some(keeping) => matches!(timeout(patience.mul_f64(0.5), keeping).await, Ok(Ok(true))),
            None => true,
        };
        ended && kept
    }
}

fn end_connections(broker: &Broker) {
    let sessions: Vec<_> = broker.sessions.read().values().cloned().collect();
    for session in sessions {
        session.lock().close_link(ReasonCode::ServerShuttingDown);
    }
}

fn permits_of(options: &Options) -> usize {
    options
        .max_connections
        .clamp(1, Semaphore::MAX_PERMITS.min(u32::MAX as usize))
}

/// Stores what has changed, and lets the journal forget what lies before. Returns whether all is stored.
///
/// # Errors
/// The checkpoint has panicked: nobody knows any more what is stored.
async fn store_changes(
    broker: &Arc<Broker>,
    consumer: &mut Box<dyn JournalConsumer>,
    stop: watch::Receiver<bool>,
) -> Result<bool, JoinError> {
    let storing = broker.clone();
    let stored = tokio::task::spawn_blocking(move || storing.checkpoint(&|| *stop.borrow())).await?;
    let Some(position) = stored else {
        return Ok(false);
    };
    if let Err(error) = consumer.commit(broker.partition, position).await {
        warn!(%error, "the broker's journal does not take the position");
    }
    Ok(true)
}

/// Stores what has changed until the broker stops, and once more then. Returns whether all is stored; the broker takes no clients
/// any more if that has come to an early end.
async fn keep(
    broker: Arc<Broker>,
    mut consumer: Box<dyn JournalConsumer>,
    mut stop: watch::Receiver<bool>,
    closing: watch::Sender<bool>,
) -> bool {
    let mut ticks = tokio::time::interval(CHECKPOINT_INTERVAL);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        let is_over = tokio::select! {
            _ = ticks.tick() => false,
            () = broker.has_much_unstored.notified() => false,
            _ = stop.wait_for(|stop| *stop) => true,
        };
        match store_changes(&broker, &mut consumer, stop.clone()).await {
            Ok(is_stored) if is_over => return is_stored,
            Ok(_) => {}
            Err(error) => {
                error!(%error, "a checkpoint of the broker has failed: it serves nobody until the next start, which has everything from its journal");
                // Which must not grow for ever.
                closing.send_replace(true);
                end_connections(&broker);
                return false;
            }
        }
    }
}

/// Looks for what is due, and counts, until the broker stops. A task of its own: a disk that does not answer holds up checkpoints.
async fn watch_due(broker: Arc<Broker>, mut stop: watch::Receiver<bool>) {
    let mut ticks = tokio::time::interval(DUE_INTERVAL);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            _ = ticks.tick() => {}
            _ = stop.wait_for(|stop| *stop) => return,
        }
        broker.keep_minute(broker.clock.now_ms());
        broker.run_due();
        let (sessions, retained) = (broker.sessions.read().len(), broker.retained.read().count());
        broker.stats.report(sessions, retained);
    }
}

#[cfg(test)]
mod tests {
    use std::ops::Range;
    use std::sync::atomic::{AtomicU8, Ordering};

    use fieldline_core::clock::SystemClock;
    use fieldline_core::ports::{
        BrokerChanges, BrokerTable, Offset, StoreError, StoreErrorKind, StoreResult,
    };
    use fieldline_journal::EmbeddedJournal;
    use fieldline_storage::broker::EmbeddedBrokerStore;

    use super::*;

    const FAILS: u8 = 1;
    const PANICS: u8 = 2;

    /// A store that breaks when it is told to.
    struct BreakingStore {
        store: EmbeddedBrokerStore,
        how: AtomicU8,
    }

    impl BrokerStore for BreakingStore {
        fn position(&self) -> StoreResult<Option<Offset>> {
            self.store.position()
        }

        fn apply(&self, changes: &BrokerChanges) -> StoreResult<()> {
            match self.how.load(Ordering::Relaxed) {
                FAILS => Err(StoreError::new(StoreErrorKind::Unavailable, "broken")),
                PANICS => panic!("broken"),
                _ => self.store.apply(changes),
            }
        }

        fn scan(
            &self,
            table: BrokerTable,
            keys: Range<&[u8]>,
            visit: &mut dyn FnMut(&[u8], &[u8]) -> bool,
        ) -> StoreResult<()> {
            self.store.scan(table, keys, visit)
        }

        fn disk_bytes(&self) -> StoreResult<u64> {
            self.store.disk_bytes()
        }
    }

    async fn start(dir: &tempfile::TempDir) -> (Arc<BrokerServer>, Arc<BreakingStore>) {
        let journal_options = fieldline_journal::Options::default();
        let journal =
            EmbeddedJournal::open(&dir.path().join("journal"), &journal_options).expect("a journal");
        let store = Arc::new(BreakingStore {
            store: EmbeddedBrokerStore::open(&dir.path().join("store")).expect("a store"),
            how: AtomicU8::new(0),
        });
        let ports = BrokerPorts {
            clock: Arc::new(SystemClock),
            journal: Arc::new(journal),
            store: store.clone(),
            authenticator: Arc::new(BridgeAccess),
            proxies: TrustedProxies::default(),
        };
        let server = BrokerServer::start(Options::default(), ports)
            .await
            .expect("a broker");
        (server, store)
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_checkpoint_that_panics_closes_the_broker() {
        let dir = tempfile::tempdir().expect("a directory");
        let (server, store) = start(&dir).await;
        let mut closing = server.closing.subscribe();
        assert!(!*closing.borrow());
        store.how.store(PANICS, Ordering::Relaxed);
        let is_closed = timeout(
            Duration::from_secs(30),
            closing.wait_for(|is_closing| *is_closing),
        )
        .await
        .is_ok();
        assert!(is_closed);
        assert!(!server.stop(Duration::from_secs(10)).await, "not all is stored");
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_stop_says_whether_all_is_stored() {
        let dir = tempfile::tempdir().expect("a directory");
        let (server, store) = start(&dir).await;
        store.how.store(FAILS, Ordering::Relaxed);
        assert!(!server.stop(Duration::from_secs(20)).await);
        drop((server, store));
        let other = tempfile::tempdir().expect("a directory");
        let (server, _store) = start(&other).await;
        assert!(server.stop(Duration::from_secs(20)).await);
    }
}
