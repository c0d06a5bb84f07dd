//! One object of typed values: the attributes of a device, or its telemetry at one time.

use std::borrow::Cow;

use super::number::{self, JsonNumber};
use super::reader::{JsonReader, UnquotedToken};
use super::repeated::{self, MemberSpan};
use super::{JsonError, JsonRules, NullPolicy, nested};
use crate::kv::{self, KvValueRef, pack_key, pack_value};
use crate::record::TelemetryWriter;

/// So many names are told apart while reading; more are sorted at the end.
const TRACKED_NAMES: usize = 32;

/// Type bytes that [`RowBuilder::finish`] removes again: a value that only counts if no later one has its name.
const NULL: u8 = 0xfe;
const REFUSED: u8 = 0xff;

/// Key-values in the making, at the end of a buffer.
#[derive(Debug)]
pub(super) struct RowBuilder {
    base: usize,
    count: u32,
    /// Short hashes of the first names.
    tags: [u32; TRACKED_NAMES],
    /// Some names may be the same.
    suspect: bool,
    /// Some entries are no values.
    holes: bool,
    refusal: Option<JsonError>,
}

/// The two names that together make an object carry its own time.
#[derive(Debug, Default)]
struct TimedObjectKeys {
    ts: bool,
    values: bool,
}

impl RowBuilder {
    pub(super) fn new(base: usize) -> Self {
        Self {
            base,
            count: 0,
            tags: [0; TRACKED_NAMES],
            suspect: false,
            holes: false,
            refusal: None,
        }
    }

    /// Reads the object whose opening brace is the current byte.
    pub(super) fn read(
        &mut self,
        reader: &mut JsonReader<'_>,
        rules: &JsonRules,
        out: &mut Vec<u8>,
    ) -> Result<(), JsonError> {
        reader.enter()?;
        let mut first = true;
        while let Some(name) = reader.name(first)? {
            first = false;
            self.member(&name, reader, rules, out)?;
        }
        Ok(())
    }

    /// Like [`Self::read`], but stops and returns false once the object turns out to carry its own time.
    fn read_unless_timed(
        &mut self,
        reader: &mut JsonReader<'_>,
        rules: &JsonRules,
        out: &mut Vec<u8>,
    ) -> Result<bool, JsonError> {
        reader.enter()?;
        let mut first = true;
        let mut seen = TimedObjectKeys::default();
        while let Some(name) = reader.name(first)? {
            first = false;
            match &*name {
                "ts" => seen.ts = true,
                "values" => seen.values = true,
                _ => {}
            }
            if seen.ts && seen.values {
                return Ok(false);
            }
            self.member(&name, reader, rules, out)?;
        }
        Ok(true)
    }

    #[inline]
    fn member(
        &mut self,
        name: &str,
        reader: &mut JsonReader<'_>,
        rules: &JsonRules,
        out: &mut Vec<u8>,
    ) -> Result<(), JsonError> {
        if name.len() > kv::MAX_KEY_BYTES {
            return Err(reader.error("key is too long"));
        }
        let tag = (repeated::hash(name.as_bytes()) >> 32) as u32;
        match self.tags.split_at_mut_checked(self.count as usize) {
            Some((known, [free, ..])) => {
                self.suspect |= known.contains(&tag);
                *free = tag;
            }
            _ => self.suspect = true,
        }
        self.count += 1;
        pack_key(name, out);
        let value = out.len();
        pack(reader, rules, self, out)?;
        if is_blank(name) && out.get(value) != Some(&NULL) {
            out.truncate(value);
            self.refuse(reader.error("key is empty"), out);
        }
        Ok(())
    }

    fn null(&mut self, out: &mut Vec<u8>) {
        self.holes = true;
        out.push(NULL);
    }

    /// Refuses the payload, unless a later value of the same name replaces this one.
    fn refuse(&mut self, error: JsonError, out: &mut Vec<u8>) {
        self.holes = true;
        self.refusal.get_or_insert(error);
        out.push(REFUSED);
    }

