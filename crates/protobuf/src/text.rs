//! The JSON mapping of messages, with all defaults: the form of nested values and of RPC responses.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use fieldline_model::json::write_string;
use fieldline_model::kv::KvValueRef;

use crate::MessageError;
use crate::decode::{DecodeBudget, widen_float};
use crate::message::{FieldContent, MapEntries, PieceChain, PieceIter, with_message_fields};
use crate::plan::{DecodePlan, FieldCardinality, FieldKind, FieldPlan, MessageIndex};
use crate::wire;

/// Writes JSON within the budget of a message.
pub(crate) struct ProtobufJsonWriter<'w> {
    pub(crate) plan: &'w DecodePlan,
    pub(crate) budget: &'w mut DecodeBudget,
    pub(crate) out: &'w mut String,
}

impl ProtobufJsonWriter<'_> {
    /// Writes a message as an object, its fields in the order of their numbers. `check` as in [`with_message_fields`].
    pub(crate) fn message(
        &mut self,
        at: MessageIndex,
        pieces: PieceIter<'_, '_>,
        check: bool,
    ) -> Result<(), MessageError> {
        with_message_fields(self.plan, at, pieces, check, |message| {
            self.budget.spend(2)?;
            self.out.push('{');
            let mut first = true;
            for (field, slot) in message.fields() {
                self.budget.spend(0)?;
                let Some(slot) = slot else { continue };
                if !std::mem::take(&mut first) {
                    self.out.push(',');
                }
                self.budget.spend(field.key.bytes + 4)?;
                self.out.push_str(&field.member);
                self.field(field, slot, message.chain)?;
            }
            self.out.push('}');
            Ok(())
        })
    }

    /// Writes the content of a field.
    pub(crate) fn field<'p>(
        &mut self,
        field: &FieldPlan,
        slot: &FieldContent<'p>,
        chain: &PieceChain<'p>,
    ) -> Result<(), MessageError> {
        match field.shape {
            FieldCardinality::Single { .. } => self.value(field.kind, slot, chain),
            FieldCardinality::List => self.list(field.kind, chain.pieces(slot)),
            FieldCardinality::Map(key) => self.map((key, field.kind), chain.pieces(slot)),
        }
    }

    /// Writes one value. 64-bit integers are strings, as the mapping requires.
    pub(crate) fn value<'p>(
        &mut self,
        kind: FieldKind,
        slot: &FieldContent<'p>,
        chain: &PieceChain<'p>,
    ) -> Result<(), MessageError> {
        self.budget.spend(2)?;
        if let FieldKind::Message(at) = kind {
            // Charges the budget itself.
            return self.message(at, chain.pieces(slot), false);
        }
        let before = self.out.len();
        match kind {
            FieldKind::String => write_string(slot.text(), self.out),
            FieldKind::Bytes => {
                self.out.push('"');
                BASE64_STANDARD.encode_string(slot.bytes(), self.out);
                self.out.push('"');
            }
            _ => self.number(kind, slot.number(self.plan, kind)),
        }
        self.budget.spend(self.out.len() - before)
    }

    fn number(&mut self, kind: FieldKind, number: u64) {
        match kind {
            FieldKind::Bool => KvValueRef::Bool(number != 0).write_json(self.out),
            FieldKind::Float => self.double(widen_float(f32::from_bits(number as u32))),
            FieldKind::Double => self.double(f64::from_bits(number)),
            FieldKind::Enum(at) => match self.plan.name(at, number as i32) {
                Some(name) => write_string(name, self.out),
                None => KvValueRef::Long(number as i64).write_json(self.out),
            },
            FieldKind::Int64 | FieldKind::Sint64 | FieldKind::Sfixed64 => {
                write_string(&(number as i64).to_string(), self.out);
            }
            FieldKind::Uint64 | FieldKind::Fixed64 => write_string(&number.to_string(), self.out),
            _ => KvValueRef::Long(number as i64).write_json(self.out),
        }
    }

    fn double(&mut self, value: f64) {
        match not_finite(value) {
            Some(name) => write_string(name, self.out),
            None => KvValueRef::Double(value).write_json(self.out),
        }
    }

    fn list(&mut self, kind: FieldKind, pieces: PieceIter<'_, '_>) -> Result<(), MessageError> {
        self.budget.spend(2)?;
        self.out.push('[');
        let mut first = true;
        for mut piece in pieces {
            loop {
                let slot = match kind {
                    FieldKind::String => FieldContent::Text(wire::text(piece)?),
                    FieldKind::Bytes => FieldContent::Bytes(piece),
                    FieldKind::Message(_) => FieldContent::single_piece(piece),
                    _ if piece.is_empty() => break,
                    _ => FieldContent::Number(wire::number(kind, &mut piece)?),
                };
                if !std::mem::take(&mut first) {
                    self.out.push(',');
                }
                self.value(kind, &slot, &PieceChain::default())?;
                if !kind.is_packable() {
                    break;
                }
            }
        }
        self.out.push(']');
        Ok(())
    }

    fn map(&mut self, kinds: (FieldKind, FieldKind), pieces: PieceIter<'_, '_>) -> Result<(), MessageError> {
        self.budget.spend(2)?;
        self.out.push('{');
        let map = MapEntries::of(self.plan, kinds, pieces)?;
        for (index, (key, value)) in map.entries.iter().enumerate() {
            if index > 0 {
                self.out.push(',');
            }
            let key = key.text();
            self.budget.spend(key.len() + 4)?;
            write_string(&key, self.out);
            self.out.push(':');
            self.value(kinds.1, value, &map.chain)?;
        }
        self.out.push('}');
        Ok(())
    }
}

/// Returns the text for a double that has no JSON number.
pub(crate) const fn not_finite(value: f64) -> Option<&'static str> {
    if value.is_nan() {
        Some("NaN")
    } else if value.is_infinite() {
        Some(if value > 0.0 { "Infinity" } else { "-Infinity" })
    } else {
        None
    }
}
