//! Journal records: what a transport writes once and every consumer reads.
//!
//! ```text
//! record     := version u8 · kind u8 · entity type u8 · tenant [16] · entity [16] · received i64 · body
//! telemetry  := ttl seconds u32 · row*          row := ts i64 · count u32 · length u32 · packed key-values
//! attributes := scope u8 · packed key-values
//! message    := see [`message`]
//! diverted   := see [`diverted`]
//! ```
//!
//! Numbers are little-endian. A program that cannot read all of a record must not read any of it, so the version grows
//! with every new kind, scope or entity type as well. Records of one append travel in a [`RecordBatch`], each behind its `u32` length.

mod cut;
pub mod diverted;
pub mod message;

use uuid::Uuid;

pub use self::cut::{BatchSplitError, BatchSplitter};
use crate::kv::{CorruptData, count, take, take_array};
use crate::timeseries::AttributeScope;
use crate::{EntityId, EntityKey, EntityType, TenantId};

const VERSION: u8 = 1;
/// Messages came later; what holds none can still be read by programs that know only the first version.
const MESSAGE_VERSION: u8 = 2;
/// So did records that go another way.
const DIVERTED_VERSION: u8 = 3;
const KIND_TELEMETRY: u8 = 1;
const KIND_ATTRIBUTES: u8 = 2;
const KIND_MESSAGE: u8 = 3;
const KIND_DIVERTED: u8 = 4;
const HEADER_BYTES: usize = 3 + 16 + 16 + 8;
const ROW_HEADER_BYTES: usize = 8 + 4 + 4;

/// One or more records in the making, for one append to the journal.
#[derive(Debug, Default, Clone)]
pub struct RecordBatch {
    bytes: Vec<u8>,
    count: u32,
    points: u32,
}

impl RecordBatch {
    /// An empty batch.
    pub const fn new() -> Self {
        Self {
            bytes: Vec::new(),
            count: 0,
            points: 0,
        }
    }

    /// How many records it holds.
    pub const fn count(&self) -> u32 {
        self.count
    }

    /// How many key-values its telemetry and attributes records hold.
    pub const fn points(&self) -> u32 {
        self.points
    }

    /// Whether it holds no record.
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The records, each behind its length as a little-endian `u32`.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Forgets all records and keeps the memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.count = 0;
        self.points = 0;
    }

    /// Where it ends now, to go [`truncate_to`](Self::truncate_to).
    pub const fn mark(&self) -> BatchMark {
        BatchMark {
            bytes: self.bytes.len(),
            count: self.count,
            points: self.points,
        }
    }

    /// Takes back what was added after a mark.
    pub fn truncate_to(&mut self, mark: BatchMark) {
        self.bytes.truncate(mark.bytes);
        self.count = self.count.min(mark.count);
        self.points = self.points.min(mark.points);
    }

    /// How many key-values were added after a mark.
    pub const fn points_since(&self, mark: BatchMark) -> u32 {
        self.points.saturating_sub(mark.points)
    }

    /// Gives memory beyond `bytes` back, so that one large message does not stay resident for ever.
    pub fn shrink_to(&mut self, bytes: usize) {
        self.bytes.shrink_to(bytes);
    }

    /// Adds one record of any bytes, for logs that hold something else than device messages.
    pub fn push(&mut self, record: &[u8]) {
        self.bytes.extend_from_slice(&(record.len() as u32).to_le_bytes());
        self.bytes.extend_from_slice(record);
        self.count += 1;
    }

    /// Begins a telemetry record; it is added when [`TelemetryWriter::finish`] is called, and else taken back.
    /// `ttl_seconds` of 0 keeps the points for ever.
    pub fn begin_telemetry(
        &mut self,
        subject: EntityKey,
        received_ms: i64,
        ttl_seconds: u32,
    ) -> TelemetryWriter<'_> {
        let start = self.begin(KIND_TELEMETRY, subject, received_ms);
        self.bytes.extend_from_slice(&ttl_seconds.to_le_bytes());
        TelemetryWriter {
            batch: self,
            start,
            row: None,
            points: 0,
            finished: false,
        }
    }

    /// Begins an attributes record; it is added when [`AttributesWriter::finish`] is called, and else taken back.
    pub fn begin_attributes(
        &mut self,
        subject: EntityKey,
        received_ms: i64,
        scope: AttributeScope,
    ) -> AttributesWriter<'_> {
        let start = self.begin(KIND_ATTRIBUTES, subject, received_ms);
        self.bytes.push(scope as u8);
        AttributesWriter {
            batch: self,
            start,
            finished: false,
        }
    }

    fn begin(&mut self, kind: u8, subject: EntityKey, received_ms: i64) -> usize {
        self.begin_version(VERSION, kind, subject, received_ms)
    }

    fn begin_version(&mut self, version: u8, kind: u8, subject: EntityKey, received_ms: i64) -> usize {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(&[0; 4]);
        self.bytes
            .extend_from_slice(&[version, kind, subject.entity.entity_type as u8]);
        self.bytes.extend_from_slice(subject.tenant.0.as_bytes());
        self.bytes.extend_from_slice(subject.entity.id.as_bytes());
        self.bytes.extend_from_slice(&received_ms.to_le_bytes());
        start
    }

    fn end(&mut self, start: usize) {
        let length = (self.bytes.len() - start - 4) as u32;
        self.patch(start, length);
        self.count += 1;
    }

    fn patch(&mut self, at: usize, number: u32) {
        if let Some(place) = self.bytes.get_mut(at..at + 4) {
            place.copy_from_slice(&number.to_le_bytes());
        }
    }
}

