//! Which type a number or a piece of text gets.
//!
//! A whole number is a long, unless it is written with a point and without an exponent: `25` and `2.5e1` are longs,
//! `25.0` is a double. What no long holds, or needs more than 16 decimals, is kept digit by digit as text.

use super::reader::{JsonReader, ends_run};

/// More decimals than this make text instead of a double.
const MAX_SCALE: i64 = 16;

/// Largest mantissa and power of ten that a double holds exactly, so that one division rounds correctly.
const EXACT_MANTISSA: u64 = 1 << 53;
const POWERS_OF_TEN: [f64; MAX_SCALE as usize + 1] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16,
];

/// A number of the type that its digits give it.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum JsonNumber {
    Long(i64),
    Double(f64),
    /// All digits, for what fits neither type.
    Digits(String),
}

/// A number that cannot be kept: it fits no numeric type and may not become text, or its text would be huge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct OutOfRange;

/// Takes a number of up to 18 digits without an exponent, the usual ones. `None` consumes nothing.
#[inline(always)] // A tenth of the time of a small payload.
pub(super) fn take_short(reader: &mut JsonReader<'_>) -> Option<JsonNumber> {
    let bytes = reader.rest();
    let (number, length) = parse_short(bytes)?;
    if bytes.get(length).is_some_and(|&byte| !ends_run(byte)) {
        return None;
    }
    reader.seek(reader.position() + length);
    Some(number)
}

/// Types castable text.
#[inline]
pub(super) fn cast(text: &str, growth_left: &mut usize) -> Option<JsonNumber> {
    match parse_short(text.as_bytes()) {
        Some((number, length)) if length == text.len() => Some(number),
        _ if is_castable(text) => parse_number(text, Some(growth_left)).ok(),
        _ => None,
    }
}

/// The number of up to 18 digits that the bytes begin with, and its length.
#[inline(always)]
fn parse_short(bytes: &[u8]) -> Option<(JsonNumber, usize)> {
    let negative = bytes.first() == Some(&b'-');
    let unsigned = if negative { bytes.get(1..)? } else { bytes };
    let mut mantissa = 0u64;
    let whole = take_digits(unsigned, &mut mantissa);
    if whole == 0 || whole > 18 || (whole > 1 && unsigned.first() == Some(&b'0')) {
        return None;
    }
    let mut length = whole;
    let mut decimals = 0;
    if unsigned.get(whole) == Some(&b'.') {
        decimals = take_digits(unsigned.get(whole + 1..)?, &mut mantissa);
        length += 1 + decimals;
        if decimals == 0 || decimals > MAX_SCALE as usize || whole + decimals > 18 {
            return None;
        }
    }
    let number = if decimals == 0 {
        let long = mantissa.cast_signed();
        JsonNumber::Long(if negative { -long } else { long })
    } else if mantissa <= EXACT_MANTISSA {
        let magnitude = mantissa as f64 / POWERS_OF_TEN.get(decimals)?;
        // There is no negative zero: the digits are a decimal number before they are a double.
        JsonNumber::Double(if negative && mantissa != 0 {
            -magnitude
        } else {
            magnitude
        })
    } else {
        return None;
    };
    Some((number, usize::from(negative) + length))
}

/// Adds leading digits to the mantissa, which wraps beyond 18 of them, and returns how many there were.
#[inline]
fn take_digits(bytes: &[u8], mantissa: &mut u64) -> usize {
    let mut count = 0;
    for &byte in bytes {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            break;
        }
        *mantissa = mantissa.wrapping_mul(10).wrapping_add(u64::from(digit));
        count += 1;
    }
    count
}

/// Whether text is read as a number when types are cast: digits with an optional minus sign and an optional point
/// that is not last.
fn is_castable(text: &str) -> bool {
    let unsigned = text.strip_prefix('-').unwrap_or(text).as_bytes();
    let starts_and_ends = unsigned
        .first()
        .is_some_and(|&byte| byte == b'.' || byte.is_ascii_digit())
        && unsigned.last().is_some_and(u8::is_ascii_digit);
    starts_and_ends && {
        let mut points = 0;
        unsigned.iter().all(|&byte| {
            points += u32::from(byte == b'.');
            byte.is_ascii_digit() || (byte == b'.' && points == 1)
        })
    }
}

