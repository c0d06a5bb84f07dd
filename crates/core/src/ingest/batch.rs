//! The part of a delivery that this program version can read.

use fieldline_model::EntityKey;
use fieldline_model::kv::CorruptData;
use fieldline_model::record::{JournalRecord, RecordBody, diverted, foreign_version, rows, split};
use tracing::error;

use super::metrics;
use crate::logging::LogGate;
use crate::ports::{ConsumerRecords, Offset};

static UNREADABLE_GATE: LogGate = LogGate::new(5);

/// The decoded records of a delivery, up to the first that this program version does not understand.
pub(super) struct DecodedBatch<'a> {
    /// The records with their positions.
    pub(super) readable: Vec<(Offset, JournalRecord<'a>)>,
    /// The devices that sent something, with the time of receipt.
    pub(super) activity: Vec<(EntityKey, i64)>,
    /// Position after the last record. A journal may have none at the positions that follow.
    pub(super) end: Offset,
    /// Position to continue from.
    pub(super) next: Offset,
    /// The version of the record at `next`, if another program version wrote it and this one does not understand it.
    pub(super) foreign: Option<u8>,
}

impl<'a> DecodedBatch<'a> {
    /// Decodes the records. Damaged ones are counted and skipped; a record of a foreign version ends the batch.
    pub(super) fn decode(records: &'a ConsumerRecords) -> Self {
        let mut batch = Self {
            readable: Vec::new(),
            activity: Vec::new(),
            end: records.first,
            next: records.next,
            foreign: None,
        };
        for (at, record) in (records.first.0..).zip(split(&records.bytes)) {
            let foreign = record.ok().and_then(foreign_version);
            if foreign.is_some() {
                batch.next = Offset(at);
                batch.foreign = foreign;
                break;
            }
            batch.end = Offset(at + 1);
            match record.and_then(decode) {
                Ok(record) => {
                    // A diverted record counted as activity when it was first read.
                    if !matches!(record.body, RecordBody::Message(_) | RecordBody::Diverted(_)) {
                        batch.activity.push((record.subject, record.received_ms));
                    }
                    batch.readable.push((Offset(at), record));
                }
                Err(error) => {
                    ::metrics::counter!(metrics::UNREADABLE).increment(1);
                    if let Some(suppressed) = UNREADABLE_GATE.open() {
                        error!(partition = %records.partition, position = at, %error, suppressed, "skipped a record that cannot be decoded");
                    }
                }
            }
        }
        batch
    }
}

fn decode(bytes: &[u8]) -> Result<JournalRecord<'_>, CorruptData> {
    let record = JournalRecord::decode(bytes)?;
    let body = match record.body {
        RecordBody::Diverted(bytes) => {
            diverted::decode(record.subject, record.received_ms, bytes)?
                .record
                .body
        }
        body => body,
    };
    if let RecordBody::Telemetry { rows: bytes, .. } = body {
        rows(bytes).try_for_each(|row| row.map(drop))?;
    }
    Ok(record)
}
