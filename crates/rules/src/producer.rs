//! Messages from inside the platform into the queues.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use fieldline_core::ingest::{PUSH_TIMEOUT, QueueProducer};
use fieldline_core::ports::{
    AppendError, AppendFuture, EntityStores, RecordQueue, RuleEngine, StoreError, StoreErrorKind, StoreResult,
};
use fieldline_model::message::QueueMessage;
use fieldline_model::record::{JournalRecord, RecordBatch, RecordBody, diverted, split};
use fieldline_model::{DeviceId, EntityKey, EntityType, TenantId};
use tokio::time::Instant;

use crate::engine::Options;
use crate::lanes::{DivertError, SlowLanes};
use crate::message::moves_of;
use crate::originators::OriginatorCache;

/// How often nodes may put a message into queues that tenants share; from then on it goes through its tenant's lane, so that
/// chains that hand it to each other for ever take their tenant's turns alone.
const FREE_MOVES: u32 = 8;

/// Queues messages: in the queue they name, or in that of their originator's profile.
pub struct RuleMessageProducer {
    producer: QueueProducer,
    originators: Arc<OriginatorCache>,
    lanes: Arc<SlowLanes>,
    closed: AtomicBool,
}

impl RuleMessageProducer {
    /// A pusher to the journal, with what it has to know of originators and lanes.
    pub fn open(producer: QueueProducer, stores: EntityStores, options: &Options) -> Arc<Self> {
        let originators = OriginatorCache::new(stores, options.cached_originators);
        Arc::new(Self::new(producer, originators, SlowLanes::new(&options.lanes)))
    }

    /// A pusher to the journal.
    pub fn new(uplink: QueueProducer, originators: Arc<OriginatorCache>, lanes: Arc<SlowLanes>) -> Self {
        Self {
            producer: uplink,
            originators,
            lanes,
            closed: AtomicBool::new(false),
        }
    }

    pub(crate) const fn queue_producer(&self) -> &QueueProducer {
        &self.producer
    }

    pub(crate) const fn originators(&self) -> &Arc<OriginatorCache> {
        &self.originators
    }

    pub(crate) const fn lanes(&self) -> &Arc<SlowLanes> {
        &self.lanes
    }

    /// The queue that a message belongs to, and its record.
    async fn address(
        &self,
        tenant: TenantId,
        message: &QueueMessage,
    ) -> StoreResult<(Cow<'_, QueueProducer>, EntityKey, RecordBatch)> {
        let subject = EntityKey {
            tenant,
            entity: message.originator,
        };
        let originator = match message.queue {
            Some(_) => None,
            None => self.originators.get(subject).await?,
        };
        let of_profile = originator
            .as_ref()
            .and_then(|found| found.profile.as_ref()?.queue.as_deref());
        let queue = message.queue.as_deref().or(of_profile);
        let mut batch = RecordBatch::new();
        batch.push_message(tenant, message);
        Ok((self.producer.queue_for(tenant, queue), subject, batch))
    }

    /// Hands a message to the journal; the result resolves when it is durable.
    async fn append(
        &self,
        deadline: Instant,
        tenant: TenantId,
        message: &QueueMessage,
    ) -> StoreResult<AppendFuture> {
        let (uplink, subject, record) = self.address(tenant, message).await?;
        let taken = uplink.push(deadline, subject, &record).await;
        taken.map_err(|error| self.refused(error))
    }