/// Types a number in strict JSON form, or castable text. `growth_left` bounds how much longer than `text` the digits
/// may become. `None` in place of it refuses numbers that fit no type.
pub(super) fn parse_number(text: &str, growth_left: Option<&mut usize>) -> Result<JsonNumber, OutOfRange> {
    let decimal = DecimalParts::read(text).ok_or(OutOfRange)?;
    if (!decimal.has_point || decimal.has_exponent) && decimal.is_whole() {
        if let Some(long) = decimal.to_long() {
            return Ok(JsonNumber::Long(long));
        }
    } else if decimal.scale <= MAX_SCALE {
        let double: f64 = text.parse().map_err(|_| OutOfRange)?;
        if double.is_finite() {
            return Ok(JsonNumber::Double(if double == 0.0 { 0.0 } else { double }));
        }
    }
    let growth_left = growth_left.ok_or(OutOfRange)?;
    let growth = decimal.digits_length().saturating_sub(text.len());
    *growth_left = growth_left.checked_sub(growth).ok_or(OutOfRange)?;
    Ok(JsonNumber::Digits(decimal.to_digits()))
}

/// `± digits × 10^-scale`, the digits in two pieces around where the point was.
struct DecimalParts<'a> {
    negative: bool,
    whole: &'a str,
    fraction: &'a str,
    scale: i64,
    has_point: bool,
    has_exponent: bool,
}

impl<'a> DecimalParts<'a> {
    fn read(text: &'a str) -> Option<Self> {
        let unsigned = text.strip_prefix('-');
        let (mantissa, exponent) = match unsigned.unwrap_or(text).split_once(['e', 'E']) {
            Some((mantissa, exponent)) => (mantissa, Some(exponent)),
            None => (unsigned.unwrap_or(text), None),
        };
        let (whole, fraction) = match mantissa.split_once('.') {
            Some((whole, fraction)) => (whole, Some(fraction)),
            None => (mantissa, None),
        };
        let power: i32 = exponent.map_or(Some(0), |exponent| exponent.parse().ok())?;
        Some(Self {
            negative: unsigned.is_some(),
            whole: whole.trim_start_matches('0'),
            fraction: fraction.unwrap_or_default(),
            scale: fraction.unwrap_or_default().len() as i64 - i64::from(power),
            has_point: fraction.is_some(),
            has_exponent: exponent.is_some(),
        })
    }

    /// All digits, without leading zeros.
    fn digits(&self) -> (&'a str, &'a str) {
        let fraction = self.fraction;
        match self.whole {
            "" => ("", fraction.trim_start_matches('0')),
            whole => (whole, fraction),
        }
    }

    fn is_zero(&self) -> bool {
        let (whole, fraction) = self.digits();
        whole.is_empty() && fraction.is_empty()
    }

    fn trailing_zeros(&self) -> usize {
        let (whole, fraction) = self.digits();
        let significant = fraction.trim_end_matches('0');
        if !significant.is_empty() {
            return fraction.len() - significant.len();
        }
        fraction.len() + whole.len() - whole.trim_end_matches('0').len()
    }

    fn is_whole(&self) -> bool {
        self.is_zero() || self.scale <= self.trailing_zeros() as i64
    }

    /// The value of a whole number.
    fn to_long(&self) -> Option<i64> {
        if self.is_zero() {
            return Some(0);
        }
        let (whole, fraction) = self.digits();
        let significant = whole.len() + fraction.len() - self.trailing_zeros();
        let zeros = usize::try_from(self.trailing_zeros() as i64 - self.scale).ok()?;
        // More digits do not fit into 64 bits, fewer always fit into 128.
        if significant.checked_add(zeros)? > 19 {
            return None;
        }
        let digits = whole.bytes().chain(fraction.bytes()).take(significant);
        let magnitude = digits
            .chain(std::iter::repeat_n(b'0', zeros))
            .fold(0i128, |sum, digit| sum * 10 + i128::from(digit - b'0'));
        i64::try_from(if self.negative { -magnitude } else { magnitude }).ok()
    }

    /// Upper bound of the length of [`Self::to_digits`].
    fn digits_length(&self) -> usize {
        let (whole, fraction) = self.digits();
        let shift = usize::try_from(self.scale.unsigned_abs()).unwrap_or(usize::MAX);
        let digits = whole.len() + fraction.len();
        if self.scale <= 0 {
            digits.saturating_add(shift).saturating_add(1)
        } else {
            digits.max(shift.saturating_add(1)).saturating_add(2)
        }
    }

    /// The number without an exponent.
    fn to_digits(&self) -> String {
        let (whole, fraction) = self.digits();
        let mut out = String::with_capacity(self.digits_length());
        if self.negative && !self.is_zero() {
            out.push('-');
        }
        let shift = self.scale.unsigned_abs() as usize;
        let padding = if self.scale > 0 {
            (shift + 1).saturating_sub(whole.len() + fraction.len())
        } else {
            0
        };
        out.extend(std::iter::repeat_n('0', padding));
        out.push_str(whole);
        out.push_str(fraction);
        if self.scale > 0 {
            out.insert(out.len() - shift, '.');
        } else {
            out.extend(std::iter::repeat_n('0', shift));
        }
        out
    }
}
