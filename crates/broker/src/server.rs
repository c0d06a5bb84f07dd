//! The running broker: starts, keeps what it knows, and stops.

use std::sync::Arc;
use std::time::Duration;

use fieldline_codec::ReasonCode;
use fieldline_core::clock::SharedClock;
use fieldline_core::partial_budget::PartialBudget;
use fieldline_core::ports::{
    BrokerAdmin, BrokerStore, ClientAuthenticator, Journal, JournalConsumer, Partition,
};
use fieldline_event_loop::{EventLoopGroup, TrustedProxies};
use tokio::sync::{Semaphore, watch};
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
/// Name of the broker's queue in its journal.
const QUEUE: &str = "broker";

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
        let consumer = broker.restore().await?;
        let options = &broker.options;
        let stop = watch::Sender::new(false);
        let for_loops = broker.clone();
        let loops = EventLoopGroup::start("broker", options.event_loops, move |handle, runtime| {
            BrokerDriver::new(for_loops.clone(), handle, runtime)
        })?;
        let connections = permits_of(options);
        // What the restored positions say is stored before anything new is appended: the offsets of records that a crash
        // has taken are given out again.
        let consumer = store_changes(&broker, consumer, stop.subscribe()).await;
        let consumer = consumer.ok_or(BrokerStartError::Unreadable("changes"))?;
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

/// Stores what has changed, and lets the journal forget what lies before. Returns the consumer, unless the checkpoint has
/// panicked: then nobody knows any more what is stored.
async fn store_changes(
    broker: &Arc<Broker>,
    mut consumer: Box<dyn JournalConsumer>,
    stop: watch::Receiver<bool>,
) -> Option<Box<dyn JournalConsumer>> {
    let storing = broker.clone();
    let stored = tokio::task::spawn_blocking(move || storing.checkpoint(&|| *stop.borrow())).await;
    match stored {
        Ok(Some(position)) => {
            if let Err(error) = consumer.commit(broker.partition, position).await {
                warn!(%error, "the broker's journal does not take the position");
            }
        }
        Ok(None) => {}
        Err(error) => {
            error!(%error, "a checkpoint of the broker has failed: it serves nobody until the next start, which has everything from its journal");
            return None;
        }
    }
    Some(consumer)
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
        match store_changes(&broker, consumer, stop.clone()).await {
            Some(given_back) => consumer = given_back,
            // What is not stored is in the journal, which must not grow for ever.
            None => {
                closing.send_replace(true);
                end_connections(&broker);
                return false;
            }
        }
        if is_over {
            return true;
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
        broker.stats.keep_minute(broker.clock.now_ms());
        broker.run_due();
        let (sessions, retained) = (broker.sessions.read().len(), broker.retained.read().count());
        broker.stats.report(sessions, retained);
    }
}