    /// The queue that a message is to go to by the lane, where it has been moved often and tenants share that queue.
    fn leaves_shared<'a>(&self, uplink: &'a QueueProducer, message: &QueueMessage) -> Option<&'a str> {
        let queue = uplink.stored_name();
        let leaves =
            moves_of(message) > FREE_MOVES && self.lanes.are_open() && self.lanes.queue(queue).is_some();
        leaves.then_some(&**queue)
    }

    fn refused(&self, error: AppendError) -> StoreError {
        let kind = match error {
            AppendError::TooLarge { .. } => StoreErrorKind::Invalid,
            AppendError::Closed => {
                self.closed.store(true, Ordering::Release);
                StoreErrorKind::Unavailable
            }
            AppendError::Busy | AppendError::DiskFull | AppendError::Unreachable | AppendError::Failed(_) => {
                StoreErrorKind::Unavailable
            }
        };
        StoreError::new(kind, error.to_string())
    }

    fn not_diverted(&self, error: DivertError) -> StoreError {
        match error {
            DivertError::Append(error) => self.refused(error),
            DivertError::Full => StoreError::new(StoreErrorKind::Unavailable, error.to_string()),
            DivertError::Unwritable => StoreError::new(StoreErrorKind::Invalid, error.to_string()),
        }
    }

    /// Brings the originators of many messages into memory, as far as one query does it for many.
    async fn load_devices(&self, messages: &[(TenantId, QueueMessage)]) -> StoreResult<()> {
        let mut unknown: HashMap<TenantId, Vec<DeviceId>> = HashMap::new();
        for (tenant, message) in messages {
            let (tenant, entity) = (*tenant, message.originator);
            let is_device = entity.entity_type == EntityType::Device;
            if is_device
                && message.queue.is_none()
                && self.originators.peek(EntityKey { tenant, entity }).is_none()
            {
                unknown.entry(tenant).or_default().push(DeviceId(entity.id));
            }
        }
        for (tenant, devices) in unknown {
            self.originators.load_devices(tenant, &devices).await?;
        }
        Ok(())
    }
}

#[async_trait]
impl RuleEngine for RuleMessageProducer {
    async fn push(&self, tenant: TenantId, message: QueueMessage) -> StoreResult<()> {
        let (uplink, subject, record) = self.address(tenant, &message).await?;
        if let Some(queue) = self.leaves_shared(&uplink, &message) {
            let diverted = self.lanes.divert(tenant, &message, queue, PUSH_TIMEOUT).await;
            return diverted.map_err(|error| self.not_diverted(error));
        }
        let deadline = Instant::now() + PUSH_TIMEOUT;
        let done = uplink.push_durably(deadline, subject, &record).await;
        done.map_err(|error| self.refused(error))
    }

    fn log_number(&self) -> u64 {
        self.producer.journal().log_number()
    }

    fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    async fn push_all(&self, messages: Vec<(TenantId, QueueMessage)>) -> StoreResult<()> {
        let mut result = self.load_devices(&messages).await;
        // The journal gathers what is appended while it writes: all of them wait for few syncs.
        let mut appends = Vec::with_capacity(messages.len());
        // All of them together are as patient as one.
        let deadline = Instant::now() + PUSH_TIMEOUT;
        for (tenant, message) in &messages {
            match self.append(deadline, *tenant, message).await {
                Ok(append) => appends.push((append, *tenant, message)),
                Err(error) => result = result.and(Err(error)),
            }
        }
        for (append, tenant, message) in appends {
            result = result.and(match append.await {
                // Devices have used up their part of the disk just then: there is a part that only these messages have.
                Err(AppendError::DiskFull) => self.push(tenant, message.clone()).await,
                other => other.map_err(|error| self.refused(error)),
            });
        }
        result
    }
}

