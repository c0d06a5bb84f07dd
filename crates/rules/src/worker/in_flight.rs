//! What the worker has in hand that is no record of its queue: a message of a lane, something that has come due. The
//! process that dies of it twice leaves it out: a message is set aside, what was kept is given up.

use bytes::Bytes;
use fieldline_core::in_flight::{CrashCount, InFlightKept};
use fieldline_core::ingest::{EffectWriter, IngestShutdown};
use fieldline_core::ports::{Offset, StateKey};
use fieldline_model::fnv;
use fieldline_model::record::diverted::DivertedRecord;
use fieldline_model::record::{RecordBatch, split};
use uuid::Uuid;

use super::lane_scheduler::LaneItem;

/// What is kept until its time comes.
pub(super) fn due(key: &StateKey) -> InFlightKept {
    let ids = [key.subject.entity.id, key.owner];
    let bytes = ids.iter().flat_map(|id| id.as_bytes()).copied();
    let id = fnv::hash_128(bytes.chain(key.number.to_le_bytes()));
    InFlightKept {
        tenant: key.subject.tenant,
        id: Uuid::from_u128(id),
    }
}

/// Sets a message of the lane aside; returns false where there is nowhere to keep it.
pub(super) async fn set_aside(
    item: &LaneItem,
    diverted: &DivertedRecord<'_>,
    deaths: CrashCount,
    writer: &EffectWriter,
) -> Result<bool, IngestShutdown> {
    let mut records = RecordBatch::new();
    records.push_diverted(diverted);
    let Some(Ok(record)) = split(records.as_bytes()).next() else {
        return Ok(false);
    };
    let (at, record) = (Offset(item.key.number), Bytes::copy_from_slice(record));
    writer.set_aside(item.partition, at, record, deaths).await
}
