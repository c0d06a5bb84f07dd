//! Aggregation into buckets, by the figures of whole chunks where they suffice and by tight loops over columns elsewhere.

use fieldline_core::options::ByteSize;
use fieldline_core::ports::{StoreError, StoreErrorKind, StoreResult};
use fieldline_model::kv::KvValue;
use fieldline_model::timeseries::{Aggregation, AggregationBucket, DataPoint, PointOrder};

use super::chunk::{self, ChunkColumns, ChunkHeader, ChunkValues, is_expired};
use super::error;
use super::read::{SeriesSnapshot, read_header};
use super::rows::{RankedPoint, RowReadOptions};

/// What is known of the values of one bucket.
#[derive(Debug, Clone)]
struct BucketAccumulator {
    count: u64,
    longs: u64,
    long_sum: i128,
    long_min: i64,
    long_max: i64,
    doubles: u64,
    double_sum: f64,
    double_min: f64,
    double_max: f64,
    text: Option<Box<str>>,
}

impl BucketAccumulator {
    const EMPTY: Self = Self {
        count: 0,
        longs: 0,
        long_sum: 0,
        long_min: i64::MAX,
        long_max: i64::MIN,
        doubles: 0,
        double_sum: 0.0,
        double_min: f64::INFINITY,
        double_max: f64::NEG_INFINITY,
        text: None,
    };

    fn long(&mut self, number: i64) {
        self.count += 1;
        self.longs += 1;
        self.long_sum += i128::from(number);
        self.long_min = self.long_min.min(number);
        self.long_max = self.long_max.max(number);
    }

    fn double(&mut self, number: f64) {
        self.count += 1;
        self.doubles += 1;
        self.double_sum += number;
        self.double_min = self.double_min.min(number);
        self.double_max = self.double_max.max(number);
    }

    fn add(&mut self, value: &KvValue, aggregation: Aggregation) {
        match value {
            KvValue::Long(number) => self.long(*number),
            KvValue::Double(number) => self.double(*number),
            KvValue::Bool(_) => self.count += 1,
            KvValue::Text(text) | KvValue::Json(text) => {
                self.count += 1;
                let better = match (aggregation, &self.text) {
                    (Aggregation::Min, Some(other)) => text < other,
                    (Aggregation::Max, Some(other)) => text > other,
                    (Aggregation::Min | Aggregation::Max, None) => true,
                    _ => false,
                };
                if better {
                    self.text = Some(text.clone());
                }
            }
        }
    }

    fn text_bytes(&self) -> usize {
        self.text.as_ref().map_or(0, |text| text.len())
    }

    fn add_chunk(&mut self, header: &ChunkHeader) {
        self.count += header.count as u64;
        if let Some(longs) = header.longs {
            self.longs += longs.count;
            self.long_sum += longs.sum;
            self.long_min = self.long_min.min(longs.min);
            self.long_max = self.long_max.max(longs.max);
        }
        if let Some(doubles) = header.doubles {
            self.doubles += doubles.count;
            self.double_sum += doubles.sum;
            self.double_min = self.double_min.min(doubles.min);
            self.double_max = self.double_max.max(doubles.max);
        }
    }

    fn extreme(self, long: i64, double: f64, pick: fn(f64, f64) -> f64) -> Option<KvValue> {
        match (self.longs, self.doubles) {
            (0, 0) => self.text.map(KvValue::Text),
            (_, 0) => Some(KvValue::Long(long)),
            (0, _) => Some(KvValue::Double(double)),
            _ => Some(KvValue::Double(pick(long as f64, double))),
        }
    }

    fn finish(self, aggregation: Aggregation) -> Option<KvValue> {
        let numbers = self.longs + self.doubles;
        let sum = || self.long_sum as f64 + self.double_sum;
        match aggregation {
            Aggregation::Count => (self.count > 0).then_some(KvValue::Long(self.count as i64)),
            Aggregation::Avg => (numbers > 0).then(|| KvValue::Double(sum() / numbers as f64)),
            Aggregation::Sum => (numbers > 0).then(|| match i64::try_from(self.long_sum) {
                Ok(sum) if self.doubles == 0 => KvValue::Long(sum),
                _ => KvValue::Double(sum()),
            }),
            Aggregation::Min => {
                let (long, double) = (self.long_min, self.double_min);
                self.extreme(long, double, f64::min)
            }
            Aggregation::Max => {
                let (long, double) = (self.long_max, self.double_max);
                self.extreme(long, double, f64::max)
            }
        }
    }
}

/// Bytes that the smallest or largest texts of all buckets may take.
const MAX_TEXTS: usize = 4 << 20;

/// Buckets in the making. Times may be added in any order, but ascending ones are fast.
struct BucketAggregator<'a> {
    buckets: &'a [AggregationBucket],
    sums: Vec<BucketAccumulator>,
    at: usize,
    aggregation: Aggregation,
    /// Bytes of their texts.
    texts: usize,
}

