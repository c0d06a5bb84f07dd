//! Tokens of lenient JSON.

use std::borrow::Cow;

use super::{JsonError, MAX_DEPTH};

/// Longer digits are read as text without quotes, as the reader that devices know does.
const MAX_NUMBER_BYTES: usize = 1023;

/// Characters of text that short numbers (`1e300`) may always grow by when they become text.
const BASE_GROWTH: usize = 1024;

/// A position in a payload.
#[derive(Debug)]
pub(super) struct JsonReader<'a> {
    text: &'a str,
    at: usize,
    depth: u32,
    /// How many more characters numbers may grow by when written out in full: bounds memory by the payload's size.
    growth_left: usize,
}

/// A place to come back to.
#[derive(Debug, Clone, Copy)]
pub(super) struct ReaderMark {
    at: usize,
    depth: u32,
    growth_left: usize,
}

/// What a run of characters without quotes means.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum UnquotedToken<'a> {
    Null,
    Bool(bool),
    Number(&'a str),
    Text(&'a str),
}

impl<'a> JsonReader<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self {
            text,
            at: 0,
            depth: 0,
            growth_left: BASE_GROWTH.saturating_add(text.len().saturating_mul(2)),
        }
    }

    #[cold]
    pub(super) fn error(&self, problem: &'static str) -> JsonError {
        JsonError { at: self.at, problem }
    }

    pub(super) fn position(&self) -> usize {
        self.at
    }

    /// Goes to a position that [`Self::position`] gave at the same depth.
    pub(super) fn seek(&mut self, position: usize) {
        self.at = position;
    }

    pub(super) fn mark(&self) -> ReaderMark {
        ReaderMark {
            at: self.at,
            depth: self.depth,
            growth_left: self.growth_left,
        }
    }

    pub(super) fn rewind(&mut self, mark: ReaderMark) {
        self.at = mark.at;
        self.depth = mark.depth;
        self.growth_left = mark.growth_left;
    }

    pub(super) fn growth_left(&mut self) -> &mut usize {
        &mut self.growth_left
    }

    /// The first byte of the document, not consumed.
    pub(super) fn first_token(&mut self) -> Result<u8, JsonError> {
        if self.text.starts_with('\u{feff}') {
            self.at = '\u{feff}'.len_utf8();
        }
        // The prefix that keeps a script tag from running JSON; readers skip it.
        if self.token()? == b')' && self.rest().starts_with(b")]}'\n") {
            self.at += 5;
        }
        self.token()
    }

    /// Checks that nothing but space and comments follows.
    pub(super) fn finish(&mut self) -> Result<(), JsonError> {
        self.skip_space()?;
        match self.peek() {
            None => Ok(()),
            Some(_) => Err(self.error("unexpected characters after the end")),
        }
    }

    #[inline]
    pub(super) fn rest(&self) -> &'a [u8] {
        self.text.as_bytes().get(self.at..).unwrap_or_default()
    }

    #[inline]
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    #[inline]
    fn slice(&self, from: usize, to: usize) -> &'a str {
        self.text.get(from..to).unwrap_or_default()
    }

    /// Skips space and comments; the byte that follows is not consumed.
    #[inline]
    pub(super) fn token(&mut self) -> Result<u8, JsonError> {
        match self.peek() {
            Some(byte) if byte > b' ' && byte != b'/' && byte != b'#' => Ok(byte),
            _ => self.token_after_space(),
        }
    }

    fn token_after_space(&mut self) -> Result<u8, JsonError> {
        self.skip_space()?;
        self.peek().ok_or_else(|| self.error("unexpected end"))
    }

    fn skip_space(&mut self) -> Result<(), JsonError> {
        loop {
            match self.peek() {
                Some(b' ' | b'\t' | b'\r' | b'\n') => self.at += 1,
                Some(b'#') => self.skip_line(),
                Some(b'/') => match self.text.as_bytes().get(self.at + 1) {
                    Some(b'/') => self.skip_line(),
                    Some(b'*') => {
                        let body = self.text.get(self.at + 2..).unwrap_or_default();
                        let Some(length) = body.find("*/") else {
                            return Err(self.error("comment without an end"));
                        };
                        self.at += length + 4;
                    }
                    _ => return Ok(()),
                },
                _ => return Ok(()),
            }
        }
    }

    fn skip_line(&mut self) {
        let line = self.rest().iter().position(|byte| matches!(byte, b'\n' | b'\r'));
        self.at = line.map_or(self.text.len(), |length| self.at + length + 1);
    }

    #[inline]
    pub(super) fn skip_byte(&mut self) {
        self.at += 1;
    }

    /// Steps into the object or array whose bracket is the current byte.
    #[inline]
    pub(super) fn enter(&mut self) -> Result<(), JsonError> {
        if self.depth == MAX_DEPTH {
            return Err(self.error("nested too deeply"));
        }
        self.depth += 1;
        self.at += 1;
        Ok(())
    }

    /// Steps out of the object or array whose closing bracket is the current byte.
    #[inline]
    pub(super) fn leave(&mut self) {
        self.depth -= 1;
        self.at += 1;
    }

    /// The name of the next member of the current object, up to and with the sign before its value; `None` at the end
    /// of the object, which is consumed.
    #[inline(always)]
    pub(super) fn name(&mut self, first: bool) -> Result<Option<Cow<'a, str>>, JsonError> {
        let mut byte = self.token()?;
        if byte == b'}' {
            self.leave();
            return Ok(None);
        }
        if !first {
            if !matches!(byte, b',' | b';') {
                return Err(self.error("expected `,` or `}`"));
            }
            self.at += 1;
            byte = self.token()?;
        }
        let name = match byte {
            b'"' | b'\'' => self.quoted(byte)?,
            _ => Cow::Borrowed(self.run("expected a name")?),
        };
        match self.token()? {
            b':' => self.at += 1,
            b'=' => self.at += if self.rest().starts_with(b"=>") { 2 } else { 1 },
            _ => return Err(self.error("expected `:`")),
        }
        Ok(Some(name))
    }

    /// The text of the string whose opening quote is the current byte.
    #[inline(always)]
    pub(super) fn quoted(&mut self, quote: u8) -> Result<Cow<'a, str>, JsonError> {
        let start = self.at + 1;
        match find_either(self.text.as_bytes(), start, quote, b'\\') {
            Some((end, byte)) if byte == quote => {
                self.at = end + 1;
                Ok(Cow::Borrowed(self.slice(start, end)))
            }
            Some(_) => self.escaped(quote).map(Cow::Owned),
            None => Err(self.error("string without an end")),
        }
    }

    #[cold]
    fn escaped(&mut self, quote: u8) -> Result<String, JsonError> {
        let opening = self.at;
        self.at += 1;
        let mut out = String::new();
        loop {
            let Some((end, byte)) = find_either(self.text.as_bytes(), self.at, quote, b'\\') else {
                self.at = opening;
                return Err(self.error("string without an end"));
            };
            out.push_str(self.slice(self.at, end));
            self.at = end;
            if byte == quote {
                self.at += 1;
                return Ok(out);
            }
            out.push(self.escape()?);
        }
    }

    /// The character that the escape at the current backslash stands for.
    fn escape(&mut self) -> Result<char, JsonError> {
        let char = match self.text.as_bytes().get(self.at + 1) {
            Some(b'u') => return self.unicode_escape(),
            Some(b't') => '\t',
            Some(b'b') => '\u{8}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b'f') => '\u{c}',
            Some(&byte @ (b'\n' | b'\'' | b'"' | b'\\' | b'/')) => char::from(byte),
            _ => return Err(self.error("unknown escape")),
        };
        self.at += 2;
        Ok(char)
    }

    fn unicode_escape(&mut self) -> Result<char, JsonError> {
        let unit = self
            .code_unit()
            .ok_or_else(|| self.error("expected four hexadecimal digits after `\\u`"))?;
        self.at += 6;
        if !(0xd800..0xdc00).contains(&unit) {
            // A trailing half without its leading half is not a character.
            return Ok(char::from_u32(unit).unwrap_or(char::REPLACEMENT_CHARACTER));
        }
        // A malformed escape here is reported when it is read by itself.
        let Some(low @ 0xdc00..0xe000) = self.code_unit() else {
            return Ok(char::REPLACEMENT_CHARACTER);
        };
        self.at += 6;
        let code = 0x1_0000 + ((unit - 0xd800) << 10) + (low - 0xdc00);
        Ok(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER))
    }

    fn code_unit(&self) -> Option<u32> {
        let digits = self.rest().strip_prefix(b"\\u")?.get(..4)?;
        digits.iter().try_fold(0, |unit, &digit| {
            Some(unit << 4 | char::from(digit).to_digit(16)?)
        })
    }

    /// The characters up to the next space or sign.
    fn run(&mut self, problem: &'static str) -> Result<&'a str, JsonError> {
        let rest = self.rest();
        let length = rest.iter().position(|&byte| ends_run(byte)).unwrap_or(rest.len());
        if length == 0 {
            return Err(self.error(problem));
        }
        let run = self.slice(self.at, self.at + length);
        self.at += length;
        Ok(run)
    }

    /// A value without quotes.
    pub(super) fn word(&mut self) -> Result<UnquotedToken<'a>, JsonError> {
        let run = self.run("expected a value")?;
        let first = run.as_bytes().first().copied().unwrap_or_default();
        Ok(match first {
            b't' | b'T' if run.eq_ignore_ascii_case("true") => UnquotedToken::Bool(true),
            b'f' | b'F' if run.eq_ignore_ascii_case("false") => UnquotedToken::Bool(false),
            b'n' | b'N' if run.eq_ignore_ascii_case("null") => UnquotedToken::Null,
            b'-' | b'0'..=b'9' if is_number(run.as_bytes()) => UnquotedToken::Number(run),
            _ => UnquotedToken::Text(run),
        })
    }
}