#[async_trait]
impl RecordQueue for RuleMessageProducer {
    async fn put_back(&self, queue: &str, subject: EntityKey, record: &[u8]) -> StoreResult<()> {
        let Ok(JournalRecord {
            received_ms,
            body: RecordBody::Diverted(body),
            ..
        }) = JournalRecord::decode(record)
        else {
            return self.producer.put_back(queue, subject, record).await;
        };
        let diverted = diverted::decode(subject, received_ms, body)
            .map_err(|error| StoreError::new(StoreErrorKind::Invalid, error.to_string()))?;
        if self.lanes.are_open() {
            let back = self.lanes.put_back(&diverted, PUSH_TIMEOUT).await;
            return back.map_err(|error| self.not_diverted(error));
        }
        // No lanes are wanted any more. It begins anew where it came from.
        let mut restored = RecordBatch::new();
        restored.restored(&diverted);
        match split(restored.as_bytes()).next() {
            Some(Ok(record)) => self.producer.put_back(diverted.queue, subject, record).await,
            _ => Err(StoreError::new(
                StoreErrorKind::Invalid,
                "The record cannot be read",
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use fieldline_core::options::ByteSize;
    use fieldline_core::ports::{Journal as _, Partition};
    use fieldline_journal::EmbeddedJournal;
    use fieldline_model::message::{MetadataMap, MsgType};
    use serde_json::json;

    use super::*;
    use crate::lanes::{LANE_QUEUE, LaneOptions};
    use crate::nodes::tests::World;

    #[tokio::test]
    async fn many_messages_go_to_the_queues_of_their_devices_and_one_that_is_refused_holds_none_back() {
        let world = World::new().await;
        let dir = tempfile::tempdir().unwrap();
        let options = fieldline_journal::Options::default();
        let largest = options.max_append.as_usize();
        let journal = Arc::new(EmbeddedJournal::open(dir.path(), &options).unwrap());
        let main = QueueProducer::open(journal.clone(), 2).unwrap();
        let fast = main.open_other(TenantId::NULL, "Fast", 2).unwrap();
        let profile = world
            .device_profile("fast", json!({ "defaultQueueName": "Fast" }))
            .await;
        let mut devices = Vec::new();
        for n in 0..40 {
            let patch = if n < 30 {
                json!({ "deviceProfileId": profile })
            } else {
                json!(null)
            };
            devices.push(world.device(&n.to_string(), patch).await);
        }
        let originators = OriginatorCache::new(world.services.stores.clone(), 64);
        let pusher =
            RuleMessageProducer::new(main.clone(), originators, SlowLanes::new(&LaneOptions::default()));
        let message = |originator, body: String| {
            let message = QueueMessage::new(MsgType::Connect, originator, 1, MetadataMap::new(), body);
            (world.tenant, message)
        };
        let mut messages: Vec<_> = devices
            .iter()
            .map(|device| message(*device, "{}".to_owned()))
            .collect();
        if let Some(first) = devices.first() {
            messages.insert(0, message(*first, "x".repeat(largest + 1)));
        }
        let refused = pusher.push_all(messages).await.unwrap_err();
        assert_eq!(refused.kind(), StoreErrorKind::Invalid);
        let held = |uplink: &QueueProducer| {
            let queue = uplink.queue();
            (0..2)
                .map(|index| journal.end(Partition { queue, index }).0)
                .sum::<u64>()
        };
        assert_eq!((held(&fast), held(&main)), (30, 10));
        journal.close().await;
    }

    #[tokio::test]
    async fn what_is_put_back_into_a_lane_has_room_there_or_none_and_goes_home_where_there_are_no_lanes() {
        let world = World::new().await;
        let dir = tempfile::tempdir().unwrap();
        let journal = EmbeddedJournal::open(dir.path(), &fieldline_journal::Options::default()).unwrap();
        let journal = Arc::new(journal);
        let main = QueueProducer::open(journal.clone(), 1).unwrap();
        let device = world.device("slow", json!(null)).await;
        let subject = world.subject(device);
        let message = QueueMessage::new(MsgType::Connect, device, 1, MetadataMap::new(), "{}".to_owned());
        let mut inner = RecordBatch::new();
        inner.push_message(world.tenant, &message);
        let record = split(inner.as_bytes()).next().unwrap().unwrap();
        let mut batch = RecordBatch::new();
        batch.push_diverted(&diverted::DivertedRecord {
            id: message.id,
            queue: "Main",
            record: JournalRecord::decode(record).unwrap(),
        });
        let diverted = split(batch.as_bytes()).next().unwrap().unwrap();

        let lanes = SlowLanes::new(&LaneOptions {
            backlog: ByteSize(2048),
            ..LaneOptions::default()
        });
        let originators = OriginatorCache::new(world.services.stores.clone(), 64);
        let pusher = RuleMessageProducer::new(main.clone(), originators, lanes.clone());
        let end = |uplink: &QueueProducer| {
            let queue = uplink.queue();
            journal.end(Partition { queue, index: 0 }).0
        };
        pusher.put_back(LANE_QUEUE, subject, diverted).await.unwrap();
        assert_eq!(end(&main), 1);

        let lane = main.open_unrouted(TenantId::NULL, LANE_QUEUE, 1).unwrap();
        lanes.open(lane.clone(), Vec::new());
        let mut came = 0;
        let refused = loop {
            match pusher.put_back(LANE_QUEUE, subject, diverted).await {
                Ok(()) => came += 1,
                Err(refused) => break refused,
            }
            assert_eq!((end(&lane), lanes.messages(world.tenant)), (came, came));
            assert!(came < 100, "there is no end to the room");
        };
        assert!(came > 0);
        assert_eq!(refused.kind(), StoreErrorKind::Unavailable);
        assert_eq!((end(&lane), lanes.messages(world.tenant)), (came, came));
        assert_eq!(end(&main), 1);
        journal.close().await;
    }
}
