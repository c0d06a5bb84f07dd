//! Cutting what one message has become into batches that a journal takes.

use super::{
    HEADER_BYTES, JournalRecord, ROW_HEADER_BYTES, RecordBatch, RecordBody, RecordRow, TelemetryWriter,
    next_row,
};
use crate::EntityKey;
use crate::kv::{CorruptData, take, take_array, unpack};
use crate::timeseries::AttributeScope;

/// Bytes of a telemetry record and its first row before the first key-value.
const FIRST_ROW_BYTES: usize = 4 + HEADER_BYTES + 4 + ROW_HEADER_BYTES;

/// Why records could not be cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BatchSplitError {
    /// A single key-value is larger than the limit.
    #[error("a single value is larger than the limit")]
    TooLarge,
    /// The batch does not hold what a batch holds.
    #[error(transparent)]
    Corrupt(#[from] CorruptData),
}

impl RecordBatch {
    /// The same records, in their order, in batches of at most `limit` bytes. A record that is larger becomes several: rows
    /// stay whole where one fits the limit, else they are cut between key-values. Ends after the first error.
    pub fn split_batches(&self, limit: usize) -> BatchSplitter<'_> {
        BatchSplitter {
            limit,
            records: &self.bytes,
            open: None,
        }
    }
}

/// Iterator over the batches of [`RecordBatch::split_batches`].
#[derive(Debug)]
pub struct BatchSplitter<'a> {
    limit: usize,
    records: &'a [u8],
    open: Option<PartialRecord<'a>>,
}

/// What is left of a record that does not fit a batch.
#[derive(Debug)]
struct PartialRecord<'a> {
    subject: EntityKey,
    received_ms: i64,
    rest: RecordRemainder<'a>,
}

#[derive(Debug)]
enum RecordRemainder<'a> {
    Telemetry {
        ttl_seconds: u32,
        row: Option<RecordRow<'a>>,
        rows: &'a [u8],
    },
    Attributes {
        scope: AttributeScope,
        values: &'a [u8],
    },
}

impl Iterator for BatchSplitter<'_> {
    type Item = Result<RecordBatch, BatchSplitError>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut piece = RecordBatch::new();
        let filled = self.fill_batch(&mut piece);
        if filled.is_err() {
            self.records = &[];
            self.open = None;
        }
        match filled {
            Ok(()) if piece.is_empty() => None,
            filled => Some(filled.map(|()| piece)),
        }
    }
}

impl BatchSplitter<'_> {
    fn fill_batch(&mut self, piece: &mut RecordBatch) -> Result<(), BatchSplitError> {
        loop {
            if let Some(open) = &mut self.open {
                if !open.fill(piece, self.limit)? {
                    return if piece.is_empty() {
                        Err(BatchSplitError::TooLarge)
                    } else {
                        Ok(())
                    };
                }
                self.open = None;
            }
            if self.records.is_empty() {
                return Ok(());
            }
            let mut after = self.records;
            let length = u32::from_le_bytes(take_array(&mut after)?) as usize;
            let record = take(&mut after, length)?;
            if piece.bytes.len() + 4 + length <= self.limit {
                piece.push(record);
            } else if 4 + length <= self.limit {
                return Ok(());
            } else {
                self.open = Some(PartialRecord::of(JournalRecord::decode(record)?)?);
            }
            self.records = after;
        }
    }
}

impl<'a> PartialRecord<'a> {
    fn of(record: JournalRecord<'a>) -> Result<Self, BatchSplitError> {
        let rest = match record.body {
            RecordBody::Telemetry { ttl_seconds, rows } => RecordRemainder::Telemetry {
                ttl_seconds,
                row: None,
                rows,
            },
            RecordBody::Attributes { scope, values } => RecordRemainder::Attributes { scope, values },
            // It is one thing: no part of it means anything.
            RecordBody::Message(_) | RecordBody::Diverted(_) => return Err(BatchSplitError::TooLarge),
        };
        Ok(Self {
            subject: record.subject,
            received_ms: record.received_ms,
            rest,
        })
    }

    /// Moves as much as fits to the piece; returns whether nothing is left.
    fn fill(&mut self, piece: &mut RecordBatch, limit: usize) -> Result<bool, BatchSplitError> {
        match &mut self.rest {
            RecordRemainder::Telemetry {
                ttl_seconds,
                row,
                rows,
            } => {
                let mut record = piece.begin_telemetry(self.subject, self.received_ms, *ttl_seconds);
                let ended = fill_rows(&mut record, row, rows, limit)?;
                record.finish();
                Ok(ended)
            }
            RecordRemainder::Attributes { scope, values } => {
                let mut record = piece.begin_attributes(self.subject, self.received_ms, *scope);
                fill_values(record.buffer(), values, limit)?;
                record.finish();
                Ok(values.is_empty())
            }
        }
    }
}

fn fill_rows<'a>(
    record: &mut TelemetryWriter<'_>,
    open: &mut Option<RecordRow<'a>>,
    rows: &mut &'a [u8],
    limit: usize,
) -> Result<bool, BatchSplitError> {
    loop {
        let mut row = match open.take() {
            Some(row) => row,
            None if rows.is_empty() => return Ok(true),
            None => next_row(rows)?,
        };
        let fits_now = record.batch.bytes.len() + ROW_HEADER_BYTES + row.values.len() <= limit;
        if !fits_now && FIRST_ROW_BYTES + row.values.len() <= limit {
            *open = Some(row);
            return Ok(false);
        }
        record.begin_row(row.ts);
        let moved = if fits_now {
            record.buffer().extend_from_slice(row.values);
            row.values = &[];
            row.count
        } else {
            fill_values(record.buffer(), &mut row.values, limit)?
        };
        for _ in 0..moved {
            record.count_point();
        }
        if !row.values.is_empty() {
            row.count = row.count.saturating_sub(moved);
            *open = Some(row);
            return Ok(false);
        }
    }
}