/// Whether a byte ends a name or value without quotes.
#[inline]
pub(super) const fn ends_run(byte: u8) -> bool {
    matches!(
        byte,
        b',' | b'}'
            | b']'
            | b':'
            | b' '
            | b'\n'
            | b'\r'
            | b'\t'
            | b'\x0c'
            | b'{'
            | b'['
            | b'/'
            | b'\\'
            | b';'
            | b'#'
            | b'='
    )
}

/// Whether the bytes are a number as strict JSON writes it.
fn is_number(bytes: &[u8]) -> bool {
    if bytes.len() > MAX_NUMBER_BYTES {
        return false;
    }
    let unsigned = bytes.strip_prefix(b"-").unwrap_or(bytes);
    let Some((whole, mut rest)) = digits(unsigned) else {
        return false;
    };
    if whole.len() > 1 && whole.starts_with(b"0") {
        return false;
    }
    if let Some(fraction) = rest.strip_prefix(b".") {
        let Some((_, after)) = digits(fraction) else {
            return false;
        };
        rest = after;
    }
    if let [b'e' | b'E', exponent @ ..] = rest {
        let exponent = match exponent {
            [b'+' | b'-', unsigned @ ..] => unsigned,
            unsigned => unsigned,
        };
        let Some((_, after)) = digits(exponent) else {
            return false;
        };
        rest = after;
    }
    rest.is_empty()
}

