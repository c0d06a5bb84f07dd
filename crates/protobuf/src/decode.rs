//! Decodes messages to key-values, directly from their bytes.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use fieldline_model::json::{self, JsonRules};
use fieldline_model::kv::{KvValueRef, pack_key, pack_value};
use fieldline_model::record::TelemetryWriter;

use crate::message::{FieldContent, MapEntries, MessageFields, PieceChain, PieceIter, with_message_fields};
use crate::plan::{DecodePlan, FieldCardinality, FieldKind, FieldPlan, MessageIndex, check_key};
use crate::text::{ProtobufJsonWriter, not_finite};
use crate::{MAX_MESSAGE_BYTES, MessageError, ProtobufSchema};

/// The output allowed for any message, and the addition per byte of the message.
const BASE_GROWTH: usize = 64 << 10;
const GROWTH_PER_BYTE: usize = 16;

/// The remaining work and output that the size of a message allows.
pub(crate) struct DecodeBudget(usize);

impl DecodeBudget {
    pub(crate) const fn of(payload: &[u8]) -> Self {
        Self(BASE_GROWTH + GROWTH_PER_BYTE * payload.len())
    }

    /// Charges one step and the bytes that it writes.
    pub(crate) fn spend(&mut self, bytes: usize) -> Result<(), MessageError> {
        self.0 = self.0.checked_sub(bytes + 1).ok_or(MessageError::Grows)?;
        Ok(())
    }
}

impl ProtobufSchema {
    /// Writes a telemetry message as a row: the whole message, or the values of a message with `ts` and `values`. `now`
    /// returns the time if the message has none.
    ///
    /// # Errors
    /// The message violates the schema, or exceeds its budget. The writer then holds a part of it.
    pub fn telemetry(
        &self,
        payload: &[u8],
        rules: &JsonRules,
        now: impl FnOnce() -> i64,
        out: &mut TelemetryWriter<'_>,
    ) -> Result<(), MessageError> {
        let count = self.read(payload, |message| {
            let timed = self
                .timed
                .and_then(|(ts, values)| message.field(ts).zip(message.field(values)));
            let mut packer = KeyValuePacker::new(&self.plan, payload, rules);
            let Some(((ts, at), (values, slot))) = timed else {
                out.begin_row(now());
                return packer.fields(message, out.buffer());
            };
            out.begin_row(time(ts, at)?);
            packer.members(values, slot, message.chain, out.buffer())
        })?;
        for _ in 0..count {
            out.count_point();
        }
        Ok(())
    }

    /// Packs the fields of an attributes message onto `out` and returns their number.
    ///
    /// # Errors
    /// The message violates the schema, or exceeds its budget. `out` is unchanged then.
    pub fn attributes(
        &self,
        payload: &[u8],
        rules: &JsonRules,
        out: &mut Vec<u8>,
    ) -> Result<u32, MessageError> {
        let base = out.len();
        let packed = self.read(payload, |message| {
            KeyValuePacker::new(&self.plan, payload, rules).fields(message, out)
        });
        if packed.is_err() {
            out.truncate(base);
        }
        packed
    }

    /// Converts a message to JSON text.
    ///
    /// # Errors
    /// The message violates the schema, or exceeds its budget.
    pub fn to_json(&self, payload: &[u8]) -> Result<String, MessageError> {
        check_size(payload)?;
        let mut out = String::new();
        let mut writer = ProtobufJsonWriter {
            plan: &self.plan,
            budget: &mut DecodeBudget::of(payload),
            out: &mut out,
        };
        writer.message(MessageIndex::ROOT, PieceIter::one(payload), true)?;
        Ok(out)
    }

    fn read<'p, T>(
        &self,
        payload: &'p [u8],
        work: impl FnOnce(&MessageFields<'_, 'p>) -> Result<T, MessageError>,
    ) -> Result<T, MessageError> {
        check_size(payload)?;
        with_message_fields(
            &self.plan,
            MessageIndex::ROOT,
            PieceIter::one(payload),
            true,
            work,
        )
    }
}

const fn check_size(payload: &[u8]) -> Result<(), MessageError> {
    if payload.len() > MAX_MESSAGE_BYTES {
        return Err(MessageError::TooLarge);
    }
    Ok(())
}

/// Packs key-values within the budget of a message.
struct KeyValuePacker<'s> {
    plan: &'s DecodePlan,
    rules: &'s JsonRules,
    budget: DecodeBudget,
}

impl<'s> KeyValuePacker<'s> {
    const fn new(plan: &'s DecodePlan, payload: &[u8], rules: &'s JsonRules) -> Self {
        Self {
            plan,
            rules,
            budget: DecodeBudget::of(payload),
        }
    }

    /// Packs the fields of a message; returns their number.
    fn fields(&mut self, message: &MessageFields<'_, '_>, out: &mut Vec<u8>) -> Result<u32, MessageError> {
        let mut count = 0;
        for (field, slot) in message.fields() {
            self.budget.spend(0)?;
            let Some(slot) = slot else { continue };
            let key = field
                .key
                .packed
                .as_deref()
                .map_err(|problem| MessageError::Invalid(problem))?;
            self.budget.spend(field.key.bytes)?;
            out.extend_from_slice(key);
            match field.shape {
                FieldCardinality::Single { .. } if !matches!(field.kind, FieldKind::Message(_)) => {
                    self.value(field.kind, slot, out)?;
                }
                _ => self.nested(out, |json| json.field(field, slot, message.chain))?,
            }
            count += 1;
        }
        Ok(count)
    }