/// Moves the key-values that fit, and returns how many.
fn fill_values(out: &mut Vec<u8>, values: &mut &[u8], limit: usize) -> Result<u32, BatchSplitError> {
    let (room, mut fitting, mut moved) = (limit.saturating_sub(out.len()), 0, 0);
    let mut items = unpack(values);
    while let Some(item) = items.next() {
        item?;
        let end = values.len() - items.rest().len();
        if end > room {
            break;
        }
        (fitting, moved) = (end, moved + 1);
    }
    out.extend_from_slice(take(values, fitting)?);
    Ok(moved)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use uuid::Uuid;

    use super::*;
    use crate::kv::{KvValueRef, pack};
    use crate::record::{rows, split};
    use crate::{DeviceId, TenantId};

    /// Rows of a record: their times and texts. The record has attributes in place of points if it is odd.
    type Given = Vec<Vec<(i64, Vec<String>)>>;

    fn subject() -> EntityKey {
        EntityKey::device(TenantId(Uuid::from_u128(1)), DeviceId(Uuid::from_u128(2)))
    }

    fn batch_of(records: &Given) -> RecordBatch {
        let mut batch = RecordBatch::new();
        for (index, record) in records.iter().enumerate() {
            if index % 2 == 1 {
                let mut writer = batch.begin_attributes(subject(), index as i64, AttributeScope::Client);
                for text in record.iter().flat_map(|(_, texts)| texts) {
                    pack("key", KvValueRef::Text(text), writer.buffer());
                }
                writer.finish();
                continue;
            }
            let mut writer = batch.begin_telemetry(subject(), index as i64, 7);
            for (ts, texts) in record {
                writer.begin_row(*ts);
                for text in texts {
                    pack("key", KvValueRef::Text(text), writer.buffer());
                    writer.count_point();
                }
            }
            writer.finish();
        }
        batch
    }

    /// Every key-value of the batches with what it belongs to.
    fn content<'a>(batches: impl IntoIterator<Item = &'a RecordBatch>) -> Vec<(i64, i64, String)> {
        let mut found = Vec::new();
        for batch in batches {
            let mut count = 0;
            for record in split(batch.as_bytes()) {
                count += 1;
                let record = JournalRecord::decode(record.unwrap()).unwrap();
                let mut add = |ts: i64, values: &[u8]| {
                    let before = found.len();
                    for item in unpack(values) {
                        let ("key", KvValueRef::Text(text)) = item.unwrap() else {
                            panic!()
                        };
                        found.push((record.received_ms, ts, text.to_owned()));
                    }
                    found.len() - before
                };
                match record.body {
                    RecordBody::Telemetry {
                        ttl_seconds: 7,
                        rows: bytes,
                    } => {
                        for row in rows(bytes) {
                            let row = row.unwrap();
                            assert_eq!(add(row.ts, row.values), row.count as usize);
                        }
                    }
                    RecordBody::Attributes { values, .. } => {
                        add(0, values);
                    }
                    RecordBody::Telemetry { .. } => panic!("another time-to-live"),
                    RecordBody::Message(_) | RecordBody::Diverted(_) => panic!("no message was put in"),
                }
            }
            assert_eq!(count, batch.count());
        }
        found
    }

    proptest! {
        #[test]
        fn the_pieces_keep_to_the_limit_and_hold_all_values_once_and_in_order(
            records in proptest::collection::vec(
                proptest::collection::vec(
                    (any::<i64>(), proptest::collection::vec("[a-z]{0,40}", 0..6)),
                    0..12,
                ),
                0..5,
            ),
            limit in 128usize..600,
        ) {
            let batch = batch_of(&records);
            let pieces: Vec<_> = batch.split_batches(limit).map(|piece| piece.unwrap()).collect();
            prop_assert!(pieces.iter().all(|piece| piece.as_bytes().len() <= limit));
            prop_assert_eq!(content(&pieces), content([&batch]));
        }
    }

    #[test]
    fn a_row_that_fits_the_limit_is_not_cut() {
        let text = "x".repeat(60);
        let batch = batch_of(&vec![vec![
            (1, vec![text.clone()]),
            (2, vec![text.clone(), text]),
        ]]);
        let pieces: Vec<_> = batch.split_batches(220).map(|piece| piece.unwrap()).collect();
        let times: Vec<_> = pieces
            .iter()
            .map(|piece| content([piece]).iter().map(|(_, ts, _)| *ts).collect::<Vec<_>>())
            .collect();
        assert_eq!(times, [vec![1], vec![2, 2]]);
    }

    #[test]
    fn a_value_larger_than_the_limit_is_an_error() {
        let batch = batch_of(&vec![vec![(
            1,
            vec!["a".to_owned(), "x".repeat(300), "b".to_owned()],
        )]]);
        let mut pieces = batch.split_batches(256);
        assert_eq!(content([&pieces.next().unwrap().unwrap()]).len(), 1);
        assert_eq!(pieces.next().unwrap().unwrap_err(), BatchSplitError::TooLarge);
        assert!(pieces.next().is_none());
    }
}
