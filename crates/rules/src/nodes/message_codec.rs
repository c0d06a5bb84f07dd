//! Messages as bytes, for nodes that keep them.

use fieldline_model::TenantId;
use fieldline_model::message::QueueMessage;
use fieldline_model::record::{self, JournalRecord, RecordBatch, RecordBody};

/// Most bytes of a message that is kept.
pub(crate) const MAX_BYTES: usize = 1 << 20;

/// A message as bytes.
pub(crate) fn encode(tenant: TenantId, message: &QueueMessage) -> Vec<u8> {
    let mut batch = RecordBatch::new();
    batch.push_message(tenant, message);
    batch.as_bytes().to_vec()
}

/// A message from its bytes, if they are one.
pub(crate) fn decode(bytes: &[u8]) -> Option<QueueMessage> {
    let record = JournalRecord::decode(record::split(bytes).next()?.ok()?).ok()?;
    match record.body {
        RecordBody::Message(body) => {
            record::message::decode(record.subject.entity, record.received_ms, body).ok()
        }
        _ => None,
    }
}
