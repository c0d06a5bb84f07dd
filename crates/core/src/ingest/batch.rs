//! What a delivery's records do.

use fieldline_model::Subject;
use fieldline_model::kv::Corrupt;
use fieldline_model::record::{Record, RecordBody, foreign_version, rows, split};
use tracing::error;

use super::metrics;
use crate::logging::LogGate;
use crate::ports::{AttributeRow, Effects, Offset, Records, TelemetryRow};

static UNREADABLE_GATE: LogGate = LogGate::new(5);

/// The records of a delivery as far as this program can go.
pub(super) struct Batch<'a> {
    /// What they do, all together.
    pub(super) effects: Effects<'a>,
    /// Who sent them, and when they were received.
    pub(super) heard: Vec<(Subject, i64)>,
    /// Position to continue from.
    pub(super) next: Offset,
    /// The version of the record at `next`, if a version of the program wrote it that this one does not understand.
    pub(super) foreign: Option<u8>,
}

impl<'a> Batch<'a> {
    /// Decodes the records. Those that are damaged are counted and left out; a foreign one ends the batch.
    pub(super) fn decode(records: &'a Records) -> Self {
        let mut batch = Self {
            effects: Effects::default(),
            heard: Vec::new(),
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
            match record.and_then(|record| collect(record, &mut batch.effects)) {
                Ok(record) => batch.heard.push((record.subject, record.received_ms)),
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

/// The records before `end` one by one, each with the position to continue from; those that are damaged are left out.
pub(super) fn one_by_one(records: &Records, end: Offset) -> impl Iterator<Item = (Offset, Effects<'_>)> {
    // Where offsets have gaps, the positions are too low, which only means that a crash replays more.
    (records.first.0..end.0)
        .zip(split(&records.bytes))
        .filter_map(|(at, record)| {
            let mut effects = Effects::default();
            collect(record.ok()?, &mut effects).ok()?;
            Some((Offset(at + 1), effects))
        })
}

/// Adds what one record does; until there are rule chains that is the default chain, fixed.
fn collect<'a>(bytes: &'a [u8], effects: &mut Effects<'a>) -> Result<Record<'a>, Corrupt> {
    let record = Record::decode(bytes)?;
    let subject = record.subject;
    match record.body {
        RecordBody::Telemetry {
            ttl_seconds,
            rows: bytes,
        } => {
            let before = effects.telemetry.len();
            for row in rows(bytes) {
                let row = row.inspect_err(|_| effects.telemetry.truncate(before))?;
                effects.telemetry.push(TelemetryRow {
                    subject,
                    ts: row.ts,
                    ttl_seconds,
                    values: row.values,
                });
            }
        }
        RecordBody::Attributes { scope, values } => {
            effects.attributes.push(AttributeRow {
                subject,
                scope,
                ts: record.received_ms,
                values,
            });
        }
    }
    Ok(record)
}