    /// Leaves only values in the buffer, each name once, and returns how many there are.
    pub(super) fn finish(mut self, out: &mut Vec<u8>) -> Result<u32, JsonError> {
        if !self.suspect && !self.holes {
            return Ok(self.count);
        }
        let replaced = if self.suspect {
            let mut members: Vec<MemberSpan> =
                entries(out, self.base).map(|entry| entry.member(out)).collect();
            repeated::find(&mut members, out)
        } else {
            Vec::new()
        };
        if replaced.is_empty() && !self.holes {
            return Ok(self.count);
        }
        let mut replaced = replaced.into_iter().peekable();
        let (mut from, mut to, mut count) = (self.base, self.base, 0);
        while let Some(entry) = PackedEntry::at(out, from) {
            from = entry.end;
            if replaced.next_if_eq(&entry.start).is_some() || entry.kind == NULL {
                continue;
            }
            if entry.kind == REFUSED
                && let Some(refusal) = self.refusal.take()
            {
                return Err(refusal);
            }
            if to != entry.start {
                out.copy_within(entry.start..entry.end, to);
            }
            to += entry.end - entry.start;
            count += 1;
        }
        out.truncate(to);
        Ok(count)
    }
}

fn is_blank(name: &str) -> bool {
    match name.as_bytes().first() {
        Some(b'!'..=b'~') => false,
        _ => name.trim().is_empty(),
    }
}

/// Packs the value at the reader, or a hole.
#[inline]
fn pack(
    reader: &mut JsonReader<'_>,
    rules: &JsonRules,
    row: &mut RowBuilder,
    out: &mut Vec<u8>,
) -> Result<(), JsonError> {
    match reader.token()? {
        quote @ (b'"' | b'\'') => {
            let text = reader.quoted(quote)?;
            pack_text(&text, reader, rules, row, out);
        }
        b'{' | b'[' => {
            out.push(KvValueRef::Json("").type_code());
            let start = out.len();
            nested::compact(reader, out)?;
            insert_length(start, out);
        }
        _ => match number::take_short(reader) {
            Some(number) => pack_number(&number, out),
            None => pack_word(reader, rules, row, out)?,
        },
    }
    Ok(())
}

fn pack_word(
    reader: &mut JsonReader<'_>,
    rules: &JsonRules,
    row: &mut RowBuilder,
    out: &mut Vec<u8>,
) -> Result<(), JsonError> {
    match reader.word()? {
        UnquotedToken::Null if rules.nulls == NullPolicy::Reject => {
            row.refuse(reader.error("null is not allowed"), out);
        }
        UnquotedToken::Null => row.null(out),
        UnquotedToken::Bool(value) => pack_value(KvValueRef::Bool(value), out),
        UnquotedToken::Number(text) => {
            let growth_left = rules.type_cast.then(|| reader.growth_left());
            match number::parse_number(text, growth_left) {
                Ok(number) => pack_number(&number, out),
                Err(number::OutOfRange) => row.refuse(reader.error("number is out of range"), out),
            }
        }
        UnquotedToken::Text(text) => pack_text(text, reader, rules, row, out),
    }
    Ok(())
}

#[inline]
fn pack_text(
    text: &str,
    reader: &mut JsonReader<'_>,
    rules: &JsonRules,
    row: &mut RowBuilder,
    out: &mut Vec<u8>,
) {
    if is_too_long(text, rules) {
        row.refuse(reader.error("string is too long"), out);
        return;
    }
    if rules.type_cast
        && let Some(number) = number::cast(text, reader.growth_left())
    {
        pack_number(&number, out);
        return;
    }
    pack_value(KvValueRef::Text(text), out);
}

