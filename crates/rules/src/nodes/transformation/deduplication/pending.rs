//! What waits, as bytes.
//!
//! ```text
//! list  := due i64 · retries u8 · (time i64 · number u64 · bytes u32)*
//! ```

use fieldline_model::kv::take_array;
use uuid::Uuid;

/// Number of the list.
pub(super) const LIST: u64 = 0;

/// A message that waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct DeduplicationEntry {
    /// Time of its values, milliseconds.
    pub(super) ts: i64,
    /// Number it is kept under.
    pub(super) number: u64,
    /// Its size.
    pub(super) bytes: u32,
}

/// The messages of an originator that wait, in the order in which they came.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct DeduplicationData {
    /// When the list comes due.
    pub(super) due_ms: i64,
    /// How often a queue has not taken a result.
    pub(super) retries: u8,
    pub(super) entries: Vec<DeduplicationEntry>,
}

impl DeduplicationData {
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(9 + self.entries.len() * 20);
        out.extend_from_slice(&self.due_ms.to_le_bytes());
        out.push(self.retries);
        for entry in &self.entries {
            out.extend_from_slice(&entry.ts.to_le_bytes());
            out.extend_from_slice(&entry.number.to_le_bytes());
            out.extend_from_slice(&entry.bytes.to_le_bytes());
        }
        out
    }

    pub(super) fn decode(mut bytes: &[u8]) -> Option<Self> {
        let bytes = &mut bytes;
        let due_ms = i64::from_le_bytes(take_array(bytes).ok()?);
        let [retries] = take_array(bytes).ok()?;
        let mut entries = Vec::with_capacity(bytes.len() / 20);
        while !bytes.is_empty() {
            entries.push(DeduplicationEntry {
                ts: i64::from_le_bytes(take_array(bytes).ok()?),
                number: u64::from_le_bytes(take_array(bytes).ok()?),
                bytes: u32::from_le_bytes(take_array(bytes).ok()?),
            });
        }
        Some(Self {
            due_ms,
            retries,
            entries,
        })
    }

    /// Bytes of all messages.
    pub(super) fn bytes(&self) -> usize {
        self.entries.iter().map(|entry| entry.bytes as usize).sum()
    }

    /// The packs that are complete: from the earliest message on, those within each interval that has passed.
    pub(super) fn packs(&self, interval_ms: i64, now_ms: i64) -> Vec<Vec<DeduplicationEntry>> {
        let mut left = self.entries.clone();
        let mut packs = Vec::new();
        while let Some(start) = left.iter().map(|entry| entry.ts).min() {
            let end = start.saturating_add(interval_ms);
            if end > now_ms {
                break;
            }
            let (pack, rest) = left.into_iter().partition(|entry| entry.ts < end);
            packs.push(pack);
            left = rest;
        }
        packs
    }
}

/// The number that a message is kept under.
pub(super) fn number_of(id: Uuid) -> u64 {
    let (high, low) = id.as_u64_pair();
    (high ^ low.rotate_left(31)).max(LIST + 1)
}
