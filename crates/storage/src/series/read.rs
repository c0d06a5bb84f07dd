//! Raw points of one series: rows in memory and of all epochs, and chunks, merged.

use std::collections::VecDeque;

use fieldline_core::ports::StoreResult;
use fieldline_model::Subject;
use fieldline_model::kv::{Corrupt, Value, unpack};
use fieldline_model::timeseries::{Order, Point, RangeQuery};
use fjall::{Iter, Readable, Snapshot, UserKey, UserValue};

use super::block::{self, Row};
use super::chunk::{self, Header, StoredPoint, is_expired};
use super::engine::{Engine, Epoch};
use super::error;
use super::keys::{self, SubjectKey};
use super::store::SeriesStore;

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
    /// Rows that were in memory, by time and rank.
    heads: Vec<Ranked>,
    epochs: Vec<std::sync::Arc<Epoch>>,
    snapshot: Snapshot,
    subject: SubjectKey,
    name: &'a str,
    prefix: Vec<u8>,
}

impl<'a> Series<'a> {
    /// A series, of which only times in a span will be asked for. Rows in memory come first, then the epochs, then the
    /// snapshot: what leaves one meanwhile is in the next.
    pub(super) fn new(
        store: &'a SeriesStore,
        engine: &'a Engine,
        subject: Subject,
        name: &'a str,
        span: (i64, i64),
    ) -> StoreResult<Self> {
        let subject = keys::subject_key(subject);
        let heads = head_rows(store, &subject, name, span)?;
        let epochs = engine.epochs();
        Ok(Self {
            engine,
            heads,
            epochs,
            snapshot: engine.db.snapshot(),
            prefix: keys::series_prefix(&subject, name),
            subject,
            name,
        })
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
        let mut sources = vec![Source::ready(self.heads_in(query.start, query.end), query.order)];
        for epoch in &self.epochs {
            sources.push(Source::new(Feed::Rows {
                blocks: self.blocks(epoch, query.start, query.end),
                held: None,
                name: self.name,
                start: query.start,
                end: query.end,
            }));
        }
        sources.push(Source::new(Feed::Chunks {
            chunks: self.chunks(query.start, query.end)?,
            start: query.start,
            end: query.end,
        }));
        Ok(sources)
    }

    fn heads_in(&self, start: i64, end: i64) -> Vec<Ranked> {
        let heads = self.heads.iter();
        heads
            .filter(|head| (start..end).contains(&head.point.ts))
            .cloned()
            .collect()
    }

    /// The blocks that may hold rows of a range.
    fn blocks(&self, epoch: &Epoch, start: i64, end: i64) -> Iter {
        let from = keys::row_key(epoch.number, &self.subject, block::window_start(start), 0);
        let to = keys::row_key(epoch.number, &self.subject, end, 0);
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
        let mut found = self.heads_in(start, end);
        let mut enough = 2 * block::WINDOW_TIMES;
        for epoch in &self.epochs {
            for entry in self.blocks(epoch, start, end) {
                let (key, value) = entry.into_inner().map_err(error::engine)?;
                add_rows(&key, &value, self.name, (start, end), &mut found)?;
                if found.len() > enough {
                    keep_newest(&mut found);
                    enough = 2 * found.len().max(block::WINDOW_TIMES);
                }
            }
        }
        keep_newest(&mut found);
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

/// The rows of a subject in a span that are in memory and have the name, by time and rank.
fn head_rows(
    store: &SeriesStore,
    subject: &SubjectKey,
    name: &str,
    (start, end): (i64, i64),
) -> StoreResult<Vec<Ranked>> {
    let mut found = Vec::new();
    let mut wrong = None;
    store
        .heads
        .scan(subject, start, end, |row| match ranked(&row, name) {
            Ok(point) => found.extend(point),
            Err(cause) => wrong = Some(cause),
        });
    if let Some(cause) = wrong {
        return Err(error::corrupt(subject, cause));
    }
    sort(&mut found);
    Ok(found)
}

fn ranked(row: &Row<'_>, name: &str) -> Result<Option<Ranked>, Corrupt> {
    let (ts, ttl) = (row.ts, row.ttl);
    let found = value_of(name, row.values)?;
    Ok(found.map(|value| Ranked {
        point: StoredPoint { ts, ttl, value },
        rank: row.seq.saturating_add(1),
    }))
}

fn sort(points: &mut [Ranked]) {
    let by_time = |it: &Ranked| (it.point.ts, it.rank);
    if !points.is_sorted_by_key(by_time) {
        points.sort_by_key(by_time);
    }
}

/// Sorts points, and keeps the one that counts of each time.
fn keep_newest(points: &mut Vec<Ranked>) {
    sort(points);
    points.dedup_by(|later, kept| {
        let same = later.point.ts == kept.point.ts;
        if same {
            std::mem::swap(later, kept);
        }
        same
    });
}

/// Adds the rows of a block that lie in a range and have the name.
fn add_rows(
    key: &[u8],
    value: &[u8],
    name: &str,
    (start, end): (i64, i64),
    found: &mut impl Extend<Ranked>,
) -> StoreResult<()> {
    let mut add = || {
        for row in block::rows(key, value)? {
            let row = row?;
            if (start..end).contains(&row.ts) {
                found.extend(ranked(&row, name)?);
            }
        }
        Ok(())
    };
    add().map_err(|cause| error::corrupt(keys::without_epoch(key), cause))
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
    /// All is there already.
    Nothing,
    Rows {
        blocks: Iter,
        /// The first block of the next window.
        held: Option<(UserKey, UserValue)>,
        name: &'a str,
        start: i64,
        end: i64,
    },
    Chunks {
        chunks: Iter,
        start: i64,
        end: i64,
    },
}

impl Feed<'_> {
    /// Points of the next window or chunk that has any, ascending.
    fn next(&mut self, order: Order) -> StoreResult<Option<Vec<Ranked>>> {
        match self {
            Self::Nothing => Ok(None),
            Self::Rows {
                blocks,
                held,
                name,
                start,
                end,
            } => {
                let mut window = None;
                let mut found = Vec::new();
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
                    add_rows(&key, &value, name, (*start, *end), &mut found)?;
                    // A window has so many times and no more, however many rows a device has sent for them.
                    if found.len() > 2 * block::WINDOW_TIMES {
                        keep_newest(&mut found);
                    }
                }
                sort(&mut found);
                Ok((window.is_some() || !found.is_empty()).then_some(found))
            }
            Self::Chunks { chunks, start, end } => match step(chunks, order)? {
                None => Ok(None),
                Some((key, value)) => {
                    let points = chunk_points(&key, &value, *start, *end)?;
                    Ok(Some(points.map(|point| Ranked { point, rank: 0 }).collect()))
                }
            },
        }
    }
}

fn step(entries: &mut Iter, order: Order) -> StoreResult<Option<(UserKey, UserValue)>> {
    let entry = match order {
        Order::Ascending => entries.next(),
        Order::Descending => entries.next_back(),
    };
    entry
        .map(|entry| entry.into_inner().map_err(error::engine))
        .transpose()
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

    /// Of points that are there, ascending.
    fn ready(points: Vec<Ranked>, order: Order) -> Self {
        let mut source = Self::new(Feed::Nothing);
        source.add(points, order);
        source
    }

    fn add(&mut self, points: Vec<Ranked>, order: Order) {
        self.ready.extend(points);
        if order == Order::Descending {
            self.ready.make_contiguous().reverse();
        }
    }

    fn head(&mut self, order: Order) -> StoreResult<Option<&Ranked>> {
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