/// A place in a [`RecordBatch`].
#[derive(Debug, Clone, Copy)]
pub struct BatchMark {
    bytes: usize,
    count: u32,
    points: u32,
}

/// Splits the bytes of a batch into its records.
pub fn split(mut bytes: &[u8]) -> impl Iterator<Item = Result<&[u8], CorruptData>> {
    std::iter::from_fn(move || {
        if bytes.is_empty() {
            return None;
        }
        let record = take_array::<4>(&mut bytes)
            .and_then(|length| take(&mut bytes, u32::from_le_bytes(length) as usize));
        if record.is_err() {
            bytes = &[];
        }
        Some(record)
    })
}

/// Writes the rows of one telemetry record. Dropped without [`finish`](Self::finish), it leaves the batch as it was.
#[derive(Debug)]
pub struct TelemetryWriter<'a> {
    batch: &'a mut RecordBatch,
    start: usize,
    row: Option<OpenRow>,
    points: u32,
    finished: bool,
}

#[derive(Debug, Clone, Copy)]
struct OpenRow {
    header: usize,
    count: u32,
}

impl TelemetryWriter<'_> {
    /// Begins a row: the values of one time.
    pub fn begin_row(&mut self, ts: i64) {
        self.end_row();
        self.row = Some(OpenRow {
            header: self.batch.bytes.len(),
            count: 0,
        });
        self.batch.bytes.extend_from_slice(&ts.to_le_bytes());
        self.batch.bytes.extend_from_slice(&[0; 8]);
    }

    /// The buffer that [`crate::kv::pack`] appends a key-value of the current row to; call [`Self::count_point`] after.
    pub fn buffer(&mut self) -> &mut Vec<u8> {
        &mut self.batch.bytes
    }

    /// Says that one key-value was appended to the current row.
    pub fn count_point(&mut self) {
        if let Some(row) = &mut self.row {
            row.count += 1;
        }
    }

    /// Points written so far, the current row included.
    pub fn points(&self) -> u32 {
        self.points + self.row.map_or(0, |row| row.count)
    }

    /// Ends the record. A record without a point is taken back. Returns how many points it holds.
    pub fn finish(mut self) -> u32 {
        self.end_row();
        if self.points > 0 {
            self.batch.end(self.start);
            self.batch.points += self.points;
            self.finished = true;
        }
        self.points
    }

    fn end_row(&mut self) {
        let Some(row) = self.row.take() else { return };
        if row.count == 0 {
            self.batch.bytes.truncate(row.header);
            return;
        }
        let length = self.batch.bytes.len() - row.header - ROW_HEADER_BYTES;
        self.batch.patch(row.header + 8, row.count);
        self.batch.patch(row.header + 12, length as u32);
        self.points += row.count;
    }
}