impl BucketAggregator<'_> {
    /// Takes a value into one of the sums.
    fn add_to(&mut self, at: usize, value: &KvValue) -> StoreResult<()> {
        let Some(sum) = self.sums.get_mut(at) else {
            return Ok(());
        };
        let before = sum.text_bytes();
        sum.add(value, self.aggregation);
        self.texts = self.texts + sum.text_bytes() - before;
        if self.texts > MAX_TEXTS {
            return Err(StoreError::new(
                StoreErrorKind::Invalid,
                format!(
                    "The texts of these intervals take more than {}: ask for fewer intervals",
                    ByteSize(MAX_TEXTS as u64)
                ),
            ));
        }
        Ok(())
    }

    /// Index of the bucket of a time.
    fn find(&mut self, ts: i64) -> Option<usize> {
        let holds = |bucket: &AggregationBucket| bucket.start <= ts && ts < bucket.end;
        for at in [self.at, self.at + 1] {
            if self.buckets.get(at).is_some_and(holds) {
                self.at = at;
                return Some(at);
            }
        }
        let at = self.buckets.partition_point(|bucket| bucket.end <= ts);
        self.buckets.get(at).is_some_and(holds).then(|| {
            self.at = at;
            at
        })
    }

    fn add(&mut self, ts: i64, value: &KvValue) -> StoreResult<()> {
        match self.find(ts) {
            Some(at) => self.add_to(at, value),
            None => Ok(()),
        }
    }

    /// Adds a whole chunk by its figures, if it lies in one bucket and they say enough.
    fn add_whole(&mut self, header: &ChunkHeader) -> bool {
        let needs_text = matches!(self.aggregation, Aggregation::Min | Aggregation::Max) && header.has_text();
        let (Some(first), Some(last)) = (self.find(header.first_ts), self.find(header.last_ts)) else {
            return false;
        };
        match self.sums.get_mut(first) {
            Some(sum) if first == last && !needs_text => {
                sum.add_chunk(header);
                true
            }
            _ => false,
        }
    }

    /// Adds a chunk that nothing overrides and of which nothing has expired, run by run of points in one bucket.
    fn add_columns(&mut self, columns: &ChunkColumns) -> StoreResult<()> {
        let mut from = 0;
        while let Some(&ts) = columns.ts.get(from) {
            let Some(at) = self.find(ts) else {
                from += 1;
                continue;
            };
            let end = self.buckets.get(at).map_or(ts, |bucket| bucket.end);
            let count = columns
                .ts
                .get(from..)
                .unwrap_or_default()
                .partition_point(|ts| *ts < end);
            let to = from + count.max(1);
            match (&columns.values, self.sums.get_mut(at)) {
                (ChunkValues::Long(numbers), Some(sum)) => {
                    for number in numbers.get(from..to).unwrap_or_default() {
                        sum.long(*number);
                    }
                }
                (ChunkValues::Double(numbers), Some(sum)) => {
                    for number in numbers.get(from..to).unwrap_or_default() {
                        sum.double(*number);
                    }
                }
                (ChunkValues::Other(values), Some(_)) => {
                    for value in values.get(from..to).unwrap_or_default() {
                        self.add_to(at, value)?;
                    }
                }
                (_, None) => {}
            }
            from = to;
        }
        Ok(())
    }
}

/// Bytes of rows in memory that are compared.
const MAX_HEADS: usize = 16 << 20;

/// What is wanted of rows for an aggregation.
pub(super) const fn wanted(aggregation: Aggregation, now: i64) -> RowReadOptions {
    let texts = matches!(aggregation, Aggregation::Min | Aggregation::Max);
    RowReadOptions {
        order: PointOrder::Ascending,
        // Numbers have a known size, and there are never more of them than rows.
        max_bytes: if texts { MAX_HEADS } else { usize::MAX },
        texts,
        now,
    }
}

/// One point a bucket that holds anything.
pub(super) fn aggregate(
    series: &SeriesSnapshot<'_>,
    aggregation: Aggregation,
    buckets: &[AggregationBucket],
    now: i64,
) -> StoreResult<Vec<DataPoint>> {
    let (Some(first), Some(last)) = (buckets.first(), buckets.last()) else {
        return Ok(Vec::new());
    };
    let (start, end) = (first.start, last.end);
    if start >= end {
        return Ok(Vec::new());
    }
    let mut sums = BucketAggregator {
        buckets,
        sums: vec![BucketAccumulator::EMPTY; buckets.len()],
        at: 0,
        aggregation,
        texts: 0,
    };
    let rows = series.newest_rows(start, end)?;
    for entry in series.chunks(start, end)? {
        let (key, value) = entry?;
        let (header, rest) = read_header(&key, &value)?;
        if header.last_ts < start {
            continue;
        }
        let covering = overlapping(&rows, header.first_ts, header.last_ts);
        let is_whole = covering.is_empty() && header.first_expiry.is_none_or(|at| at >= now);
        if is_whole && sums.add_whole(&header) {
            continue;
        }
        let columns = chunk::decode_columns(&header, rest).map_err(|cause| error::corrupt(&key, cause))?;
        if is_whole {
            sums.add_columns(&columns)?;
            continue;
        }
        for point in columns.into_points() {
            let is_overridden = covering.binary_search_by_key(&point.ts, |row| row.ts).is_ok();
            if !is_overridden && !is_expired(point.ts, point.ttl, now) {
                sums.add(point.ts, &point.value)?;
            }
        }
    }
    let mut values = series.values();
    for row in rows {
        let ts = row.ts;
        if !is_expired(ts, row.ttl, now) {
            sums.add(ts, &values.take(row)?)?;
        }
    }
    let points = buckets.iter().zip(sums.sums).filter_map(|(bucket, sum)| {
        let value = sum.finish(aggregation)?;
        Some(DataPoint {
            ts: bucket.middle(),
            value,
        })
    });
    Ok(points.collect())
}

fn overlapping(rows: &[RankedPoint], first: i64, last: i64) -> &[RankedPoint] {
    let from = rows.partition_point(|row| row.ts < first);
    let to = rows.partition_point(|row| row.ts <= last);
    rows.get(from..to).unwrap_or_default()
}
