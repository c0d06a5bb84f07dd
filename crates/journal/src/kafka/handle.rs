//! The journal's handle.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use fieldline_core::ports::{
    AppendError, AppendFuture, AppendOrigin, HoldBackCause, Journal, JournalConsumer, JournalError, Offset,
    Partition, QueueId,
};
use fieldline_model::record::RecordBatch;
use parking_lot::{Condvar, Mutex, RwLock};
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::sync::{Notify, watch};

use super::block::position;
use super::client::ANSWER_TIMEOUT;
use super::consumer::KafkaMember;
use super::group::ConsumerGroup;
use super::metrics::KafkaMetrics;
use super::outbox::Outbox;
use super::partition::LogPartition;
use super::queue_log::QueueLog;
use super::shared::{KafkaShared, QueueTable};
use super::topics::{TopicKind, Topics};
use super::{keeper, sender};
use crate::backpressure::{self, RoomWaiter};
use crate::error::{failed, invalid};
use crate::metrics::JournalMetrics;
use crate::options::Options;

/// How long a start waits for Kafka.
const START_TIMEOUT: Duration = Duration::from_secs(60);
/// How long a journal that is dropped without being closed waits for what is under way.
const LAST_BLOCKS: Duration = Duration::from_secs(1);
/// How long it waits for its other threads.
const KEEPERS_TIMEOUT: Duration = Duration::from_secs(3);

/// The journal on Kafka.
pub struct KafkaJournal {
    shared: Arc<KafkaShared>,
    sender: Option<JoinHandle<()>>,
    /// Threads that run until their sender is dropped.
    keepers: Vec<(mpsc::Sender<()>, JoinHandle<()>)>,
}

impl std::fmt::Debug for KafkaJournal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("KafkaJournal").finish_non_exhaustive()
    }
}

impl KafkaJournal {
    /// Connects to Kafka, for which a start waits a minute. It blocks.
    ///
    /// # Errors
    /// Kafka does not answer, or refuses what the journal needs.
    pub fn open(options: &Options) -> Result<Self, JournalError> {
        options.check().map_err(invalid)?;
        let topics = Topics::new(options)?;
        wait_for_kafka(options, &topics)?;
        let queue_log = QueueLog::open(options, &topics)?;
        let kafka_metrics = KafkaMetrics::describe();
        kafka_metrics.reachable.set(1.0);
        let shared = Arc::new(KafkaShared {
            options: options.clone(),
            topics,
            queue_log: Mutex::new(queue_log),
            table: RwLock::new(QueueTable::default()),
            outbox: Mutex::new(Outbox::new(options)),
            work: Condvar::new(),
            room: Notify::new(),
            internal_room: Notify::new(),
            waiting_senders: AtomicUsize::new(0),
            ended: watch::Sender::new(false),
            is_down: false.into(),
            groups: Mutex::default(),
            metrics: JournalMetrics::describe(),
            kafka_metrics,
        });
        let producer = shared
            .try_new_producer()
            .map_err(super::client::refused("make a producer of Kafka"))?;
        let sending = Arc::clone(&shared);
        let sender = spawn("journal", move || sender::run(&sending, producer))?;
        let mut journal = Self {
            shared,
            sender: Some(sender),
            keepers: Vec::new(),
        };
        journal.keep("journal-watch", backpressure::watch)?;
        journal.keep("journal-keeper", keeper::run)?;
        Ok(journal)
    }

    fn keep(
        &mut self,
        name: &str,
        run: impl FnOnce(&Arc<KafkaShared>, &mpsc::Receiver<()>) + Send + 'static,
    ) -> Result<(), JournalError> {
        let (stop, told) = mpsc::channel();
        let shared = Arc::clone(&self.shared);
        let thread = spawn(name, move || run(&shared, &told))?;
        self.keepers.push((stop, thread));
        Ok(())
    }

    fn stop(&self) {
        self.shared.outbox.lock().closing = true;
        self.shared.work.notify_one();
        self.shared.room.notify_waiters();
        self.shared.internal_room.notify_waiters();
    }
}

