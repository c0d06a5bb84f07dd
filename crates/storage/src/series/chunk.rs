//! A chunk: consecutive points of one series, compressed column by column.
//!
//! ```text
//! chunk   := version u8 · crc32c u32 over all that follows · types u8 · flags u8 · count varint
//!            · first ts zigzag · last ts - first ts varint
//!            · [first expiry zigzag] · [last expiry - first expiry varint]      by flags
//!            · [longs summary] · [doubles summary]                              by types
//!            · ts column · ttl column · [type codes] · one column a type present
//! longs   := count varint · sum i128 · min zigzag · max - min varint
//! doubles := count varint · sum f64 · min f64 · max f64
//! column  := encoding u8 · length varint · bytes
//! ```
//!
//! `types` is the set of value types as bits of their codes; text and JSON share a column. Where all points have one
//! type there are no type codes. The times are strictly ascending. The time-to-live column is a list of runs.
//! Numbers go through pco, or, where the step between neighbours is constant, take a few bytes whatever their count.
//!
//! Decoding allocates nothing by what the bytes claim: the count is capped before, and every column must fit it.

mod column;

use fieldline_model::kv::{CorruptData, KvValue, read_varint, take, take_array, write_varint};

use column::{unzigzag, zigzag};

/// A chunk is split when it holds more points than this.
pub const MAX_POINTS: usize = 8192;
/// More points than any writer puts into a chunk.
const MAX_DECODED_POINTS: u64 = 65_536;

const VERSION: u8 = 1;
const BOOL: u8 = 1;
const LONG: u8 = 1 << 1;
const DOUBLE: u8 = 1 << 2;
const TEXT: u8 = 1 << 3;
const JSON: u8 = 1 << 4;
const SOME_EXPIRE: u8 = 1;
const ALL_EXPIRE: u8 = 2;

/// A point as it is stored.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredPoint {
    /// Time, milliseconds.
    pub ts: i64,
    /// Seconds it is kept after its time; 0 keeps it for ever.
    pub ttl: u32,
    /// The value.
    pub value: KvValue,
}

/// When a point with a time-to-live expires, `None` for never.
pub(super) const fn expiry(ts: i64, ttl: u32) -> Option<i64> {
    if ttl == 0 {
        return None;
    }
    Some(ts.saturating_add(ttl as i64 * 1000))
}

pub(super) fn is_expired(ts: i64, ttl: u32, now: i64) -> bool {
    expiry(ts, ttl).is_some_and(|at| at < now)
}

/// Figures of the longs of a chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LongStats {
    /// How many there are.
    pub count: u64,
    /// Their sum.
    pub sum: i128,
    /// The smallest.
    pub min: i64,
    /// The largest.
    pub max: i64,
}

/// Figures of the doubles of a chunk.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DoubleStats {
    /// How many there are.
    pub count: u64,
    /// Their sum.
    pub sum: f64,
    /// The smallest.
    pub min: f64,
    /// The largest.
    pub max: f64,
}

/// What is known of a chunk without decoding its columns.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ChunkHeader {
    types: u8,
    /// How many points there are.
    pub count: usize,
    /// Time of the first point.
    pub first_ts: i64,
    /// Time of the last point.
    pub last_ts: i64,
    /// When the first point expires, `None` where none ever does.
    pub first_expiry: Option<i64>,
    /// When the last point expires, `None` where one never does.
    pub last_expiry: Option<i64>,
    /// Figures of its longs.
    pub longs: Option<LongStats>,
    /// Figures of its doubles.
    pub doubles: Option<DoubleStats>,
}

impl ChunkHeader {
    /// Whether there is text or JSON in it, which the figures do not cover.
    pub fn has_text(&self) -> bool {
        self.types & (TEXT | JSON) != 0
    }
}

/// Values of a decoded chunk, in the order of their times.
#[derive(Debug, Clone, PartialEq)]
pub enum ChunkValues {
    /// All are longs.
    Long(Vec<i64>),
    /// All are doubles.
    Double(Vec<f64>),
    /// Other types, or several.
    Other(Vec<KvValue>),
}

