//! Records removed from their queue and kept until somebody replays or deletes them.

use std::sync::{Arc, OnceLock};

use ::metrics::{Unit, counter, describe_counter};
use bytes::Bytes;
use fieldline_model::entity::{SetAsideInfo, SetAsideReason};
use fieldline_model::record::{JournalRecord, RecordBody, diverted};
use fieldline_model::{SetAsideId, TenantId, fnv};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::runtime::Handle;
use tokio::sync::Mutex;
use tracing::{error, info, warn};
use uuid::Uuid;

use crate::clock::SharedClock;
use crate::in_flight::{InFlightKept, InFlightTracker};
use crate::options::ByteSize;
use crate::ports::{
    Offset, Partition, RecordQueue, SetAsideOutcome, SetAsideQuota, SetAsideRawRecord, SetAsideStore,
    StoreError, StoreErrorKind, StoreResult,
};

const SET_ASIDE_TOTAL: &str = "fieldline_set_aside_records_total";
const DROPPED: &str = "fieldline_set_aside_dropped_records_total";
const REPLAYED: &str = "fieldline_set_aside_replayed_records_total";

/// Settings of records that are set aside.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Options {
    /// Quota of one tenant; beyond it, the tenant's oldest records are dropped. Each record counts 512 bytes more than
    /// its size.
    pub tenant_bytes: ByteSize,
    /// Quota of all tenants; beyond it, the oldest records of the tenant that uses the most are dropped.
    pub total_bytes: ByteSize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            tenant_bytes: ByteSize::mib(64),
            total_bytes: ByteSize::mib(512),
        }
    }
}

/// The original position of a record.
#[derive(Debug, Clone, Copy)]
pub struct RecordPosition<'a> {
    /// The stored name of its queue.
    pub queue: &'a str,
    /// Its partition.
    pub partition: Partition,
    /// Its position.
    pub offset: Offset,
}

/// Sets records aside, and replays them.
pub struct SetAsideService {
    store: Arc<dyn SetAsideStore>,
    queue: Arc<dyn RecordQueue>,
    clock: SharedClock,
    room: SetAsideQuota,
    /// The database driver needs its own runtime.
    runtime: Handle,
    /// Serializes replays: two concurrent ones of the same record would replay it twice.
    replaying: Mutex<()>,
    in_flight: OnceLock<Arc<InFlightTracker>>,
}

impl SetAsideService {
    /// Creates the service on a store. Call on the runtime of its driver.
    pub fn new(
        store: Arc<dyn SetAsideStore>,
        queue: Arc<dyn RecordQueue>,
        clock: SharedClock,
        options: &Options,
    ) -> Arc<Self> {
        describe_counter!(
            SET_ASIDE_TOTAL,
            Unit::Count,
            "Records that were set aside, by the reason"
        );
        describe_counter!(
            DROPPED,
            Unit::Count,
            "Records that were set aside and dropped for want of room"
        );
        describe_counter!(
            REPLAYED,
            Unit::Count,
            "Records that were set aside and put back into their queue"
        );
        Arc::new(Self {
            store,
            queue,
            clock,
            room: SetAsideQuota {
                of_tenant: options.tenant_bytes.0,
                in_total: options.total_bytes.0,
            },
            runtime: Handle::current(),
            replaying: Mutex::default(),
            in_flight: OnceLock::new(),
        })
    }

    /// Connects the tracker: a replayed record is no longer suspected.
    pub fn acquit_in(&self, in_hand: &Arc<InFlightTracker>) {
        // Only the first call counts: a program has one tracker.
        let _ = self.in_flight.set(in_hand.clone());
    }