impl Drop for KafkaJournal {
    fn drop(&mut self) {
        self.stop();
        self.shared.outbox.lock().give_up_at = Some(Instant::now() + LAST_BLOCKS);
        if let Some(sender) = self.sender.take()
            && sender.join().is_err()
        {
            tracing::error!("the journal's thread had panicked");
        }
        let threads: Vec<_> = self.keepers.drain(..).map(|(_, thread)| thread).collect();
        // One may wait for an answer of Kafka, which changes nothing any more.
        let deadline = Instant::now() + KEEPERS_TIMEOUT;
        while threads.iter().any(|thread| !thread.is_finished()) && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(5));
        }
        self.shared.groups.lock().clear();
    }
}

fn spawn(name: &str, run: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>, JournalError> {
    std::thread::Builder::new()
        .name(name.to_owned())
        .spawn(run)
        .map_err(failed(format!("start the thread {name}")))
}

fn wait_for_kafka(options: &Options, topics: &Topics) -> Result<(), JournalError> {
    let deadline = Instant::now() + START_TIMEOUT;
    let servers = options.kafka.servers.as_deref().unwrap_or_default();
    let mut is_told = false;
    loop {
        let error = match topics.answers(ANSWER_TIMEOUT) {
            Ok(()) => return Ok(()),
            Err(error) => error,
        };
        if Instant::now() >= deadline {
            return Err(super::client::refused(format!(
                "Kafka at {servers} does not answer"
            ))(error));
        }
        if !std::mem::replace(&mut is_told, true) {
            tracing::warn!(servers, %error, "Kafka does not answer yet, waiting for it");
        }
        std::thread::sleep(Duration::from_millis(200));
    }
}

/// Runs what waits for the network. The other tasks of the thread go on elsewhere, where the runtime can move them.
fn waiting<T>(work: impl FnOnce() -> T) -> T {
    match Handle::try_current().map(|handle| handle.runtime_flavor()) {
        Ok(RuntimeFlavor::MultiThread) => tokio::task::block_in_place(work),
        _ => work(),
    }
}

impl KafkaShared {
    fn open_queue(&self, name: &str, asked: u16) -> Result<QueueId, JournalError> {
        // Held all the time, so that nobody else opens the same queue.
        let mut log = self.queue_log.lock();
        let known = log.find(name);
        if let Some(line) = known
            && !self.table.read().queue(line.queue).is_empty()
        {
            return Ok(line.queue);
        }
        if asked == 0 {
            return Err(invalid(format!("queue `{name}` needs at least one partition")));
        }
        let topic: Arc<str> = self.topics.of_queue(name)?.into();
        let wanted = known.map_or(self.options.kafka.partitions, |line| line.partitions);
        let (found, is_new) = self.topics.ensure(&topic, TopicKind::Queue(wanted))?;
        if is_new && known.is_some() {
            tracing::error!(%topic, "a topic of the journal is gone from Kafka with all that was in it, it was created again");
        }
        let is_again = is_new && known.is_some();
        let line = log.add_queue(&self.options, &self.topics.queue_log(), (name, found), is_again)?;
        let (queue, count) = (line.queue, line.partitions);
        if found < count {
            return Err(JournalError::Corrupt(format!(
                "topic {topic} has {found} partitions, but queue `{name}` was created with {count}: restore it, or delete \
                 it with all that is in it"
            )));
        }
        if found > count {
            // Devices would find themselves in other partitions, before what they have sent is consumed.
            tracing::warn!(%topic, partitions = found, used = count, "partitions were added to a topic of the journal, they are not used");
        }
        let ends = (0..count).map(|index| self.topics.bounds(&topic, i32::from(index)));
        let ends = ends.collect::<Result<Vec<_>, _>>()?;
        let mut table = self.table.write();
        let base = self.outbox.lock().add_partitions(count);
        let partitions = (0..count).zip(ends).map(|(index, ends)| {
            let partition = Partition { queue, index };
            let slot = base + usize::from(index);
            let place = (partition, Arc::clone(&topic), slot);
            Arc::new(LogPartition::new(place, line.base, ends))
        });
        table.add(queue, partitions.collect());
        Ok(queue)
    }

    /// Notes for good that a group consumes a queue; waits for Kafka.
    pub(crate) fn note_group(&self, queue: QueueId, group: &str) -> Result<(), JournalError> {
        let topic = self.topics.queue_log();
        self.queue_log
            .lock()
            .add_group(&self.options, &topic, queue, group)
    }
}

#[async_trait]
impl Journal for KafkaJournal {
    fn open_queue(&self, name: &str, partitions: u16) -> Result<QueueId, JournalError> {
        waiting(|| self.shared.open_queue(name, partitions))
    }

    fn partitions(&self, queue: QueueId) -> u16 {
        self.shared.table.read().queue(queue).len() as u16
    }

    fn queues(&self) -> Vec<String> {
        self.shared.queue_log.lock().names()
    }

    fn append(
        &self,
        partition: Partition,
        records: &RecordBatch,
        origin: AppendOrigin,
    ) -> Result<AppendFuture, AppendError> {
        if records.is_empty() {
            return Ok(AppendFuture::durable());
        }
        let limit = self.shared.options.max_append.as_usize();
        if records.as_bytes().len() > limit {
            return Err(AppendError::TooLarge { limit });
        }
        let slot = self.shared.table.read().get(partition).map(|log| log.slot);
        let slot =
            slot.ok_or_else(|| AppendError::Failed(format!("there is no partition {partition}").into()))?;
        let (group, wake) = self.shared.outbox.lock().add(slot, records, origin)?;
        if wake {
            self.shared.work.notify_one();
        }
        Ok(AppendFuture::of(group))
    }

    async fn ready(&self, origin: AppendOrigin) {
        let room = match origin {
            AppendOrigin::Device(_) => &self.shared.room,
            AppendOrigin::Internal(_) => &self.shared.internal_room,
        };
        loop {
            let notified = room.notified();
            tokio::pin!(notified);
            notified.as_mut().enable();
            {
                let mut outbox = self.shared.outbox.lock();
                if outbox.is_ready(origin) {
                    return;
                }
                outbox.hold_back(origin);
            }
            let _waiting = RoomWaiter::among(&self.shared.waiting_senders);
            notified.await;
        }
    }

    fn subscribe(
        &self,
        queue: QueueId,
        group: &str,
        members: u16,
    ) -> Result<Vec<Box<dyn JournalConsumer>>, JournalError> {
        let logs: Vec<_> = self.shared.table.read().queue(queue).to_vec();
        if logs.is_empty() {
            return Err(invalid(format!("there is no queue {}", queue.0)));
        }
        let client = {
            let mut groups = self.shared.groups.lock();
            match groups.get(group) {
                Some(known) => Arc::clone(known),
                None => {
                    let new = Arc::new(ConsumerGroup::new(&self.shared.options, group)?);
                    groups.insert(group.to_owned(), Arc::clone(&new));
                    new
                }
            }
        };
        let members = usize::from(members.max(1));
        let member = |number: usize| -> Box<dyn JournalConsumer> {
            let mine = logs.iter().skip(number).step_by(members).cloned();
            let group = (group, Arc::clone(&client));
            Box::new(KafkaMember::new(Arc::clone(&self.shared), queue, group, mine))
        };
        Ok((0..members).map(member).collect())
    }

    fn end(&self, partition: Partition) -> Offset {
        let log = self.shared.partition(partition);
        Offset(log.map_or(0, |log| position(log.end(), 0)))
    }

    fn tail(&self, partition: Partition) -> Offset {
        let Some(log) = self.shared.partition(partition) else {
            return Offset(0);
        };
        let outbox = self.shared.outbox.lock();
        Offset(outbox.tail(log.slot, log.end()))
    }

    fn records_between(&self, partition: Partition, from: Offset, to: Offset) -> u64 {
        let log = self.shared.partition(partition);
        log.map_or(0, |log| log.records_between(from.0, to.0))
    }

    fn refusal(&self) -> Option<AppendError> {
        let refusal = self.shared.outbox.lock().refusal();
        let is_down = self.shared.is_down.load(Ordering::Acquire);
        refusal.or(is_down.then_some(AppendError::Unreachable))
    }

    fn held_back(&self) -> Vec<(HoldBackCause, Duration)> {
        let totals = self.shared.outbox.lock().backpressure.totals();
        let held = HoldBackCause::ALL.into_iter().zip(totals);
        held.filter(|(cause, _)| *cause != HoldBackCause::Disk).collect()
    }

    async fn close(&self) {
        self.stop();
        let mut ended = self.shared.ended.subscribe();
        // Fails only without a sender, which `shared` holds.
        let _ = ended.wait_for(|ended| *ended).await;
    }
}