/// A decoded chunk.
#[derive(Debug, Clone, PartialEq)]
pub struct ChunkColumns {
    /// Times, strictly ascending.
    pub ts: Vec<i64>,
    /// Runs of equal time-to-live: how many points, seconds.
    pub ttl: Vec<(usize, u32)>,
    /// Values.
    pub values: ChunkValues,
}

impl ChunkColumns {
    /// The points one by one.
    pub fn into_points(self) -> Vec<StoredPoint> {
        let ttl = self
            .ttl
            .into_iter()
            .flat_map(|(count, ttl)| std::iter::repeat_n(ttl, count));
        let values: Box<dyn Iterator<Item = KvValue>> = match self.values {
            ChunkValues::Long(numbers) => Box::new(numbers.into_iter().map(KvValue::Long)),
            ChunkValues::Double(numbers) => Box::new(numbers.into_iter().map(KvValue::Double)),
            ChunkValues::Other(values) => Box::new(values.into_iter()),
        };
        self.ts
            .into_iter()
            .zip(ttl)
            .zip(values)
            .map(|((ts, ttl), value)| StoredPoint { ts, ttl, value })
            .collect()
    }
}

/// Encodes points whose times are strictly ascending.
pub fn encode(points: &[StoredPoint]) -> Vec<u8> {
    let types = points
        .iter()
        .fold(0, |types, point| types | 1 << point.value.as_ref().type_code());
    let mut out = vec![VERSION, 0, 0, 0, 0];
    put_header(types, points, &mut out);
    let ts: Vec<i64> = points.iter().map(|point| point.ts).collect();
    column::put_longs(&ts, &mut out);
    put_ttl(points, &mut out);
    put_values(types, points, &mut out);
    let crc = crc32c::crc32c(out.get(5..).unwrap_or_default());
    if let Some(place) = out.get_mut(1..5) {
        place.copy_from_slice(&crc.to_le_bytes());
    }
    out
}

fn put_header(types: u8, points: &[StoredPoint], out: &mut Vec<u8>) {
    let first = points.first().map_or(0, |point| point.ts);
    let last = points.last().map_or(0, |point| point.ts);
    let expiries = || points.iter().filter_map(|point| expiry(point.ts, point.ttl));
    let (some, all) = (expiries().next().is_some(), expiries().count() == points.len());
    let flags = if some { SOME_EXPIRE } else { 0 } | if some && all { ALL_EXPIRE } else { 0 };
    out.extend_from_slice(&[types, flags]);
    write_varint(points.len() as u64, out);
    write_varint(zigzag(first), out);
    write_varint(last.wrapping_sub(first) as u64, out);
    if let (Some(from), Some(to)) = (expiries().min(), expiries().max()) {
        write_varint(zigzag(from), out);
        if all {
            write_varint(to.wrapping_sub(from) as u64, out);
        }
    }
    if types & LONG != 0 {
        put_long_figures(points, out);
    }
    if types & DOUBLE != 0 {
        put_double_figures(points, out);
    }
}

fn put_long_figures(points: &[StoredPoint], out: &mut Vec<u8>) {
    let (mut count, mut sum, mut min, mut max) = (0u64, 0i128, i64::MAX, i64::MIN);
    for point in points {
        if let KvValue::Long(number) = point.value {
            count += 1;
            sum += i128::from(number);
            min = min.min(number);
            max = max.max(number);
        }
    }
    write_varint(count, out);
    out.extend_from_slice(&sum.to_le_bytes());
    write_varint(zigzag(min), out);
    write_varint(max.wrapping_sub(min) as u64, out);
}

fn put_double_figures(points: &[StoredPoint], out: &mut Vec<u8>) {
    let (mut count, mut sum, mut min, mut max) = (0u64, 0f64, f64::INFINITY, f64::NEG_INFINITY);
    for point in points {
        if let KvValue::Double(number) = point.value {
            count += 1;
            sum += number;
            min = min.min(number);
            max = max.max(number);
        }
    }
    write_varint(count, out);
    for number in [sum, min, max] {
        out.extend_from_slice(&number.to_le_bytes());
    }
}

fn put_ttl(points: &[StoredPoint], out: &mut Vec<u8>) {
    let mut bytes = Vec::new();
    for run in points.chunk_by(|a, b| a.ttl == b.ttl) {
        write_varint(run.len() as u64, &mut bytes);
        write_varint(u64::from(run.first().map_or(0, |point| point.ttl)), &mut bytes);
    }
    column::put_bytes(&bytes, out);
}