/// Splits leading digits off, at least one.
fn digits(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let length = bytes
        .iter()
        .position(|byte| !byte.is_ascii_digit())
        .unwrap_or(bytes.len());
    (length > 0).then(|| bytes.split_at_checked(length))?
}

/// The first of two bytes, from `from` on, and which of them it is.
#[inline]
fn find_either(bytes: &[u8], from: usize, one: u8, other: u8) -> Option<(usize, u8)> {
    const LOW: u64 = u64::from_ne_bytes([1; 8]);
    const HIGH: u64 = u64::from_ne_bytes([0x80; 8]);
    // The lowest byte that is zero gets its high bit; higher bits may be wrong and are not looked at.
    let zero_bytes = |word: u64| word.wrapping_sub(LOW) & !word & HIGH;

    let mut at = from;
    while let Some(chunk) = bytes.get(at..).and_then(|rest| rest.first_chunk::<8>()) {
        let word = u64::from_le_bytes(*chunk);
        let found = zero_bytes(word ^ (LOW * u64::from(one))) | zero_bytes(word ^ (LOW * u64::from(other)));
        if found != 0 {
            at += (found.trailing_zeros() / 8) as usize;
            return Some((at, *bytes.get(at)?));
        }
        at += 8;
    }
    let tail = bytes.get(at..)?;
    let found = tail.iter().position(|&byte| byte == one || byte == other)?;
    Some((at + found, *bytes.get(at + found)?))
}
