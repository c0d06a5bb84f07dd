//! Keys of the stored tables. Numbers are big-endian and signed ones have their sign flipped, so that bytes sort like
//! numbers.
//!
//! ```text
//! subject := tenant [16] · entity type u8 · entity [16]
//! block   := epoch u64 · subject · ts of the first row i64 · smallest seq u64
//! series  := subject · name length u16 · name            chunk := series · first ts i64
//! group   := subject · scope u8 (0: latest values)       value := group · name
//! ```

use fieldline_core::ports::{Offset, Partition, QueueId};
use fieldline_model::timeseries::AttributeScope;
use fieldline_model::{EntityId, EntityKey, EntityType, TenantId};
use uuid::Uuid;

pub(super) const SUBJECT_BYTES: usize = 33;
pub(super) const GROUP_BYTES: usize = SUBJECT_BYTES + 1;
pub(super) const EPOCH_BYTES: usize = 8;
pub(super) const ROW_BYTES: usize = EPOCH_BYTES + SUBJECT_BYTES + 16;

/// Longest series name a chunk key can carry, with room for the rest within the engine's limit of 64 KiB.
pub(super) const MAX_NAME_BYTES: usize = 32 * 1024;

pub(super) type EntityKeyBytes = [u8; SUBJECT_BYTES];
pub(super) type ValueGroupKey = [u8; GROUP_BYTES];

pub(super) fn subject_key(subject: EntityKey) -> EntityKeyBytes {
    let mut key = [0; SUBJECT_BYTES];
    let (tenant, rest) = key.split_at_mut(16);
    tenant.copy_from_slice(subject.tenant.0.as_bytes());
    if let Some((kind, id)) = rest.split_first_mut() {
        *kind = subject.entity.entity_type as u8;
        id.copy_from_slice(subject.entity.id.as_bytes());
    }
    key
}

/// A number by which keys are spread over shards. Entity ids are uniform where they end, whatever version of UUID they are.
pub(super) fn spread(key: &[u8]) -> usize {
    let ends = key.iter().rev().take(9);
    ends.fold(0, |sum: usize, byte| {
        sum.wrapping_mul(31).wrapping_add(usize::from(*byte))
    })
}

/// The subject at the front of a key, for messages.
pub(super) fn read_subject(key: &[u8]) -> Option<EntityKey> {
    let (tenant, rest) = key.split_first_chunk::<16>()?;
    let (&kind, rest) = rest.split_first()?;
    let (id, _) = rest.split_first_chunk::<16>()?;
    Some(EntityKey {
        tenant: TenantId(Uuid::from_bytes(*tenant)),
        entity: EntityId::new(EntityType::from_code(kind)?, Uuid::from_bytes(*id)),
    })
}

/// What is greater than all keys that begin with this, and no greater than any other that is; `None` where nothing is.
pub(super) fn after_prefix(prefix: &[u8]) -> Option<Vec<u8>> {
    let mut end = prefix.to_vec();
    while let Some(last) = end.pop() {
        if last < u8::MAX {
            end.push(last + 1);
            return Some(end);
        }
    }
    None
}

fn group(subject: EntityKey, scope: u8) -> ValueGroupKey {
    group_of(&subject_key(subject), scope)
}

/// The group of a scope; 0 is that of the latest values.
pub(super) fn group_of(subject: &EntityKeyBytes, scope: u8) -> ValueGroupKey {
    let mut group = [0; GROUP_BYTES];
    if let Some((last, front)) = group.split_last_mut() {
        front.copy_from_slice(subject);
        *last = scope;
    }
    group
}

pub(super) fn latest_group(subject: EntityKey) -> ValueGroupKey {
    group(subject, 0)
}

pub(super) fn attribute_group(subject: EntityKey, scope: AttributeScope) -> ValueGroupKey {
    group(subject, scope as u8)
}

pub(super) const fn sortable(number: i64) -> [u8; 8] {
    ((number as u64) ^ (1 << 63)).to_be_bytes()
}