impl Drop for TelemetryWriter<'_> {
    fn drop(&mut self) {
        if !self.finished {
            self.batch.bytes.truncate(self.start);
        }
    }
}

/// Writes one attributes record. Dropped without [`finish`](Self::finish), it leaves the batch as it was.
#[derive(Debug)]
pub struct AttributesWriter<'a> {
    batch: &'a mut RecordBatch,
    start: usize,
    finished: bool,
}

impl AttributesWriter<'_> {
    /// The buffer that [`crate::kv::pack`] appends key-values to.
    pub fn buffer(&mut self) -> &mut Vec<u8> {
        &mut self.batch.bytes
    }

    /// Ends the record. One without a key-value is taken back; returns whether it was added.
    pub fn finish(mut self) -> bool {
        let values = self.start + 4 + HEADER_BYTES + 1;
        if self.batch.bytes.len() > values {
            let values = self.batch.bytes.get(values..).unwrap_or_default();
            self.batch.points += count(values);
            self.batch.end(self.start);
            self.finished = true;
        }
        self.finished
    }
}

impl Drop for AttributesWriter<'_> {
    fn drop(&mut self) {
        if !self.finished {
            self.batch.bytes.truncate(self.start);
        }
    }
}

/// A decoded record, borrowed from its bytes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct JournalRecord<'a> {
    /// The entity it is about.
    pub subject: EntityKey,
    /// When the platform received it, milliseconds.
    pub received_ms: i64,
    /// What it carries.
    pub body: RecordBody<'a>,
}

/// What a record carries.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum RecordBody<'a> {
    /// Time-series rows; iterate them with [`rows`].
    Telemetry {
        /// Seconds each point is kept after its time; 0 keeps it for ever.
        ttl_seconds: u32,
        /// The rows, checked to be well formed as far as their headers go.
        rows: &'a [u8],
    },
    /// Attribute values, to be unpacked with [`crate::kv::unpack`].
    Attributes {
        /// Scope of all of them.
        scope: AttributeScope,
        /// Packed key-values.
        values: &'a [u8],
    },
    /// A message of the rule engine, to be read with [`message::decode`].
    Message(&'a [u8]),
    /// A record that was taken out of its queue, to be read with [`diverted::decode`].
    Diverted(&'a [u8]),
}

/// The values of one time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordRow<'a> {
    /// Time of the values, milliseconds.
    pub ts: i64,
    /// How many key-values there are.
    pub count: u32,
    /// Packed key-values.
    pub values: &'a [u8],
}

impl<'a> JournalRecord<'a> {
    /// Decodes a record.
    pub fn decode(mut bytes: &'a [u8]) -> Result<Self, CorruptData> {
        let [version, kind, entity_type] = take_array::<3>(&mut bytes)?;
        if version != version_of(kind) {
            return Err(CorruptData("unknown record version"));
        }
        let entity_type = EntityType::from_code(entity_type).ok_or(CorruptData("unknown entity type"))?;
        let tenant = TenantId(Uuid::from_bytes(take_array(&mut bytes)?));
        let entity = EntityId::new(entity_type, Uuid::from_bytes(take_array(&mut bytes)?));
        let received_ms = i64::from_le_bytes(take_array(&mut bytes)?);
        Ok(Self {
            subject: EntityKey { tenant, entity },
            received_ms,
            body: RecordBody::decode(kind, bytes)?,
        })
    }
}

impl<'a> RecordBody<'a> {
    fn decode(kind: u8, mut bytes: &'a [u8]) -> Result<Self, CorruptData> {
        Ok(match kind {
            KIND_TELEMETRY => Self::Telemetry {
                ttl_seconds: u32::from_le_bytes(take_array(&mut bytes)?),
                rows: bytes,
            },
            KIND_ATTRIBUTES => {
                let [scope] = take_array::<1>(&mut bytes)?;
                let scope = AttributeScope::from_code(scope).ok_or(CorruptData("unknown attribute scope"))?;
                Self::Attributes { scope, values: bytes }
            }
            KIND_MESSAGE => Self::Message(bytes),
            KIND_DIVERTED => Self::Diverted(bytes),
            _ => return Err(CorruptData("unknown record kind")),
        })
    }
}

