//! What messages have stored before the position behind them is stored.
//!
//! A message that waits has what it saved stored at once, while its record is done with only later. Tried again, or done again
//! after a crash, it would store the same once more, over what a person has written or deleted meanwhile. Therefore each such
//! effect leaves a mark, stored with it in one batch, and is skipped where its mark is known. Marks go with the record: they
//! are kept as states, and forgotten in the batch that moves the position past it.
//!
//! ```text
//! value := record u64 · (mark u128)*
//! ```

use fieldline_core::ports::{Partition, StateKey, StateRow};
use fieldline_model::timeseries::AttributeScope;
use fieldline_model::{EntityId, EntityKey, TenantId, fnv};
use rustc_hash::{FxHashMap, FxHashSet};
use uuid::Uuid;

use super::keyed_states::KeyedStates;
use crate::message::RuleMessage;

/// Who keeps marks.
pub(super) const MARK_STATE_OWNER: Uuid = Uuid::from_u128(0x3a7e_0000_0000_4000_8000_0000_0000_0001);
/// The record of what is not read from a queue but has come due.
pub(super) const DUE: u64 = u64::MAX;

/// What an effect comes from: the same when its message is done again, and for no other effect of the message.
#[derive(Debug, Clone, Copy)]
pub struct EffectSource {
    message: Uuid,
    /// The node or the calculated field.
    maker: Uuid,
    hops: u32,
}

impl EffectSource {
    /// What a node or field does because of a message.
    pub fn of(msg: &RuleMessage, maker: Uuid) -> Self {
        Self {
            message: msg.id,
            maker,
            hops: msg.hops,
        }
    }

    /// The mark of values of one time.
    pub fn telemetry_mark(&self, subject: EntityKey, ts: i64, values: &[u8]) -> u128 {
        self.mark(subject, &ts.to_le_bytes(), values)
    }

    /// The mark of attributes. Their time is not part of it: it is that of the clock.
    pub fn attributes_mark(&self, subject: EntityKey, scope: AttributeScope, values: &[u8]) -> u128 {
        self.mark(subject, scope.name().as_bytes(), values)
    }

    fn mark(&self, subject: EntityKey, what: &[u8], values: &[u8]) -> u128 {
        let ids = [self.message, self.maker, subject.tenant.0, subject.entity.id];
        let bytes = ids.iter().flat_map(|id| id.as_bytes()).copied();
        let bytes = bytes.chain(self.hops.to_le_bytes());
        fnv::hash_128(bytes.chain(what.iter().chain(values).copied()))
    }
}

/// Effects stored together that belong to one record.
struct MarkRow {
    record: u64,
    key: StateKey,
    marks: Vec<u128>,
}

/// The marks of a worker's partitions.
#[derive(Default)]
pub struct EffectMarks {
    known: FxHashSet<u128>,
    rows: FxHashMap<Partition, Vec<MarkRow>>,
    /// Number of the next row.
    next: u64,
}

impl EffectMarks {
    /// Whether there are none, which is the rule.
    pub fn is_empty(&self) -> bool {
        self.known.is_empty()
    }

    /// Whether an effect was stored already.
    pub fn contains(&self, mark: u128) -> bool {
        self.known.contains(&mark)
    }

    /// Takes those that were stored for a partition.
    pub fn load(&mut self, partition: Partition, states: &mut KeyedStates) {
        for key in states.keys_of(MARK_STATE_OWNER, partition) {
            self.next = self.next.max(key.number.saturating_add(1));
            let Some((record, marks)) = states.peek(&key).and_then(decode) else {
                states.remove(&key);
                continue;
            };
            self.known.extend(&marks);
            let rows = self.rows.entry(partition).or_default();
            rows.push(MarkRow { record, key, marks });
        }
    }

    /// Marks effects of records of a partition, which are about to be stored; returns what is to be stored with them.
    pub fn add(
        &mut self,
        partition: Partition,
        marks: FxHashMap<u64, Vec<u128>>,
        states: &mut KeyedStates,
    ) -> Vec<StateRow> {
        let mut stored = Vec::with_capacity(marks.len());
        for (record, marks) in marks {
            let key = StateKey {
                subject: EntityKey {
                    tenant: TenantId::NULL,
                    entity: EntityId::from(TenantId::NULL),
                },
                owner: MARK_STATE_OWNER,
                number: self.next,
            };
            self.next += 1;
            stored.push(states.put_stored(partition, key.clone(), &encode(record, &marks)));
            self.known.extend(&marks);
            let rows = self.rows.entry(partition).or_default();
            rows.push(MarkRow { record, key, marks });
        }
        stored
    }

    /// Forgets those of records that are done with.
    pub fn forget(&mut self, partition: Partition, states: &mut KeyedStates, is_done: impl Fn(u64) -> bool) {
        let Some(rows) = self.rows.get_mut(&partition) else {
            return;
        };
        rows.retain(|row| {
            let done = is_done(row.record);
            if done {
                states.remove(&row.key);
                for mark in &row.marks {
                    self.known.remove(mark);
                }
            }
            !done
        });
        if rows.is_empty() {
            self.rows.remove(&partition);
        }
    }

    /// Another worker goes on with a partition.
    pub fn drop_partition(&mut self, partition: Partition) {
        for row in self.rows.remove(&partition).unwrap_or_default() {
            for mark in &row.marks {
                self.known.remove(mark);
            }
        }
    }
}

fn encode(record: u64, marks: &[u128]) -> Vec<u8> {
    let mut value = Vec::with_capacity(8 + 16 * marks.len());
    value.extend_from_slice(&record.to_le_bytes());
    for mark in marks {
        value.extend_from_slice(&mark.to_le_bytes());
    }
    value
}

fn decode(value: &[u8]) -> Option<(u64, Vec<u128>)> {
    let (record, marks) = value.split_first_chunk()?;
    let (marks, rest) = marks.as_chunks();
    let marks = marks.iter().map(|mark| u128::from_le_bytes(*mark)).collect();
    rest.is_empty().then_some((u64::from_le_bytes(*record), marks))
}
