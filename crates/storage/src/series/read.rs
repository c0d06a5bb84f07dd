//! Raw points of one series: rows of all epochs and chunks, merged.

use std::cmp::Reverse;
use std::collections::VecDeque;

use fieldline_core::ports::StoreResult;
use fieldline_model::Subject;
use fieldline_model::kv::{Corrupt, Value, take_array, unpack};
use fieldline_model::timeseries::{Order, Point, RangeQuery};
use fjall::{Guard, Iter, Readable, Snapshot};

use super::chunk::{self, Header, StoredPoint, is_expired};
use super::engine::{Engine, Epoch};
use super::error;
use super::keys::{self, SubjectKey};

/// A point with what decides between several at one time: rows beat chunks, later rows beat earlier ones.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Ranked {
    pub(super) point: StoredPoint,
    /// Number of the row plus one; 0 for a point of a chunk.
    rank: u64,
}

/// One series as it was at a moment.
pub(super) struct Series<'a> {
    engine: &'a Engine,
    epochs: Vec<std::sync::Arc<Epoch>>,
    snapshot: Snapshot,
    subject: SubjectKey,
    name: &'a str,
    prefix: Vec<u8>,
}

impl<'a> Series<'a> {
    pub(super) fn new(engine: &'a Engine, subject: Subject, name: &'a str) -> Self {
        // The epochs before the snapshot: one that is gone by then is in the chunks of the snapshot.
        let epochs = engine.epochs();
        let subject = keys::subject_key(subject);
        Self {
            engine,
            epochs,
            snapshot: engine.db.snapshot(),
            prefix: keys::series_prefix(&subject, name),
            subject,
            name,
        }
    }

    /// Points in a range that have not expired.
    pub(super) fn range(&self, query: RangeQuery, now: i64) -> StoreResult<Vec<Point>> {
        let mut points = Vec::new();
        self.scan(query, now, |point| {
            points.push(Point {
                ts: point.ts,
                value: point.value,
            });
        })?;
        Ok(points)
    }

    /// The newest point in a range that has not expired.
    pub(super) fn newest(&self, start: i64, end: i64, now: i64) -> StoreResult<Option<StoredPoint>> {
        let query = RangeQuery {
            start,
            end,
            limit: 1,
            order: Order::Descending,
        };
        let mut newest = None;
        self.scan(query, now, |point| newest = Some(point))?;
        Ok(newest)
    }

    fn scan(&self, query: RangeQuery, now: i64, mut show: impl FnMut(StoredPoint)) -> StoreResult<()> {
        if query.start >= query.end {
            return Ok(());
        }
        let mut left = query.limit;
        let mut sources = self.sources(query)?;
        while left > 0 {
            let Some(point) = next_point(&mut sources, query.order)? else {
                break;
            };
            if !is_expired(point.ts, point.ttl, now) {
                show(point);
                left -= 1;
            }
        }
        Ok(())
    }

    fn sources(&self, query: RangeQuery) -> StoreResult<Vec<Source<'_>>> {
        let mut sources = Vec::new();
        for epoch in &self.epochs {
            sources.push(Source::new(Feed::Rows {
                rows: self.rows(epoch, query.start, query.end),
                name: self.name,
            }));
        }
        sources.push(Source::new(Feed::Chunks {
            chunks: self.chunks(query.start, query.end)?,
            start: query.start,
            end: query.end,
        }));
        Ok(sources)
    }

    fn rows(&self, epoch: &Epoch, start: i64, end: i64) -> Iter {
        let from = keys::row_key(&self.subject, start, 0);
        let to = keys::row_key(&self.subject, end, 0);
        self.snapshot.range(&epoch.rows, from..to)
    }

    /// The chunks that may hold points of a range: the last one that begins before it, and all that begin in it.
    pub(super) fn chunks(&self, start: i64, end: i64) -> StoreResult<Iter> {
        let from = keys::chunk_key(&self.prefix, start);
        let before = self
            .snapshot
            .range(
                &self.engine.chunks,
                keys::chunk_key(&self.prefix, i64::MIN)..=from.clone(),
            )
            .next_back()
            .map(|entry| entry.key().map_err(error::engine))
            .transpose()?;
        let from = before.map_or(from, |key| key.to_vec());
        let to = keys::chunk_key(&self.prefix, end);
        Ok(self.snapshot.range(&self.engine.chunks, from..to))
    }

    /// The newest row of each time in a range, by time.
    pub(super) fn newest_rows(&self, start: i64, end: i64) -> StoreResult<Vec<StoredPoint>> {
        let mut found: Vec<Ranked> = Vec::new();
        for epoch in &self.epochs {
            for entry in self.rows(epoch, start, end) {
                found.extend(ranked_row(entry, self.name)?);
            }
        }
        let by_time = |it: &Ranked| (it.point.ts, Reverse(it.rank));
        if !found.is_sorted_by_key(by_time) {
            found.sort_by_key(by_time);
        }
        found.dedup_by_key(|it| it.point.ts);
        Ok(found.into_iter().map(|it| it.point).collect())
    }
}

