//! Raw points of one series: rows in memory and of all epochs, and chunks, merged.

use std::collections::VecDeque;

use fieldline_core::ports::{PointsPage, StoreError, StoreErrorKind, StoreResult};
use fieldline_model::EntityKey;
use fieldline_model::kv::CorruptData;
use fieldline_model::timeseries::{DataPoint, PointOrder, RangeQuery};

use super::backing::{TableEntries, TableEntry, TableSnapshot, closed, half_open};
use super::block;
use super::chunk::{self, ChunkHeader, StoredPoint, is_expired};
use super::engine::{RowEpoch, SeriesEngine};
use super::error;
use super::keys::{self, EntityKeyBytes};
use super::rows::{MemtableRows, RankedPoint, RowCollector, RowReadOptions, RowValueReader};
use super::store::SeriesStore;

/// One series as it was at a moment.
pub(super) struct SeriesSnapshot<'a> {
    engine: &'a SeriesEngine,
    /// Rows that were in memory.
    memtable_rows: MemtableRows,
    epochs: Vec<std::sync::Arc<RowEpoch>>,
    snapshot: TableSnapshot,
    subject: EntityKeyBytes,
    name: &'a str,
    prefix: Vec<u8>,
    wanted: RowReadOptions,
}

impl<'a> SeriesSnapshot<'a> {
    /// A series, of which only times in a span will be asked for. Rows in memory come first, then the epochs, then the
    /// snapshot: what leaves one meanwhile is in the next.
    pub(super) fn new(
        store: &'a SeriesStore,
        engine: &'a SeriesEngine,
        subject: EntityKey,
        name: &'a str,
        span: (i64, i64),
        wanted: RowReadOptions,
    ) -> StoreResult<Self> {
        let subject = keys::subject_key(subject);
        let heads = MemtableRows::read(store, &subject, name, span, &wanted)?;
        let epochs = engine.epochs();
        Ok(Self {
            engine,
            memtable_rows: heads,
            epochs,
            snapshot: engine.snapshot(),
            prefix: keys::series_prefix(&subject, name),
            subject,
            name,
            wanted,
        })
    }

    /// Points in a range that have not expired, so many bytes of them.
    pub(super) fn page(&self, query: RangeQuery) -> StoreResult<PointsPage> {
        let mut page = PointsPage::default();
        if query.start >= query.end {
            return Ok(page);
        }
        let mut values = self.values();
        let mut bytes = 0;
        let mut sources = self.sources(query)?;
        while page.points.len() < query.limit {
            let Some(point) = next_point(&mut sources, query.order)? else {
                // What is in memory and was not taken comes behind all that was.
                page.rest = self.memtable_rows.next.and_then(|ts| rest_from(query, ts));
                return Ok(page);
            };
            let is_behind = self.memtable_rows.next.is_some_and(|next| match query.order {
                PointOrder::Ascending => point.ts >= next,
                PointOrder::Descending => point.ts <= next,
            });
            if is_behind {
                page.rest = self.memtable_rows.next.and_then(|ts| rest_from(query, ts));
                return Ok(page);
            }
            if is_expired(point.ts, point.ttl, self.wanted.now) {
                continue;
            }
            let cost = point.cost();
            if bytes + cost > self.wanted.max_bytes {
                page.rest = rest_from(query, point.ts);
                page.needs = if page.points.is_empty() { cost } else { 0 };
                return Ok(page);
            }
            bytes += cost;
            let ts = point.ts;
            let value = values.take(point)?;
            page.points.push(DataPoint { ts, value });
        }
        let rest = page.points.last().map(|last| match query.order {
            PointOrder::Ascending => (last.ts.saturating_add(1), query.end),
            PointOrder::Descending => (query.start, last.ts),
        });
        page.rest = rest.filter(|(start, end)| start < end);
        Ok(page)
    }

    /// The newest point of a series in a range that has not expired.
    pub(super) fn newest(
        store: &SeriesStore,
        engine: &SeriesEngine,
        subject: EntityKey,
        name: &str,
        (start, end): (i64, i64),
    ) -> StoreResult<Option<StoredPoint>> {
        let mut left = Some((start, end)).filter(|(start, end)| start < end);
        while let Some((start, end)) = left {
            let wanted = RowReadOptions {
                order: PointOrder::Descending,
                max_bytes: 1,
                texts: true,
                now: store.now_ms(),
            };
            let series = SeriesSnapshot::new(store, engine, subject, name, (start, end), wanted)?;
            let query = RangeQuery {
                start,
                end,
                limit: 1,
                order: PointOrder::Descending,
            };
            let mut sources = series.sources(query)?;
            while let Some(point) = next_point(&mut sources, query.order)? {
                if series.memtable_rows.next.is_some_and(|next| point.ts <= next) {
                    break;
                }
                let (ts, ttl) = (point.ts, point.ttl);
                if !is_expired(ts, ttl, wanted.now) {
                    let value = series.values().take(point)?;
                    return Ok(Some(StoredPoint { ts, ttl, value }));
                }
            }
            left = series.memtable_rows.next.and_then(|ts| rest_from(query, ts));
        }
        Ok(None)
    }