/// The version that writes records of a kind.
const fn version_of(kind: u8) -> u8 {
    match kind {
        KIND_MESSAGE => MESSAGE_VERSION,
        KIND_DIVERTED => DIVERTED_VERSION,
        _ => VERSION,
    }
}

/// The version of a record that another version of the program wrote in a way unknown to this one.
pub fn foreign_version(record: &[u8]) -> Option<u8> {
    record.first().copied().filter(|version| !is_known(*version))
}

const fn is_known(version: u8) -> bool {
    matches!(version, VERSION | MESSAGE_VERSION | DIVERTED_VERSION)
}

/// The rows of a telemetry record.
pub fn rows(mut bytes: &[u8]) -> impl Iterator<Item = Result<RecordRow<'_>, CorruptData>> {
    std::iter::from_fn(move || {
        if bytes.is_empty() {
            return None;
        }
        let row = next_row(&mut bytes);
        if row.is_err() {
            bytes = &[];
        }
        Some(row)
    })
}

fn next_row<'a>(bytes: &mut &'a [u8]) -> Result<RecordRow<'a>, CorruptData> {
    let ts = i64::from_le_bytes(take_array(bytes)?);
    let count = u32::from_le_bytes(take_array(bytes)?);
    let length = u32::from_le_bytes(take_array(bytes)?) as usize;
    Ok(RecordRow {
        ts,
        count,
        values: take(bytes, length)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kv::{KvValueRef, pack, unpack};
    use crate::{DeviceId, TenantId};

    fn subject() -> EntityKey {
        EntityKey::device(TenantId(Uuid::from_u128(1)), DeviceId(Uuid::from_u128(2)))
    }

    #[test]
    fn a_batch_comes_apart_into_the_records_it_was_made_of() {
        let mut batch = RecordBatch::new();
        let mut telemetry = batch.begin_telemetry(subject(), 17, 60);
        for ts in [1, 2] {
            telemetry.begin_row(ts);
            pack("a", KvValueRef::Long(ts), telemetry.buffer());
            telemetry.count_point();
        }
        telemetry.begin_row(3);
        assert_eq!(telemetry.finish(), 2);
        let mut attributes = batch.begin_attributes(subject(), 18, AttributeScope::Client);
        pack("v", KvValueRef::Text("x"), attributes.buffer());
        assert!(attributes.finish());

        let records: Vec<_> = split(batch.as_bytes())
            .map(|record| JournalRecord::decode(record.unwrap()).unwrap())
            .collect();
        assert_eq!(records.len(), batch.count() as usize);
        let RecordBody::Telemetry {
            ttl_seconds: 60,
            rows: bytes,
        } = records[0].body
        else {
            panic!()
        };
        let times: Vec<_> = rows(bytes)
            .map(|row| (row.unwrap().ts, row.unwrap().count))
            .collect();
        assert_eq!(times, [(1, 1), (2, 1)], "an empty row is left out");
        let RecordBody::Attributes {
            scope: AttributeScope::Client,
            values,
        } = records[1].body
        else {
            panic!()
        };
        assert_eq!(unpack(values).next(), Some(Ok(("v", KvValueRef::Text("x")))));
        assert_eq!((records[0].received_ms, records[1].subject), (17, subject()));
    }

    #[test]
    fn a_record_that_is_not_finished_leaves_no_trace() {
        let mut batch = RecordBatch::new();
        let mut telemetry = batch.begin_telemetry(subject(), 17, 0);
        telemetry.begin_row(1);
        pack("a", KvValueRef::Long(1), telemetry.buffer());
        drop(telemetry);
        assert_eq!(batch.begin_telemetry(subject(), 17, 0).finish(), 0);
        assert!(
            !batch
                .begin_attributes(subject(), 1, AttributeScope::Client)
                .finish()
        );
        assert!(batch.is_empty() && batch.as_bytes().is_empty());
    }
}