/// Packs a text that comes from elsewhere than a JSON payload, typed as one of its strings is.
pub(super) fn pack_string(text: &str, rules: &JsonRules, out: &mut Vec<u8>) -> Result<(), JsonError> {
    if is_too_long(text, rules) {
        return Err(JsonError {
            problem: "string is too long",
            at: 0,
        });
    }
    match rules
        .type_cast
        .then(|| number::cast(text, &mut text.len()))
        .flatten()
    {
        Some(number) => pack_number(&number, out),
        None => pack_value(KvValueRef::Text(text), out),
    }
    Ok(())
}

fn is_too_long(text: &str, rules: &JsonRules) -> bool {
    let longest = rules.max_string_length;
    // A UTF-16 unit takes at least one byte of UTF-8.
    longest > 0 && text.len() > longest && text.encode_utf16().count() > longest
}

#[inline]
fn pack_number(number: &JsonNumber, out: &mut Vec<u8>) {
    let value = match number {
        JsonNumber::Long(value) => KvValueRef::Long(*value),
        JsonNumber::Double(value) => KvValueRef::Double(*value),
        JsonNumber::Digits(digits) => KvValueRef::Text(digits),
    };
    pack_value(value, out);
}

/// Puts the length of what follows `start` in front of it.
fn insert_length(start: usize, out: &mut Vec<u8>) {
    let length = out.len() - start;
    kv::write_varint(length as u64, out);
    let prefix = out.len() - start - length;
    if let Some(prefixed) = out.get_mut(start..) {
        prefixed.rotate_right(prefix);
    }
}

/// Writes one telemetry object, whose opening brace is the current byte, as a row.
pub(super) fn write_element(
    reader: &mut JsonReader<'_>,
    rules: &JsonRules,
    server_ts: &mut dyn FnMut() -> i64,
    out: &mut TelemetryWriter<'_>,
) -> Result<(), JsonError> {
    let start = reader.mark();
    // Only a guess: either way finds out by itself and falls back to the other.
    let rest = reader.rest();
    let looks_timed = rest.starts_with(b"{\"ts\"") || rest.starts_with(b"{\"values\"");
    if looks_timed && write_timed_row(reader, rules, out)? {
        return Ok(());
    }
    if looks_timed {
        reader.rewind(start);
    }
    out.begin_row(server_ts());
    let mut row = RowBuilder::new(out.buffer().len());
    if row.read_unless_timed(reader, rules, out.buffer())? {
        let count = row.finish(out.buffer())?;
        count_points(count, out);
        return Ok(());
    }
    reader.rewind(start);
    write_timed_row(reader, rules, out)?;
    Ok(())
}

/// Writes an object with `ts` and `values` as a row; returns false if it lacks one of them.
fn write_timed_row(
    reader: &mut JsonReader<'_>,
    rules: &JsonRules,
    out: &mut TelemetryWriter<'_>,
) -> Result<bool, JsonError> {
    let mut ts = None;
    let mut values = None;
    // For which time and from which position the row was written. Points are counted last, for until then
    // `begin_row` takes the row back.
    let mut written = None;
    let mut count = 0;
    reader.enter()?;
    let mut first = true;
    while let Some(name) = reader.name(first)? {
        first = false;
        let opening = reader.token()?;
        match &*name {
            "ts" => ts = Some(timestamp(reader, out.buffer())?),
            "values" => {
                let at = reader.position();
                values = Some(at);
                match ts {
                    Some(Ok(ts)) if opening == b'{' && written.is_none() => {
                        count = write_row(ts, reader, rules, out)?;
                        written = Some((ts, at));
                    }
                    _ => skip(reader, out.buffer())?,
                }
            }
            _ => skip(reader, out.buffer())?,
        }
    }
    let (Some(ts), Some(at)) = (ts, values) else {
        return Ok(false);
    };
    let ts = ts?;
    if written != Some((ts, at)) {
        let end = reader.position();
        reader.seek(at);
        if reader.token()? != b'{' {
            return Err(reader.error("expected `values` to be an object"));
        }
        count = write_row(ts, reader, rules, out)?;
        reader.seek(end);
    }
    count_points(count, out);
    Ok(true)
}