pub(super) const fn unsortable(bytes: [u8; 8]) -> i64 {
    (u64::from_be_bytes(bytes) ^ (1 << 63)) as i64
}

/// What all keys of an epoch begin with.
pub(super) fn epoch_key(epoch: u64) -> [u8; EPOCH_BYTES] {
    epoch.to_be_bytes()
}

/// The epoch that a key belongs to.
pub(super) fn read_epoch(key: &[u8]) -> Option<u64> {
    let (epoch, _) = key.split_first_chunk::<EPOCH_BYTES>()?;
    Some(u64::from_be_bytes(*epoch))
}

/// The key of a block without its epoch, for messages.
pub(super) fn without_epoch(key: &[u8]) -> &[u8] {
    key.get(EPOCH_BYTES..).unwrap_or_default()
}

pub(super) fn row_key(epoch: u64, subject: &EntityKeyBytes, ts: i64, seq: u64) -> [u8; ROW_BYTES] {
    let mut key = [0; ROW_BYTES];
    let (front, rest) = key.split_at_mut(EPOCH_BYTES);
    front.copy_from_slice(&epoch_key(epoch));
    let (front, rest) = rest.split_at_mut(SUBJECT_BYTES);
    front.copy_from_slice(subject);
    let (time, number) = rest.split_at_mut(8);
    time.copy_from_slice(&sortable(ts));
    number.copy_from_slice(&seq.to_be_bytes());
    key
}

/// Subject bytes, time of the first row and smallest sequence number of a block.
pub(super) fn read_row_key(key: &[u8]) -> Option<(&EntityKeyBytes, i64, u64)> {
    let (subject, rest) = without_epoch(key).split_first_chunk::<SUBJECT_BYTES>()?;
    let (ts, rest) = rest.split_first_chunk::<8>()?;
    let seq: [u8; 8] = rest.try_into().ok()?;
    Some((subject, unsortable(*ts), u64::from_be_bytes(seq)))
}

pub(super) fn series_prefix(subject: &EntityKeyBytes, name: &str) -> Vec<u8> {
    let mut key = Vec::with_capacity(SUBJECT_BYTES + 2 + name.len() + 8);
    key.extend_from_slice(subject);
    key.extend_from_slice(&(name.len() as u16).to_be_bytes());
    key.extend_from_slice(name.as_bytes());
    key
}

pub(super) fn chunk_key(series: &[u8], first_ts: i64) -> Vec<u8> {
    let mut key = Vec::with_capacity(series.len() + 8);
    key.extend_from_slice(series);
    key.extend_from_slice(&sortable(first_ts));
    key
}

/// The first time a chunk key names.
pub(super) fn chunk_first_ts(key: &[u8]) -> Option<i64> {
    let (_, ts) = key.split_last_chunk::<8>()?;
    Some(unsortable(*ts))
}

/// The series name within a series prefix or chunk key, for messages.
pub(super) fn read_series_name(key: &[u8]) -> Option<&str> {
    let rest = key.get(SUBJECT_BYTES..)?;
    let (length, rest) = rest.split_first_chunk::<2>()?;
    std::str::from_utf8(rest.get(..usize::from(u16::from_be_bytes(*length)))?).ok()
}

pub(super) fn position_key(partition: Partition) -> [u8; 5] {
    let [a, b] = partition.queue.0.to_be_bytes();
    let [c, d] = partition.index.to_be_bytes();
    [b'o', a, b, c, d]
}

pub(super) fn read_position(key: &[u8], value: &[u8]) -> Option<(Partition, Offset)> {
    let &[b'o', a, b, c, d] = key else { return None };
    let partition = Partition {
        queue: QueueId(u16::from_be_bytes([a, b])),
        index: u16::from_be_bytes([c, d]),
    };
    Some((partition, Offset(u64::from_be_bytes(value.try_into().ok()?))))
}