/// The value of a name in packed key-values.
pub(super) fn value_of(name: &str, values: &[u8]) -> Result<Option<Value>, Corrupt> {
    let mut found = None;
    for item in unpack(values) {
        let (other, value) = item?;
        if other == name {
            found = Some(value);
        }
    }
    Ok(found.map(|value| value.to_value()))
}

/// Time-to-live and packed key-values of a stored row.
pub(super) fn read_row(mut value: &[u8]) -> Result<(u32, &[u8]), Corrupt> {
    let ttl = u32::from_le_bytes(take_array(&mut value)?);
    Ok((ttl, value))
}

fn ranked_row(entry: Guard, name: &str) -> StoreResult<Option<Ranked>> {
    let (key, value) = entry.into_inner().map_err(error::engine)?;
    let row = || {
        let (_, ts, seq) = keys::read_row_key(&key).ok_or(Corrupt("row key has another length"))?;
        let (ttl, values) = read_row(&value)?;
        let found = value_of(name, values)?;
        Ok(found.map(|value| Ranked {
            point: StoredPoint { ts, ttl, value },
            rank: seq.saturating_add(1),
        }))
    };
    row().map_err(|cause| error::corrupt(&key, cause))
}

/// Checks a stored chunk and reads its header.
pub(super) fn read_header<'a>(key: &[u8], value: &'a [u8]) -> StoreResult<(Header, &'a [u8])> {
    let decoded = chunk::decode_header(value).map_err(|cause| error::corrupt(key, cause))?;
    if keys::chunk_first_ts(key) != Some(decoded.0.first_ts) {
        return Err(error::corrupt(key, Corrupt("chunk is at the wrong place")));
    }
    Ok(decoded)
}

enum Feed<'a> {
    Rows { rows: Iter, name: &'a str },
    Chunks { chunks: Iter, start: i64, end: i64 },
}

/// Points of one table in order, read as they are asked for.
struct Source<'a> {
    feed: Feed<'a>,
    ready: VecDeque<Ranked>,
}

impl<'a> Source<'a> {
    fn new(feed: Feed<'a>) -> Self {
        Self {
            feed,
            ready: VecDeque::new(),
        }
    }

    fn head(&mut self, order: Order) -> StoreResult<Option<&Ranked>> {
        while self.ready.is_empty() {
            let entry = match (&mut self.feed, order) {
                (Feed::Rows { rows: iter, .. } | Feed::Chunks { chunks: iter, .. }, Order::Ascending) => {
                    iter.next()
                }
                (Feed::Rows { rows: iter, .. } | Feed::Chunks { chunks: iter, .. }, Order::Descending) => {
                    iter.next_back()
                }
            };
            let Some(entry) = entry else { return Ok(None) };
            match &self.feed {
                Feed::Rows { name, .. } => self.ready.extend(ranked_row(entry, name)?),
                Feed::Chunks { start, end, .. } => {
                    let points = chunk_points(entry, *start, *end)?;
                    self.ready.extend(points.map(|point| Ranked { point, rank: 0 }));
                    if order == Order::Descending {
                        self.ready.make_contiguous().reverse();
                    }
                }
            }
        }
        Ok(self.ready.front())
    }
}

fn chunk_points(entry: Guard, start: i64, end: i64) -> StoreResult<impl Iterator<Item = StoredPoint>> {
    let (key, value) = entry.into_inner().map_err(error::engine)?;
    let (header, rest) = read_header(&key, &value)?;
    let points = if header.last_ts < start || header.first_ts >= end {
        Vec::new()
    } else {
        chunk::decode_columns(&header, rest)
            .map_err(|cause| error::corrupt(&key, cause))?
            .into_points()
    };
    Ok(points
        .into_iter()
        .filter(move |point| (start..end).contains(&point.ts)))
}

/// The next time's point with the greatest rank.
fn next_point(sources: &mut [Source<'_>], order: Order) -> StoreResult<Option<StoredPoint>> {
    let mut next: Option<i64> = None;
    for source in sources.iter_mut() {
        if let Some(head) = source.head(order)? {
            let ts = head.point.ts;
            next = Some(match (next, order) {
                (None, _) => ts,
                (Some(other), Order::Ascending) => other.min(ts),
                (Some(other), Order::Descending) => other.max(ts),
            });
        }
    }
    let Some(next) = next else { return Ok(None) };
    let mut winner: Option<Ranked> = None;
    for source in sources.iter_mut() {
        while source.head(order)?.is_some_and(|head| head.point.ts == next) {
            if let Some(head) = source.ready.pop_front()
                && winner.as_ref().is_none_or(|other| other.rank <= head.rank)
            {
                winner = Some(head);
            }
        }
    }
    Ok(winner.map(|it| it.point))
}
