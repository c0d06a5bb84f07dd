//! Sends the blocks. One thread makes them; the library's thread tells what became of them.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use fieldline_core::logging::LogGate;
use fieldline_core::ports::AppendError;
use rdkafka::client::ClientContext;
use rdkafka::config::{FromClientConfigAndContext, RDKafkaLogLevel};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::{DeliveryResult, Message};
use rdkafka::producer::{BaseRecord, Producer, ProducerContext, ThreadedProducer};

use super::block::{self, BlockOrigin};
use super::client::{JournalContext, producer_config};
use super::outbox::PendingBlock;
use super::partition::LogPartition;
use super::shared::KafkaShared;

/// How long to wait before the next attempt to make a producer, or to send what the library does not take.
const RETRY_PAUSE: Duration = Duration::from_millis(200);
/// How often the sender looks at the clock while it has nothing to do.
const TICK: Duration = Duration::from_millis(200);
/// Capacity that the buffer for blocks keeps.
const KEEP_BYTES: usize = 1 << 20;
static REFUSED_GATE: LogGate = LogGate::new(1);

/// A block under way.
pub(crate) struct SentBlock {
    log: Arc<LogPartition>,
    block: PendingBlock,
    since: Instant,
}

/// Receives what becomes of blocks.
pub(crate) struct SenderContext {
    shared: Arc<KafkaShared>,
    client: JournalContext,
}

impl ClientContext for SenderContext {
    fn log(&self, level: RDKafkaLogLevel, facility: &str, message: &str) {
        self.client.log(level, facility, message);
    }

    fn error(&self, error: KafkaError, reason: &str) {
        self.client.error(error, reason);
        if self.client.0.is_dead.load(Ordering::Acquire) {
            self.shared.outbox.lock().rebuild = true;
            self.shared.work.notify_one();
        }
    }
}

impl ProducerContext for SenderContext {
    type DeliveryOpaque = Box<SentBlock>;

    fn delivery(&self, result: &DeliveryResult<'_>, sent: Box<SentBlock>) {
        match result {
            Ok(message) => self.shared.was_written(&sent, message.offset()),
            Err((error, _)) => self.shared.was_refused(&sent.log, &sent.block, error),
        }
    }
}

impl KafkaShared {
    fn was_written(&self, sent: &SentBlock, offset: i64) {
        let SentBlock { log, block, since } = sent;
        let block_number = log.block_at(offset);
        if offset < 0 {
            // Written by an attempt whose answer got lost: Kafka does not say where.
            log.is_doubtful.store(true, Ordering::Release);
        } else if !log.extend_by(block_number) {
            self.set_back(log, block_number + 1);
            log.is_doubtful.store(true, Ordering::Release);
        }
        log.note_block(block.records);
        log.note_written(log.end(), block.bytes.len());
        self.settle(log, block, true);
        block.complete(&Ok(()));
        let metrics = &self.metrics;
        metrics.appends.increment(block.appends);
        metrics.bytes.increment(block.bytes.len() as u64);
        metrics.commits.increment(1);
        metrics.commit_seconds.record(since.elapsed().as_secs_f64());
    }

    fn was_refused(&self, log: &LogPartition, block: &PendingBlock, error: &KafkaError) {
        if error.rdkafka_error_code() == Some(RDKafkaErrorCode::Fatal) {
            self.outbox.lock().rebuild = true;
        }
        self.kafka_metrics.failed_blocks.increment(1);
        if let Some(suppressed) = REFUSED_GATE.open() {
            tracing::error!(topic = %log.topic, partition = log.index(), %error, suppressed, "Kafka did not take a block, its senders are not acknowledged");
        }
        log.is_doubtful.store(true, Ordering::Release);
        self.settle(log, block, false);
        block.complete(&Err(AppendError::Failed(error.to_string().into())));
    }

    fn settle(&self, log: &LogPartition, block: &PendingBlock, was_written: bool) {
        let woken = self.outbox.lock().settle(log.slot, block, was_written);
        self.work.notify_one();
        self.wake(woken);
    }
}