fn write_row(
    ts: i64,
    reader: &mut JsonReader<'_>,
    rules: &JsonRules,
    out: &mut TelemetryWriter<'_>,
) -> Result<u32, JsonError> {
    out.begin_row(ts);
    let mut row = RowBuilder::new(out.buffer().len());
    row.read(reader, rules, out.buffer())?;
    row.finish(out.buffer())
}

fn count_points(count: u32, out: &mut TelemetryWriter<'_>) {
    for _ in 0..count {
        out.count_point();
    }
}

/// Reads over a value, which has to be well formed like any other. The buffer is borrowed as scratch.
fn skip(reader: &mut JsonReader<'_>, scratch: &mut Vec<u8>) -> Result<(), JsonError> {
    let end = scratch.len();
    let skipped = nested::compact(reader, scratch);
    scratch.truncate(end);
    skipped
}

/// Reads a time in milliseconds: a number, whose decimals are cut off, or text of a whole number. The inner error
/// counts only if the object has `values` too.
fn timestamp(
    reader: &mut JsonReader<'_>,
    scratch: &mut Vec<u8>,
) -> Result<Result<i64, JsonError>, JsonError> {
    let refused = reader.error("expected `ts` to be a time in milliseconds");
    let text = match reader.token()? {
        quote @ (b'"' | b'\'') => reader.quoted(quote)?,
        b'{' | b'[' => return skip(reader, scratch).map(|()| Err(refused)),
        _ => match number::take_short(reader) {
            Some(JsonNumber::Long(ts)) => return Ok(Ok(ts)),
            Some(JsonNumber::Double(ts)) => return Ok(Ok(ts as i64)),
            _ => match reader.word()? {
                UnquotedToken::Number(number) => return Ok(whole_part(number).ok_or(refused)),
                UnquotedToken::Text(text) => Cow::Borrowed(text),
                UnquotedToken::Null | UnquotedToken::Bool(_) => return Ok(Err(refused)),
            },
        },
    };
    Ok(text.parse().map_err(|_| refused))
}

fn whole_part(number: &str) -> Option<i64> {
    if let Ok(JsonNumber::Long(whole)) = number::parse_number(number, None) {
        return Some(whole);
    }
    let double: f64 = number.parse().ok()?;
    // The bounds of i64 as doubles; the upper one is already outside.
    (-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0)
        .contains(&double)
        .then_some(double as i64)
}

/// One packed key-value or hole.
struct PackedEntry {
    start: usize,
    key: usize,
    key_length: usize,
    kind: u8,
    end: usize,
}

impl PackedEntry {
    fn at(out: &[u8], start: usize) -> Option<Self> {
        let mut rest = out.get(start..)?;
        let key_length = usize::try_from(kv::read_varint(&mut rest).ok()?).ok()?;
        let key = out.len() - rest.len();
        kv::take(&mut rest, key_length).ok()?;
        let kind = *rest.first()?;
        if matches!(kind, NULL | REFUSED) {
            kv::take(&mut rest, 1).ok()?;
        } else {
            kv::unpack_value(&mut rest).ok()?;
        }
        Some(Self {
            start,
            key,
            key_length,
            kind,
            end: out.len() - rest.len(),
        })
    }

    fn member(&self, out: &[u8]) -> MemberSpan {
        let key = self.key..self.key + self.key_length;
        MemberSpan {
            hash: repeated::hash(out.get(key.clone()).unwrap_or_default()),
            key,
            whole: self.start..self.end,
        }
    }
}

fn entries(out: &[u8], mut from: usize) -> impl Iterator<Item = PackedEntry> {
    std::iter::from_fn(move || {
        let entry = PackedEntry::at(out, from)?;
        from = entry.end;
        Some(entry)
    })
}