    /// Packs the fields of a nested message, or the entries of a map.
    fn members<'p>(
        &mut self,
        field: &FieldPlan,
        slot: &FieldContent<'p>,
        chain: &PieceChain<'p>,
        out: &mut Vec<u8>,
    ) -> Result<u32, MessageError> {
        match (field.shape, field.kind) {
            (FieldCardinality::Single { .. }, FieldKind::Message(at)) => {
                with_message_fields(self.plan, at, chain.pieces(slot), false, |message| {
                    self.fields(message, out)
                })
            }
            (FieldCardinality::Map(key), kind) => {
                let map = MapEntries::of(self.plan, (key, kind), chain.pieces(slot))?;
                for (key, value) in &map.entries {
                    let key = key.text();
                    check_key(&key).map_err(MessageError::Invalid)?;
                    self.budget.spend(key.len())?;
                    pack_key(&key, out);
                    match kind {
                        FieldKind::Message(_) => {
                            self.nested(out, |json| json.value(kind, value, &map.chain))?;
                        }
                        _ => self.value(kind, value, out)?,
                    }
                }
                Ok(u32::try_from(map.entries.len()).unwrap_or(u32::MAX))
            }
            _ => Err(MessageError::Invalid("`values` is no message")),
        }
    }

    /// Packs one value other than a message.
    fn value(
        &mut self,
        kind: FieldKind,
        slot: &FieldContent<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), MessageError> {
        match kind {
            FieldKind::String => {
                let text = slot.text();
                self.budget.spend(text.len())?;
                json::pack_text(text, self.rules, out)?;
            }
            FieldKind::Bytes => {
                let bytes = slot.bytes();
                self.budget.spend(bytes.len() * 2)?;
                pack_value(KvValueRef::Text(&BASE64_STANDARD.encode(bytes)), out);
            }
            _ => pack_number(self.plan, kind, slot.number(self.plan, kind), out),
        }
        Ok(())
    }

    /// Packs a value as JSON.
    fn nested(
        &mut self,
        out: &mut Vec<u8>,
        write: impl FnOnce(&mut ProtobufJsonWriter<'_>) -> Result<(), MessageError>,
    ) -> Result<(), MessageError> {
        let mut text = String::new();
        write(&mut ProtobufJsonWriter {
            plan: self.plan,
            budget: &mut self.budget,
            out: &mut text,
        })?;
        pack_value(KvValueRef::Json(&text), out);
        Ok(())
    }
}

fn pack_number(plan: &DecodePlan, kind: FieldKind, number: u64, out: &mut Vec<u8>) {
    let long = KvValueRef::Long(number as i64);
    match kind {
        FieldKind::Bool => pack_value(KvValueRef::Bool(number != 0), out),
        FieldKind::Float => pack_value(finite_or_text(widen_float(f32::from_bits(number as u32))), out),
        FieldKind::Double => pack_value(finite_or_text(f64::from_bits(number)), out),
        FieldKind::Enum(at) => pack_value(plan.name(at, number as i32).map_or(long, KvValueRef::Text), out),
        FieldKind::Uint64 | FieldKind::Fixed64 if i64::try_from(number).is_err() => {
            pack_value(KvValueRef::Text(&number.to_string()), out);
        }
        _ => pack_value(long, out),
    }
}

/// Returns the number, or the text that replaces it if it is not finite.
fn finite_or_text(value: f64) -> KvValueRef<'static> {
    not_finite(value).map_or(KvValueRef::Double(value), KvValueRef::Text)
}

/// Converts a `float` to the number that people read: 3.6, not 3.5999999046325684.
pub(crate) fn widen_float(value: f32) -> f64 {
    if !value.is_finite() {
        return value.into();
    }
    let mut buffer = ryu::Buffer::new();
    buffer
        .format_finite(value)
        .parse()
        .unwrap_or_else(|_| value.into())
}

/// Reads the time in a field, milliseconds.
fn time(field: &FieldPlan, slot: &FieldContent<'_>) -> Result<i64, MessageError> {
    let number = match slot {
        FieldContent::Number(number) => *number,
        _ => 0,
    };
    let found = match (field.shape, field.kind) {
        (FieldCardinality::List | FieldCardinality::Map(_), _) => None,
        (_, FieldKind::Uint64 | FieldKind::Fixed64) => i64::try_from(number).ok(),
        (_, FieldKind::Float) => Some(f32::from_bits(number as u32) as i64),
        (_, FieldKind::Double) => Some(f64::from_bits(number) as i64),
        (_, FieldKind::String) => slot.text().parse().ok(),
        (_, FieldKind::Bool | FieldKind::Enum(_) | FieldKind::Bytes | FieldKind::Message(_)) => None,
        _ => Some(number as i64),
    };
    found.ok_or(MessageError::Invalid("`ts` is no time in milliseconds"))
}