/// Runs until the journal is closed and everything is written, or given up.
pub(crate) fn run(shared: &Arc<KafkaShared>, first: ThreadedProducer<SenderContext>) {
    let mut producer = Some(first);
    let mut buffer = Vec::new();
    loop {
        match shared.next_task() {
            SenderTask::Send(slot, origin, block) => {
                let log = shared.table.read().all().get(slot).cloned();
                let (Some(log), Some(producer)) = (log, &producer) else {
                    continue;
                };
                let since = Instant::now();
                block::encode(origin, block.records, &block.bytes, &mut buffer);
                shared.send(producer, Box::new(SentBlock { log, block, since }), &buffer);
                buffer.clear();
                if buffer.capacity() > KEEP_BYTES {
                    buffer.shrink_to(KEEP_BYTES);
                }
            }
            SenderTask::Rebuild => {
                // Its end fails what is under way.
                drop(producer.take());
                shared.outbox.lock().rebuild = false;
                shared.kafka_metrics.rebuilds.increment(1);
                tracing::error!(
                    "the connection to Kafka has failed for good, making a new one; what was under way is not acknowledged"
                );
                producer = Some(shared.new_producer());
            }
            SenderTask::End => break,
        }
    }
    drop(producer);
    let rest = shared.outbox.lock().take_rest();
    for block in rest {
        let why = "the journal stopped before the records were written";
        block.complete(&Err(AppendError::Failed(why.into())));
    }
    shared.ended.send_replace(true);
}

enum SenderTask {
    Send(usize, BlockOrigin, PendingBlock),
    Rebuild,
    End,
}

impl KafkaShared {
    /// Waits for something to do.
    fn next_task(&self) -> SenderTask {
        let mut outbox = self.outbox.lock();
        loop {
            if outbox.closing {
                let is_late = outbox.give_up_at.is_some_and(|at| Instant::now() >= at);
                if outbox.pending_bytes == 0 || is_late {
                    return SenderTask::End;
                }
            }
            if outbox.rebuild {
                return SenderTask::Rebuild;
            }
            if let Some((slot, origin, block)) = outbox.take() {
                return SenderTask::Send(slot, origin, block);
            }
            self.work.wait_for(&mut outbox, TICK);
        }
    }

    fn send(&self, producer: &ThreadedProducer<SenderContext>, sent: Box<SentBlock>, bytes: &[u8]) {
        let topic = Arc::clone(&sent.log.topic);
        let index = sent.log.index();
        let mut record = BaseRecord::<(), [u8], _>::with_opaque_to(&topic, sent)
            .partition(index)
            .payload(bytes);
        loop {
            let (error, refused) = match producer.send(record) {
                Ok(()) => return,
                Err(refused) => refused,
            };
            let is_full = error.rdkafka_error_code() == Some(RDKafkaErrorCode::QueueFull);
            if !is_full || producer.client().fatal_error().is_some() {
                let sent = refused.delivery_opaque;
                return self.was_refused(&sent.log, &sent.block, &error);
            }
            std::thread::sleep(RETRY_PAUSE);
            record = refused;
        }
    }

    /// Makes a producer.
    pub(crate) fn try_new_producer(self: &Arc<Self>) -> Result<ThreadedProducer<SenderContext>, KafkaError> {
        let context = SenderContext {
            shared: Arc::clone(self),
            client: JournalContext::default(),
        };
        ThreadedProducer::from_config_and_context(&producer_config(&self.options), context)
    }

    fn new_producer(self: &Arc<Self>) -> ThreadedProducer<SenderContext> {
        loop {
            match self.try_new_producer() {
                Ok(producer) => return producer,
                Err(error) => {
                    tracing::error!(%error, "cannot make a connection to Kafka");
                    std::thread::sleep(RETRY_PAUSE);
                }
            }
        }
    }
}