    /// Reads values of its rows.
    pub(super) fn values(&self) -> RowValueReader<'_> {
        RowValueReader {
            snapshot: &self.snapshot,
            epochs: &self.epochs,
            name: self.name,
            last: None,
        }
    }

    fn sources(&self, query: RangeQuery) -> StoreResult<Vec<MergeSource<'_>>> {
        let mut sources = vec![MergeSource::ready(
            self.memtable_points(query.start, query.end),
            query.order,
        )];
        for epoch in &self.epochs {
            sources.push(MergeSource::new(TableScan::Rows {
                blocks: self.blocks(epoch, query.start, query.end),
                held: None,
                name: self.name,
                wanted: self.wanted,
                start: query.start,
                end: query.end,
            }));
        }
        sources.push(MergeSource::new(TableScan::Chunks {
            chunks: self.chunks(query.start, query.end)?,
            start: query.start,
            end: query.end,
        }));
        Ok(sources)
    }

    fn memtable_points(&self, start: i64, end: i64) -> Vec<RankedPoint> {
        let heads = self.memtable_rows.points.iter();
        heads
            .filter(|head| (start..end).contains(&head.ts))
            .cloned()
            .collect()
    }

    /// The blocks that may hold rows of a range.
    fn blocks(&self, epoch: &RowEpoch, start: i64, end: i64) -> TableEntries {
        let from = keys::row_key(epoch.number, &self.subject, block::window_start(start), 0);
        let to = keys::row_key(epoch.number, &self.subject, end, 0);
        self.snapshot.range(&epoch.rows, half_open(&from, &to))
    }

    /// The chunks that may hold points of a range: the last one that begins before it, and all that begin in it.
    pub(super) fn chunks(&self, start: i64, end: i64) -> StoreResult<TableEntries> {
        let from = keys::chunk_key(&self.prefix, start);
        let before = self
            .snapshot
            .range(
                &self.engine.chunks,
                closed(&keys::chunk_key(&self.prefix, i64::MIN), &from),
            )
            .next_back()
            .transpose()?;
        let from = before.map_or(from, |(key, _)| key.to_vec());
        let to = keys::chunk_key(&self.prefix, end);
        Ok(self.snapshot.range(&self.engine.chunks, half_open(&from, &to)))
    }

    /// The newest row of each time in a range, by time.
    ///
    /// # Errors
    /// Rows in memory take more than is wanted of them.
    pub(super) fn newest_rows(&self, start: i64, end: i64) -> StoreResult<Vec<RankedPoint>> {
        if self.memtable_rows.next.is_some() {
            return Err(StoreError::new(
                StoreErrorKind::Unavailable,
                "so much text of this series has just arrived that it is not compared yet: try again in a moment",
            ));
        }
        let mut found = RowCollector::default();
        found.points = self.memtable_points(start, end);
        let mut enough = 2 * block::WINDOW_TIMES;
        for epoch in &self.epochs {
            for entry in self.blocks(epoch, start, end) {
                let (key, value) = entry?;
                found.add_rows(&key, &value, self.name, (start, end), &self.wanted)?;
                if found.points.len() > enough {
                    found.keep_newest();
                    enough = 2 * found.points.len().max(block::WINDOW_TIMES);
                }
            }
        }
        found.keep_newest();
        Ok(found.points)
    }
}

/// What is left of a query from a time on.
fn rest_from(query: RangeQuery, ts: i64) -> Option<(i64, i64)> {
    let rest = match query.order {
        PointOrder::Ascending => (ts.max(query.start), query.end),
        PointOrder::Descending => (query.start, ts.saturating_add(1).min(query.end)),
    };
    (rest.0 < rest.1).then_some(rest)
}

/// Checks a stored chunk and reads its header.
pub(super) fn read_header<'a>(key: &[u8], value: &'a [u8]) -> StoreResult<(ChunkHeader, &'a [u8])> {
    let decoded = chunk::decode_header(value).map_err(|cause| error::corrupt(key, cause))?;
    if keys::chunk_first_ts(key) != Some(decoded.0.first_ts) {
        return Err(error::corrupt(key, CorruptData("chunk is at the wrong place")));
    }
    Ok(decoded)
}