    /// Keeps a record for a reason. The record is durable when the call returns, and repeated calls for the same record
    /// keep it once. Data that cannot be decoded, or that belongs to a tenant that does not exist, is given up.
    ///
    /// # Errors
    /// The store failed.
    pub async fn keep(
        &self,
        place: RecordPosition<'_>,
        bytes: Bytes,
        reason: SetAsideReason,
        (deaths, details): (u32, String),
    ) -> StoreResult<()> {
        let Ok(record) = JournalRecord::decode(&bytes) else {
            error!(queue = place.queue, partition = %place.partition, offset = place.offset.0, "gave up a record that cannot be decoded");
            return Ok(());
        };
        let info = SetAsideInfo {
            id: diverted_id(record).map_or_else(|| id_of(place, &bytes), id_of_message),
            created_time: self.clock.now_ms(),
            tenant_id: record.subject.tenant,
            entity_id: record.subject.entity,
            queue_name: place.queue.to_owned(),
            partition: place.partition.index,
            offset: i64::try_from(place.offset.0).unwrap_or(i64::MAX),
            received_time: record.received_ms,
            reason,
            details,
            deaths,
            size: i64::try_from(bytes.len()).unwrap_or(i64::MAX),
        };
        let record = SetAsideRawRecord { info, bytes };
        let (store, room) = (self.store.clone(), self.room);
        let keeping = self.runtime.spawn(async move {
            let kept = store.keep(&record, room).await;
            (record.info, kept)
        });
        let (info, kept) = keeping.await.map_err(|error| {
            StoreError::new(StoreErrorKind::Unavailable, "A record could not be set aside").caused_by(error)
        })?;
        match kept {
            Ok(kept) => {
                log_set_aside(&info, kept);
                Ok(())
            }
            Err(error) if error.kind() == StoreErrorKind::NotFound => {
                warn!(tenant = %info.tenant_id, entity = %info.entity_id, "gave up a record of a tenant that is no more");
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    /// The store of the kept records.
    pub fn store(&self) -> &Arc<dyn SetAsideStore> {
        &self.store
    }

    /// Appends a record to its queue again, and keeps it no longer. Returns whether the tenant (any tenant, if `None`)
    /// had it. A crash in between leaves the record in both places.
    ///
    /// # Errors
    /// The queue or the store failed.
    pub async fn replay(&self, tenant: Option<TenantId>, id: SetAsideId) -> StoreResult<bool> {
        let _one = self.replaying.lock().await;
        let Some(record) = self.store.get(tenant, id).await? else {
            return Ok(false);
        };
        let info = &record.info;
        self.acquit(&record.bytes);
        self.queue
            .put_back(&info.queue_name, info.entity_key(), &record.bytes)
            .await?;
        self.store.delete(tenant, id).await?;
        counter!(REPLAYED).increment(1);
        info!(tenant = %info.tenant_id, entity = %info.entity_id, queue = info.queue_name, "a record that was set aside is replayed");
        Ok(true)
    }

    /// Ends the suspicion of a slow-lane message. It is suspected by its id, which it keeps.
    fn acquit(&self, record: &[u8]) {
        let Some(in_hand) = self.in_flight.get() else {
            return;
        };
        let Ok(record) = JournalRecord::decode(record) else {
            return;
        };
        if let Some(id) = diverted_id(record) {
            let tenant = record.subject.tenant;
            in_hand.acquit_kept(InFlightKept { tenant, id });
        }
    }
}

/// The id of the message in a slow-lane record.
fn diverted_id(record: JournalRecord<'_>) -> Option<Uuid> {
    let RecordBody::Diverted(body) = record.body else {
        return None;
    };
    let diverted = diverted::decode(record.subject, record.received_ms, body).ok()?;
    Some(diverted.id)
}

/// Derives an id from the message. The message may reach its lane several times, if its source is processed again after
/// a crash.
fn id_of_message(message: Uuid) -> SetAsideId {
    let id = fnv::hash_128(message.as_bytes().iter().copied());
    SetAsideId(uuid::Builder::from_custom_bytes(id.to_be_bytes()).into_uuid())
}

/// Derives an id that is unique to the record.
fn id_of(place: RecordPosition<'_>, bytes: &[u8]) -> SetAsideId {
    let begin = fnv::hash(place.offset.0, place.queue.bytes());
    let of_place = begin ^ u64::from(place.partition.index).rotate_left(48);
    let of_bytes = fnv::hash(place.offset.0.rotate_left(7), bytes.iter().copied());
    let mixed = Uuid::from_u64_pair(of_place, of_bytes);
    SetAsideId(uuid::Builder::from_custom_bytes(mixed.into_bytes()).into_uuid())
}

fn log_set_aside(info: &SetAsideInfo, kept: SetAsideOutcome) {
    if kept.dropped > 0 {
        counter!(DROPPED).increment(kept.dropped);
        warn!(tenant = %info.tenant_id, dropped = kept.dropped, "dropped the oldest records that were set aside, there is no more room");
    }
    if !kept.is_new {
        return;
    }
    counter!(SET_ASIDE_TOTAL, "reason" => info.reason.name()).increment(1);
    error!(tenant = %info.tenant_id, entity = %info.entity_id, queue = info.queue_name, partition = info.partition, offset = info.offset, reason = info.reason.name(), deaths = info.deaths, id = %info.id.0, "set a record aside");
}