fn put_values(types: u8, points: &[StoredPoint], out: &mut Vec<u8>) {
    let values = || points.iter().map(|point| &point.value);
    if types.count_ones() > 1 {
        let codes: Vec<u8> = values().map(|value| value.as_ref().type_code()).collect();
        column::put_bytes(&codes, out);
    }
    if types & BOOL != 0 {
        let bits: Vec<bool> = values()
            .filter_map(|value| match value {
                KvValue::Bool(bit) => Some(*bit),
                _ => None,
            })
            .collect();
        column::put_bools(&bits, out);
    }
    if types & LONG != 0 {
        let numbers: Vec<i64> = values()
            .filter_map(|value| match value {
                KvValue::Long(number) => Some(*number),
                _ => None,
            })
            .collect();
        column::put_longs(&numbers, out);
    }
    if types & DOUBLE != 0 {
        let numbers: Vec<f64> = values()
            .filter_map(|value| match value {
                KvValue::Double(number) => Some(*number),
                _ => None,
            })
            .collect();
        column::put_doubles(&numbers, out);
    }
    if types & (TEXT | JSON) != 0 {
        let mut bytes = Vec::new();
        for value in values() {
            if let KvValue::Text(text) | KvValue::Json(text) = value {
                write_varint(text.len() as u64, &mut bytes);
                bytes.extend_from_slice(text.as_bytes());
            }
        }
        column::put_bytes(&bytes, out);
    }
}

/// Checks a chunk's checksum and reads its header; the rest is for [`decode_columns`].
pub fn decode_header(bytes: &[u8]) -> Result<(ChunkHeader, &[u8]), CorruptData> {
    let mut rest = bytes;
    let [version] = take_array::<1>(&mut rest)?;
    if version != VERSION {
        return Err(CorruptData("unknown chunk version"));
    }
    let crc = u32::from_le_bytes(take_array(&mut rest)?);
    if crc32c::crc32c(rest) != crc {
        return Err(CorruptData("chunk does not match its checksum"));
    }
    let header = take_header(&mut rest)?;
    Ok((header, rest))
}

fn take_header(rest: &mut &[u8]) -> Result<ChunkHeader, CorruptData> {
    let [types, flags] = take_array::<2>(rest)?;
    let count = read_varint(rest)?;
    if count == 0 || count > MAX_DECODED_POINTS || types == 0 || types >= 1 << 5 {
        return Err(CorruptData("impossible chunk header"));
    }
    let first_ts = unzigzag(read_varint(rest)?);
    let last_ts = first_ts.wrapping_add(read_varint(rest)? as i64);
    if last_ts < first_ts {
        return Err(CorruptData("chunk ends before it begins"));
    }
    let (mut first_expiry, mut last_expiry) = (None, None);
    if flags & SOME_EXPIRE != 0 {
        let from = unzigzag(read_varint(rest)?);
        first_expiry = Some(from);
        if flags & ALL_EXPIRE != 0 {
            last_expiry = Some(from.wrapping_add(read_varint(rest)? as i64));
        }
    }
    let longs = if types & LONG != 0 {
        let count = read_varint(rest)?;
        let sum = i128::from_le_bytes(take_array(rest)?);
        let min = unzigzag(read_varint(rest)?);
        let max = min.wrapping_add(read_varint(rest)? as i64);
        Some(LongStats { count, sum, min, max })
    } else {
        None
    };
    let doubles = if types & DOUBLE != 0 {
        Some(DoubleStats {
            count: read_varint(rest)?,
            sum: f64::from_le_bytes(take_array(rest)?),
            min: f64::from_le_bytes(take_array(rest)?),
            max: f64::from_le_bytes(take_array(rest)?),
        })
    } else {
        None
    };
    Ok(ChunkHeader {
        types,
        count: count as usize,
        first_ts,
        last_ts,
        first_expiry,
        last_expiry,
        longs,
        doubles,
    })
}