enum TableScan<'a> {
    /// All is there already.
    Nothing,
    Rows {
        blocks: TableEntries,
        /// The first block of the next window.
        held: Option<TableEntry>,
        name: &'a str,
        wanted: RowReadOptions,
        start: i64,
        end: i64,
    },
    Chunks {
        chunks: TableEntries,
        start: i64,
        end: i64,
    },
}

impl TableScan<'_> {
    /// Points of the next window or chunk that has any, ascending.
    fn next(&mut self, order: PointOrder) -> StoreResult<Option<Vec<RankedPoint>>> {
        match self {
            Self::Nothing => Ok(None),
            Self::Rows {
                blocks,
                held,
                name,
                wanted,
                start,
                end,
            } => {
                let mut window = None;
                let mut found = RowCollector::default();
                loop {
                    let block = match held.take() {
                        Some(block) => Some(block),
                        None => step(blocks, order)?,
                    };
                    let Some((key, value)) = block else { break };
                    let begins = keys::read_row_key(&key).map(|(_, ts, _)| block::window(ts));
                    if window.is_some_and(|window| Some(window) != begins) {
                        *held = Some((key, value));
                        break;
                    }
                    window = begins;
                    found.add_rows(&key, &value, name, (*start, *end), wanted)?;
                    // A window has so many times and no more, however many rows a device has sent for them.
                    if found.points.len() > 2 * block::WINDOW_TIMES {
                        found.keep_newest();
                    }
                }
                found.sort();
                Ok((window.is_some() || !found.points.is_empty()).then_some(found.points))
            }
            Self::Chunks { chunks, start, end } => match step(chunks, order)? {
                None => Ok(None),
                Some((key, value)) => {
                    let points = chunk_points(&key, &value, *start, *end)?;
                    let points = points.map(|point| RankedPoint::packed(point.ts, point.ttl, point.value));
                    Ok(Some(points.collect()))
                }
            },
        }
    }
}

fn step(entries: &mut TableEntries, order: PointOrder) -> StoreResult<Option<TableEntry>> {
    let entry = match order {
        PointOrder::Ascending => entries.next(),
        PointOrder::Descending => entries.next_back(),
    };
    entry.transpose()
}

/// Points of one table in order, read as they are asked for.
struct MergeSource<'a> {
    feed: TableScan<'a>,
    ready: VecDeque<RankedPoint>,
}

impl<'a> MergeSource<'a> {
    fn new(feed: TableScan<'a>) -> Self {
        Self {
            feed,
            ready: VecDeque::new(),
        }
    }

    /// Of points that are there, ascending.
    fn ready(points: Vec<RankedPoint>, order: PointOrder) -> Self {
        let mut source = Self::new(TableScan::Nothing);
        source.add(points, order);
        source
    }

    fn add(&mut self, points: Vec<RankedPoint>, order: PointOrder) {
        self.ready.extend(points);
        if order == PointOrder::Descending {
            self.ready.make_contiguous().reverse();
        }
    }

    fn head(&mut self, order: PointOrder) -> StoreResult<Option<&RankedPoint>> {
        while self.ready.is_empty() {
            match self.feed.next(order)? {
                Some(points) => self.add(points, order),
                None => return Ok(None),
            }
        }
        Ok(self.ready.front())
    }
}

fn chunk_points(
    key: &[u8],
    value: &[u8],
    start: i64,
    end: i64,
) -> StoreResult<impl Iterator<Item = StoredPoint> + use<>> {
    let (header, rest) = read_header(key, value)?;
    let points = if header.last_ts < start || header.first_ts >= end {
        Vec::new()
    } else {
        chunk::decode_columns(&header, rest)
            .map_err(|cause| error::corrupt(key, cause))?
            .into_points()
    };
    Ok(points
        .into_iter()
        .filter(move |point| (start..end).contains(&point.ts)))
}

/// The next time's point with the greatest rank.
fn next_point(sources: &mut [MergeSource<'_>], order: PointOrder) -> StoreResult<Option<RankedPoint>> {
    let mut next: Option<i64> = None;
    for source in sources.iter_mut() {
        if let Some(head) = source.head(order)? {
            let ts = head.ts;
            next = Some(match (next, order) {
                (None, _) => ts,
                (Some(other), PointOrder::Ascending) => other.min(ts),
                (Some(other), PointOrder::Descending) => other.max(ts),
            });
        }
    }
    let Some(next) = next else { return Ok(None) };
    let mut winner: Option<RankedPoint> = None;
    for source in sources.iter_mut() {
        while source.head(order)?.is_some_and(|head| head.ts == next) {
            if let Some(head) = source.ready.pop_front()
                && winner.as_ref().is_none_or(|other| other.rank <= head.rank)
            {
                winner = Some(head);
            }
        }
    }
    Ok(winner)
}
