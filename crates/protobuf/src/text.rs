//! The JSON mapping of messages, with all defaults: what nested values and answers to calls become.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use fieldline_model::json::write_string;
use fieldline_model::kv::ValueRef;

use crate::MessageError;
use crate::decode::{Budget, shortest};
use crate::message::{Chain, EachPiece, Entries, Slot, gathered};
use crate::plan::{Field, Kind, MessageAt, Plan, Shape};
use crate::wire;

/// Writes JSON within what a message may become.
pub(crate) struct JsonWriter<'w> {
    pub(crate) plan: &'w Plan,
    pub(crate) budget: &'w mut Budget,
    pub(crate) out: &'w mut String,
}

impl JsonWriter<'_> {
    /// Writes a message as an object, its fields in the order of their numbers. `check` as for [`gathered`].
    pub(crate) fn message(
        &mut self,
        at: MessageAt,
        pieces: EachPiece<'_, '_>,
        check: bool,
    ) -> Result<(), MessageError> {
        gathered(self.plan, at, pieces, check, |message| {
            self.budget.take(2)?;
            self.out.push('{');
            let mut first = true;
            for (field, slot) in message.fields() {
                self.budget.take(0)?;
                let Some(slot) = slot else { continue };
                if !std::mem::take(&mut first) {
                    self.out.push(',');
                }
                self.budget.take(field.key.bytes + 4)?;
                self.out.push_str(&field.member);
                self.field(field, slot, message.chain)?;
            }
            self.out.push('}');
            Ok(())
        })
    }

    /// Writes what there is of a field.
    pub(crate) fn field<'p>(
        &mut self,
        field: &Field,
        slot: &Slot<'p>,
        chain: &Chain<'p>,
    ) -> Result<(), MessageError> {
        match field.shape {
            Shape::Single { .. } => self.value(field.kind, slot, chain),
            Shape::List => self.list(field.kind, chain.pieces(slot)),
            Shape::Map(key) => self.map((key, field.kind), chain.pieces(slot)),
        }
    }

    /// Writes one value. Whole numbers of 64 bits are strings, as the mapping says.
    pub(crate) fn value<'p>(
        &mut self,
        kind: Kind,
        slot: &Slot<'p>,
        chain: &Chain<'p>,
    ) -> Result<(), MessageError> {
        self.budget.take(2)?;
        if let Kind::Message(at) = kind {
            // This takes from the budget itself.
            return self.message(at, chain.pieces(slot), false);
        }
        let before = self.out.len();
        match kind {
            Kind::String => write_string(slot.text(), self.out),
            Kind::Bytes => {
                self.out.push('"');
                BASE64_STANDARD.encode_string(slot.bytes(), self.out);
                self.out.push('"');
            }
            _ => self.number(kind, slot.number(self.plan, kind)),
        }
        self.budget.take(self.out.len() - before)
    }

    fn number(&mut self, kind: Kind, number: u64) {
        match kind {
            Kind::Bool => ValueRef::Bool(number != 0).write_json(self.out),
            Kind::Float => self.double(shortest(f32::from_bits(number as u32))),
            Kind::Double => self.double(f64::from_bits(number)),
            Kind::Enum(at) => match self.plan.name(at, number as i32) {
                Some(name) => write_string(name, self.out),
                None => ValueRef::Long(number as i64).write_json(self.out),
            },
            Kind::Int64 | Kind::Sint64 | Kind::Sfixed64 => {
                write_string(&(number as i64).to_string(), self.out);
            }
            Kind::Uint64 | Kind::Fixed64 => write_string(&number.to_string(), self.out),
            _ => ValueRef::Long(number as i64).write_json(self.out),
        }
    }

    fn double(&mut self, value: f64) {
        match not_finite(value) {
            Some(name) => write_string(name, self.out),
            None => ValueRef::Double(value).write_json(self.out),
        }
    }

    fn list(&mut self, kind: Kind, pieces: EachPiece<'_, '_>) -> Result<(), MessageError> {
        self.budget.take(2)?;
        self.out.push('[');
        let mut first = true;
        for mut piece in pieces {
            loop {
                let slot = match kind {
                    Kind::String => Slot::Text(wire::text(piece)?),
                    Kind::Bytes => Slot::Bytes(piece),
                    Kind::Message(_) => Slot::one(piece),
                    _ if piece.is_empty() => break,
                    _ => Slot::Number(wire::number(kind, &mut piece)?),
                };
                if !std::mem::take(&mut first) {
                    self.out.push(',');
                }
                self.value(kind, &slot, &Chain::default())?;
                if !kind.is_packable() {
                    break;
                }
            }
        }
        self.out.push(']');
        Ok(())
    }

    fn map(&mut self, kinds: (Kind, Kind), pieces: EachPiece<'_, '_>) -> Result<(), MessageError> {
        self.budget.take(2)?;
        self.out.push('{');
        let map = Entries::of(self.plan, kinds, pieces)?;
        for (index, (key, value)) in map.entries.iter().enumerate() {
            if index > 0 {
                self.out.push(',');
            }
            let key = key.text();
            self.budget.take(key.len() + 4)?;
            write_string(&key, self.out);
            self.out.push(':');
            self.value(kinds.1, value, &map.chain)?;
        }
        self.out.push('}');
        Ok(())
    }
}

/// What stands for a double that JSON has no number for.
pub(crate) const fn not_finite(value: f64) -> Option<&'static str> {
    if value.is_nan() {
        Some("NaN")
    } else if value.is_infinite() {
        Some(if value > 0.0 { "Infinity" } else { "-Infinity" })
    } else {
        None
    }
}