/// Decodes the columns that follow a header.
pub fn decode_columns(header: &ChunkHeader, mut rest: &[u8]) -> Result<ChunkColumns, CorruptData> {
    let rest = &mut rest;
    let ts = column::take_longs(rest, header.count)?;
    let ascending = ts.windows(2).all(|pair| matches!(pair, [a, b] if a < b));
    if !ascending || ts.first() != Some(&header.first_ts) || ts.last() != Some(&header.last_ts) {
        return Err(CorruptData("times of the chunk are out of order"));
    }
    let ttl = take_ttl(rest, header.count)?;
    let values = match header.types {
        LONG => ChunkValues::Long(column::take_longs(rest, header.count)?),
        DOUBLE => ChunkValues::Double(column::take_doubles(rest, header.count)?),
        types => ChunkValues::Other(take_values(types, header.count, rest)?),
    };
    if !rest.is_empty() {
        return Err(CorruptData("bytes after the end of the chunk"));
    }
    Ok(ChunkColumns { ts, ttl, values })
}

/// Decodes a whole chunk.
pub fn decode(bytes: &[u8]) -> Result<ChunkColumns, CorruptData> {
    let (header, rest) = decode_header(bytes)?;
    decode_columns(&header, rest)
}

fn take_ttl(rest: &mut &[u8], count: usize) -> Result<Vec<(usize, u32)>, CorruptData> {
    let column = column::take_bytes(rest)?;
    let bytes = &mut column.as_slice();
    let mut runs = Vec::new();
    let mut covered = 0usize;
    while !bytes.is_empty() {
        let length = read_varint(bytes)?;
        let ttl = u32::try_from(read_varint(bytes)?).map_err(|_| CorruptData("time-to-live too large"))?;
        if length == 0 || length > (count - covered) as u64 {
            return Err(CorruptData("time-to-live of other points"));
        }
        covered += length as usize;
        runs.push((length as usize, ttl));
    }
    if covered != count {
        return Err(CorruptData("points without a time-to-live"));
    }
    Ok(runs)
}

fn take_values(types: u8, count: usize, rest: &mut &[u8]) -> Result<Vec<KvValue>, CorruptData> {
    let codes = if types.count_ones() > 1 {
        let codes = column::take_bytes(rest)?;
        if codes.len() != count || codes.iter().any(|code| *code > 4 || types & 1 << code == 0) {
            return Err(CorruptData("type codes do not fit the chunk"));
        }
        codes
    } else {
        vec![types.trailing_zeros() as u8; count]
    };
    let many = |code: u8| codes.iter().filter(|other| **other == code).count();
    let bools = match types & BOOL {
        0 => Vec::new(),
        _ => column::take_bools(rest, many(0))?,
    };
    let longs = match types & LONG {
        0 => Vec::new(),
        _ => column::take_longs(rest, many(1))?,
    };
    let doubles = match types & DOUBLE {
        0 => Vec::new(),
        _ => column::take_doubles(rest, many(2))?,
    };
    let texts = match types & (TEXT | JSON) {
        0 => Vec::new(),
        _ => column::take_bytes(rest)?,
    };
    let (mut bools, mut longs, mut doubles) = (bools.into_iter(), longs.into_iter(), doubles.into_iter());
    let mut texts = texts.as_slice();
    let missing = CorruptData("fewer values than points");
    let values = codes
        .iter()
        .map(|code| {
            Ok(match code {
                0 => KvValue::Bool(bools.next().ok_or(missing)?),
                1 => KvValue::Long(longs.next().ok_or(missing)?),
                2 => KvValue::Double(doubles.next().ok_or(missing)?),
                3 => KvValue::Text(take_text(&mut texts)?),
                _ => KvValue::Json(take_text(&mut texts)?),
            })
        })
        .collect::<Result<Vec<_>, CorruptData>>()?;
    if !texts.is_empty() {
        return Err(CorruptData("more text than points"));
    }
    Ok(values)
}

fn take_text(texts: &mut &[u8]) -> Result<Box<str>, CorruptData> {
    let length = usize::try_from(read_varint(texts)?).map_err(|_| CorruptData("text too long"))?;
    std::str::from_utf8(take(texts, length)?)
        .map(Into::into)
        .map_err(|_| CorruptData("text is not UTF-8"))
}

#[cfg(test)]
mod tests;
