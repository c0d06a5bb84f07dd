//! Messages made of stored telemetry, in the order of their times.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::sync::Arc;

use fieldline_core::ports::{StoreResult, TimeSeriesStore};
use fieldline_model::EntityKey;
use fieldline_model::budget::EvaluationBudget;
use fieldline_model::kv::pack;
use fieldline_model::message::{DataType, MsgType};
use fieldline_model::timeseries::{DataPoint, PointOrder, RangeQuery};

use fieldline_rules::message::{MessageBody, MessageMetadata, RuleMessage, derive_id};
use fieldline_rules::originators::Originator;

/// Points of all series that are in memory.
const MAX_READ: usize = 200_000;
/// Bytes of them, and of one series at least.
const MAX_BYTES: usize = 32 << 20;
const MIN_BYTES: usize = 4 << 10;
/// Points of one series that are read at once.
const MAX_PAGE: usize = 1000;
const MIN_PAGE: usize = 10;

/// A device whose history is read.
pub(super) struct HistorySource {
    pub(super) subject: EntityKey,
    pub(super) originator: Arc<Originator>,
    /// Names of its series.
    pub(super) keys: Vec<String>,
}

struct HistoryCursor {
    source: usize,
    key: String,
    points: VecDeque<DataPoint>,
    /// Where the next page begins; `None` behind the last one.
    next: Option<i64>,
}

/// Reads the series of devices side by side.
pub(super) struct HistoryReader {
    store: Arc<dyn TimeSeriesStore>,
    sources: Vec<HistorySource>,
    cursors: Vec<HistoryCursor>,
    /// The next point of each series: time, device, series.
    heads: BinaryHeap<Reverse<(i64, usize, usize)>>,
    end: i64,
    page: usize,
    page_bytes: usize,
    is_started: bool,
}

impl HistoryReader {
    /// The history of devices with `start <= ts < end`.
    pub(super) fn new(
        store: Arc<dyn TimeSeriesStore>,
        sources: Vec<HistorySource>,
        start: i64,
        end: i64,
    ) -> Self {
        let cursors: Vec<HistoryCursor> = sources
            .iter()
            .enumerate()
            .flat_map(|(source, of)| {
                of.keys.iter().map(move |key| HistoryCursor {
                    source,
                    key: key.clone(),
                    points: VecDeque::new(),
                    next: Some(start),
                })
            })
            .collect();
        let page = (MAX_READ / cursors.len().max(1)).clamp(MIN_PAGE, MAX_PAGE);
        let page_bytes = (MAX_BYTES / cursors.len().max(1)).max(MIN_BYTES);
        Self {
            store,
            sources,
            cursors,
            heads: BinaryHeap::new(),
            end,
            page,
            page_bytes,
            is_started: false,
        }
    }

    /// The next message: all values that a device has at one time.
    ///
    /// # Errors
    /// The store failed.
    pub(super) async fn next(&mut self) -> StoreResult<Option<RuleMessage>> {
        if !self.is_started {
            self.is_started = true;
            for at in 0..self.cursors.len() {
                self.advance(at).await?;
            }
        }
        let Some(Reverse((ts, source, _))) = self.heads.peek().copied() else {
            return Ok(None);
        };
        let mut values = Vec::new();
        while let Some(Reverse((next, of, at))) = self.heads.peek().copied()
            && (next, of) == (ts, source)
        {
            self.heads.pop();
            if let Some(cursor) = self.cursors.get_mut(at)
                && let Some(point) = cursor.points.pop_front()
            {
                pack(&cursor.key, point.value.as_ref(), &mut values);
            }
            self.advance(at).await?;
        }
        let source = self.sources.get(source);
        Ok(source.map(|source| RuleMessage {
            id: derive_id(source.subject.entity.id, ts.cast_unsigned()),
            ts,
            tenant: source.subject.tenant,
            kind: MsgType::PostTelemetry,
            originator: source.subject.entity,
            customer: source.originator.customer,
            meta: MessageMetadata::Device {
                device: source.originator.clone(),
                ts: Some(ts),
            },
            data_type: DataType::Json,
            data: MessageBody::Packed(values.into()),
            ttl_seconds: 0,
            hops: 0,
            moves: 0,
            callers: None,
            previous_fields: None,
            budget: EvaluationBudget::new(),
        }))
    }

    /// Brings the next point of a series to the front.
    async fn advance(&mut self, at: usize) -> StoreResult<()> {
        let (page, end) = (self.page, self.end);
        let Some(cursor) = self.cursors.get_mut(at) else {
            return Ok(());
        };
        while cursor.points.is_empty()
            && let Some(start) = cursor.next.take()
            && start < end
            && let Some(source) = self.sources.get(cursor.source)
        {
            let query = RangeQuery {
                start,
                end,
                limit: page,
                order: PointOrder::Ascending,
            };
            let (subject, key) = (source.subject, &cursor.key);
            let read = self.store.page_or_point(subject, key, query, self.page_bytes);
            let read = read.await?;
            cursor.next = read.rest.map(|(start, _)| start);
            cursor.points = read.points.into();
        }
        if let Some(point) = cursor.points.front() {
            self.heads.push(Reverse((point.ts, cursor.source, at)));
        }
        Ok(())
    }
}
