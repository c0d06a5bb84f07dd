//! The task that sends the messages of one partition, in batches and in their order.

use std::sync::Arc;
use std::time::Duration;

use rskafka::client::Client;
use rskafka::client::partition::{Compression, PartitionClient, UnknownTopicHandling};
use rskafka::record::Record;
use tokio::sync::{OwnedSemaphorePermit, mpsc, oneshot};
use tokio::time::{Instant, timeout, timeout_at};

use super::client::with_reason;
use super::relay::SocksRelay;

/// A message that waits to be sent.
pub(super) struct QueuedKafkaRecord {
    pub(super) record: Record,
    pub(super) size: usize,
    /// Its share of the buffer.
    pub(super) permit: OwnedSemaphorePermit,
    /// Where to say at which offset it is.
    pub(super) reply: oneshot::Sender<Result<i64, String>>,
}

pub(super) struct PartitionSender {
    pub(super) client: Arc<Client>,
    /// What the connections of the client go through.
    pub(super) relay: Option<Arc<SocksRelay>>,
    pub(super) topic: String,
    pub(super) partition: i32,
    pub(super) batch_size: usize,
    pub(super) linger: Duration,
    pub(super) timeout: Duration,
    pub(super) compression: Compression,
    pub(super) queue: mpsc::Receiver<QueuedKafkaRecord>,
}

impl PartitionSender {
    /// Sends what comes until nobody can send more.
    pub(super) async fn run(mut self) {
        let mut partition = None;
        let mut left_over = None;
        loop {
            let first = match left_over.take() {
                Some(entry) => entry,
                None => match self.queue.recv().await {
                    Some(entry) => entry,
                    None => return,
                },
            };
            let (batch, over) = self.gather(first).await;
            left_over = over;
            self.send(batch, &mut partition).await;
        }
    }

    /// Takes what waits, up to the size of a batch, and waits a while for more.
    async fn gather(
        &mut self,
        first: QueuedKafkaRecord,
    ) -> (Vec<QueuedKafkaRecord>, Option<QueuedKafkaRecord>) {
        let deadline = Instant::now() + self.linger;
        let mut size = first.size;
        let mut batch = vec![first];
        while size < self.batch_size {
            let next = match self.queue.try_recv() {
                Ok(entry) => Some(entry),
                Err(_) if self.linger.is_zero() => None,
                Err(_) => timeout_at(deadline, self.queue.recv()).await.ok().flatten(),
            };
            let Some(entry) = next else { break };
            if size + entry.size > self.batch_size {
                return (batch, Some(entry));
            }
            size += entry.size;
            batch.push(entry);
        }
        (batch, None)
    }

    async fn send(&self, batch: Vec<QueuedKafkaRecord>, partition: &mut Option<PartitionClient>) {
        let mut records = Vec::with_capacity(batch.len());
        let mut waiting = Vec::with_capacity(batch.len());
        for entry in batch {
            // Whoever has given up does not want it sent.
            if !entry.reply.is_closed() {
                records.push(entry.record);
                waiting.push((entry.reply, entry.permit));
            }
        }
        if records.is_empty() {
            return;
        }
        let offsets = match timeout(self.timeout, self.produce(records, partition)).await {
            Ok(result) => result,
            Err(_) => Err(with_reason("no answer in time", self.relay.as_deref())),
        };
        match offsets {
            Ok(offsets) => {
                for ((reply, _), offset) in waiting.into_iter().zip(offsets) {
                    let _ = reply.send(Ok(offset));
                }
            }
            Err(error) => {
                // The next batch begins with a fresh connection.
                *partition = None;
                for (reply, _) in waiting {
                    let _ = reply.send(Err(error.clone()));
                }
            }
        }
    }

    async fn produce(
        &self,
        records: Vec<Record>,
        partition: &mut Option<PartitionClient>,
    ) -> Result<Vec<i64>, String> {
        let client = match partition {
            Some(client) => client,
            None => {
                let client = self
                    .client
                    .partition_client(&self.topic, self.partition, UnknownTopicHandling::Error)
                    .await
                    .map_err(|error| error.to_string())?;
                partition.insert(client)
            }
        };
        client
            .produce(records, self.compression)
            .await
            .map_err(|error| error.to_string())
    }
}
