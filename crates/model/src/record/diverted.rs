//! Records that go another way than the one they were received on.
//!
//! ```text
//! diverted := id [16] · length u8 · name of the queue · kind u8 · body of that kind
//! ```
//!
//! Entity, tenant and time stay those of the record itself.

use uuid::Uuid;

use super::{
    DIVERTED_VERSION, JournalRecord, KIND_ATTRIBUTES, KIND_DIVERTED, KIND_MESSAGE, KIND_TELEMETRY,
    RecordBatch, RecordBody,
};
use crate::EntityKey;
use crate::kv::{CorruptData, take, take_array};

/// A record that was taken out of its queue.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DivertedRecord<'a> {
    /// Id of the message that it becomes, so that what is derived from it stays the same.
    pub id: Uuid,
    /// Name of the queue that it was taken from, at most 255 bytes.
    pub queue: &'a str,
    /// The record as it was; of telemetry one row.
    pub record: JournalRecord<'a>,
}

impl DivertedRecord<'_> {
    /// Bytes that it takes as the body of a record.
    pub const fn body_len(&self) -> usize {
        let record = match self.record.body {
            RecordBody::Telemetry { rows, .. } => 4 + rows.len(),
            RecordBody::Attributes { values, .. } => 1 + values.len(),
            RecordBody::Message(body) | RecordBody::Diverted(body) => body.len(),
        };
        16 + 1 + self.queue.len() + 1 + record
    }
}

impl RecordBatch {
    /// Adds a record that was taken out of a queue. One that was so already, or whose queue has a longer name than there is
    /// room for, is left out; returns whether it was added.
    pub fn push_diverted(&mut self, diverted: &DivertedRecord<'_>) -> bool {
        let DivertedRecord { id, queue, record } = diverted;
        let Ok(length) = u8::try_from(queue.len()) else {
            return false;
        };
        let Some(kind) = kind_of(record) else {
            return false;
        };
        let start = self.begin_version(
            DIVERTED_VERSION,
            KIND_DIVERTED,
            record.subject,
            record.received_ms,
        );
        self.bytes.extend_from_slice(id.as_bytes());
        self.bytes.push(length);
        self.bytes.extend_from_slice(queue.as_bytes());
        self.bytes.push(kind);
        self.body_of(record);
        self.end(start);
        true
    }

    /// Adds the record as it was before it was taken out of its queue.
    pub fn restored(&mut self, diverted: &DivertedRecord<'_>) {
        let record = &diverted.record;
        let Some(kind) = kind_of(record) else { return };
        let start = self.begin(kind, record.subject, record.received_ms);
        self.body_of(record);
        self.end(start);
    }

    fn body_of(&mut self, record: &JournalRecord<'_>) {
        match record.body {
            RecordBody::Telemetry { ttl_seconds, rows } => {
                self.bytes.extend_from_slice(&ttl_seconds.to_le_bytes());
                self.bytes.extend_from_slice(rows);
            }
            RecordBody::Attributes { scope, values } => {
                self.bytes.push(scope as u8);
                self.bytes.extend_from_slice(values);
            }
            RecordBody::Message(body) | RecordBody::Diverted(body) => self.bytes.extend_from_slice(body),
        }
    }
}

/// The kind of a record that can be diverted.
const fn kind_of(record: &JournalRecord<'_>) -> Option<u8> {
    match record.body {
        RecordBody::Telemetry { .. } => Some(KIND_TELEMETRY),
        RecordBody::Attributes { .. } => Some(KIND_ATTRIBUTES),
        RecordBody::Message(_) => Some(KIND_MESSAGE),
        RecordBody::Diverted(_) => None,
    }
}

/// Reads the body of a diverted record; `subject` and `received_ms` are those of the record around it.
///
/// # Errors
/// The bytes are none.
pub fn decode(
    subject: EntityKey,
    received_ms: i64,
    mut bytes: &[u8],
) -> Result<DivertedRecord<'_>, CorruptData> {
    let id = Uuid::from_bytes(take_array(&mut bytes)?);
    let [length] = take_array::<1>(&mut bytes)?;
    let queue = take(&mut bytes, usize::from(length))?;
    let queue = std::str::from_utf8(queue).map_err(|_| CorruptData("the name of a queue is not UTF-8"))?;
    let [kind] = take_array::<1>(&mut bytes)?;
    if kind == KIND_DIVERTED {
        return Err(CorruptData("a record was diverted twice"));
    }
    Ok(DivertedRecord {
        id,
        queue,
        record: JournalRecord {
            subject,
            received_ms,
            body: RecordBody::decode(kind, bytes)?,
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kv::{KvValueRef, pack};
    use crate::record::{foreign_version, split};
    use crate::timeseries::AttributeScope;
    use crate::{DeviceId, TenantId};

    fn batch(of: impl FnOnce(&mut RecordBatch, EntityKey)) -> Vec<u8> {
        let mut batch = RecordBatch::new();
        of(&mut batch, EntityKey::device(TenantId::new(), DeviceId::new()));
        batch.as_bytes().to_vec()
    }

    #[test]
    fn every_kind_of_record_comes_back_as_it_was_and_damage_is_reported() {
        let telemetry = batch(|batch, subject| {
            let mut rows = batch.begin_telemetry(subject, 17, 60);
            rows.begin_row(5);
            pack("n", KvValueRef::Long(1), rows.buffer());
            rows.count_point();
            rows.finish();
        });
        let attributes = batch(|batch, subject| {
            let mut writer = batch.begin_attributes(subject, 18, AttributeScope::Shared);
            pack("n", KvValueRef::Long(1), writer.buffer());
            writer.finish();
        });
        for bytes in [telemetry, attributes] {
            let record = JournalRecord::decode(split(&bytes).next().unwrap().unwrap()).unwrap();
            let diverted = DivertedRecord {
                id: Uuid::from_u128(7),
                queue: "HighPriority",
                record,
            };
            let mut batch = RecordBatch::new();
            assert!(batch.push_diverted(&diverted));
            let bytes = split(batch.as_bytes()).next().unwrap().unwrap();
            assert_eq!(foreign_version(bytes), None);
            let outer = JournalRecord::decode(bytes).unwrap();
            let RecordBody::Diverted(body) = outer.body else {
                panic!("{outer:?}")
            };
            assert_eq!(decode(outer.subject, outer.received_ms, body).unwrap(), diverted);
            assert_eq!(body.len(), diverted.body_len());
            let mut restored = RecordBatch::new();
            restored.restored(&diverted);
            let restored = split(restored.as_bytes()).next().unwrap().unwrap();
            assert_eq!(JournalRecord::decode(restored).unwrap(), record);
            for cut in 0..(16 + 1 + 12 + 1 + 1) {
                assert!(decode(outer.subject, 0, &body[..cut]).is_err());
            }
            let twice = DivertedRecord {
                record: outer,
                ..diverted
            };
            assert!(!RecordBatch::new().push_diverted(&twice));
            let long = "x".repeat(256);
            let nameless = DivertedRecord {
                queue: &long,
                ..diverted
            };
            assert!(!RecordBatch::new().push_diverted(&nameless));
        }
    }
}
