//! Numbers: what counts as one, rounding as people expect it of decimals, exact sums of decimals.

use fieldline_model::kv::{KvValue, KvValueRef};

use super::outcome::FieldEvaluationError;

/// Most digits behind the point of an exact decimal.
const MAX_SCALE: u32 = 30;

/// The number of a value: a flag is 1 or 0, a text the number that it spells.
pub(super) fn number(value: KvValueRef<'_>) -> Option<f64> {
    match value {
        KvValueRef::Long(number) => Some(number as f64),
        KvValueRef::Double(number) => Some(number),
        KvValueRef::Bool(flag) => Some(f64::from(u8::from(flag))),
        KvValueRef::Text(text) | KvValueRef::Json(text) => text.trim().parse().ok(),
    }
}

/// The number that a point of a rolling argument is: not a number for texts that spell none.
pub fn rolling_number(value: KvValueRef<'_>) -> f64 {
    number(value).unwrap_or(f64::NAN)
}

/// A result with so many digits behind the point: all of them for `None`, a whole number for 0. Halves are rounded away
/// from zero, by the decimal digits that people see and not the binary ones behind them.
pub(super) fn rounded(value: f64, decimals: Option<i32>) -> Result<KvValue, FieldEvaluationError> {
    if !value.is_finite() {
        return Err(FieldEvaluationError::NotFinite);
    }
    let Some(decimals) = decimals.and_then(|decimals| u32::try_from(decimals).ok()) else {
        return Ok(KvValue::Double(value));
    };
    let rounded = round_half_up(value, decimals);
    Ok(if decimals == 0 {
        // Saturates where the number is too large for a whole one.
        KvValue::Long(rounded as i64)
    } else {
        KvValue::Double(rounded)
    })
}

fn round_half_up(value: f64, decimals: u32) -> f64 {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    let factor = 10f64.powi(i32::try_from(decimals).unwrap_or(i32::MAX));
    let scaled = value * factor;
    let fraction = (scaled.abs().fract() - 0.5).abs();
    // Not near a half, and both sides of the division exact: the quotient is the double next to the decimal.
    if scaled.abs() < EXACT / 1e4 && fraction > 1e-4 && decimals <= 22 {
        return scaled.round() / factor;
    }
    match ExactDecimal::from_f64(value) {
        Some(decimal) => decimal.round_half_up(decimals).to_f64(),
        // Either so large that it is whole, or so small that it is zero at any precision there is.
        None if value.abs() < 1.0 => 0.0,
        None => value,
    }
}

/// A decimal number: `mantissa / 10^scale`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ExactDecimal {
    mantissa: i128,
    scale: u32,
}

impl ExactDecimal {
    pub(super) const ZERO: Self = Self {
        mantissa: 0,
        scale: 0,
    };

    /// The shortest decimal that reads as this double; `None` for the very large and very small.
    pub(super) fn from_f64(value: f64) -> Option<Self> {
        let text = format!("{value:e}");
        let (digits, exponent) = text.split_once('e')?;
        let exponent: i32 = exponent.parse().ok()?;
        let behind = digits.split_once('.').map_or(0, |(_, behind)| behind.len());
        let mantissa: i128 = digits.replace('.', "").parse().ok()?;
        let scale = i32::try_from(behind).ok()? - exponent;
        if let Ok(scale) = u32::try_from(scale) {
            return (scale <= MAX_SCALE).then_some(Self { mantissa, scale });
        }
        let factor = 10i128.checked_pow(scale.unsigned_abs())?;
        Some(Self {
            mantissa: mantissa.checked_mul(factor)?,
            scale: 0,
        })
    }

    pub(super) fn checked_add(self, other: Self) -> Option<Self> {
        let scale = self.scale.max(other.scale);
        let widened = |decimal: Self| {
            decimal
                .mantissa
                .checked_mul(10i128.checked_pow(scale - decimal.scale)?)
        };
        Some(Self {
            mantissa: widened(self)?.checked_add(widened(other)?)?,
            scale,
        })
    }

    fn round_half_up(self, scale: u32) -> Self {
        if scale >= self.scale {
            return self;
        }
        // At most 10^30, which fits.
        let factor = 10i128.pow(self.scale - scale);
        let half = if self.mantissa < 0 {
            -factor / 2
        } else {
            factor / 2
        };
        Self {
            mantissa: (self.mantissa + half) / factor,
            scale,
        }
    }

    pub(super) fn to_f64(self) -> f64 {
        // Reading a text is the one conversion that always finds the double next to a decimal.
        format!("{}e-{}", self.mantissa, self.scale)
            .parse()
            .unwrap_or(f64::NAN)
    }
}
