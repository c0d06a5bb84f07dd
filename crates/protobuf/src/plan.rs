//! The decoding plan of a schema, made once when it is compiled.

use std::collections::HashMap;

use fieldline_model::json::write_string;
use fieldline_model::kv;
use prost_reflect::{FieldDescriptor, Kind as Described, MessageDescriptor, OneofDescriptor};

use crate::wire;

/// The messages of a schema, root message first, and its enumerations.
#[derive(Debug)]
pub(crate) struct DecodePlan {
    messages: Vec<MessagePlan>,
    enums: Vec<EnumPlan>,
}

/// The index of a message in a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MessageIndex(usize);

/// The index of an enumeration in a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct EnumIndex(usize);

impl MessageIndex {
    /// The message that devices exchange.
    pub(crate) const ROOT: Self = Self(0);
}

/// A message.
#[derive(Debug, Default)]
pub(crate) struct MessagePlan {
    /// The fields, in the order of their numbers.
    pub(crate) fields: Vec<FieldPlan>,
    /// The number of oneofs.
    pub(crate) oneofs: usize,
}

/// A field of a message.
#[derive(Debug)]
pub(crate) struct FieldPlan {
    pub(crate) number: u32,
    /// Its name in JSON.
    pub(crate) key: FieldKey,
    /// The name in JSON syntax, followed by a colon.
    pub(crate) member: String,
    pub(crate) shape: FieldCardinality,
    pub(crate) kind: FieldKind,
}

/// The key of a field in key-values.
#[derive(Debug)]
pub(crate) struct FieldKey {
    pub(crate) bytes: usize,
    /// The key with its length, or the reason why the name is not a valid key.
    pub(crate) packed: Result<Vec<u8>, &'static str>,
}

/// How often a field may occur.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FieldCardinality {
    /// Once: the last occurrence counts, and messages are merged.
    Single {
        /// Whether the field has presence; otherwise it has a default.
        can_be_absent: bool,
        /// The oneof that the field belongs to.
        oneof: Option<usize>,
    },
    /// Any number of times.
    List,
    /// Any number of entries, with keys of this kind.
    Map(FieldKind),
}

/// The type of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FieldKind {
    Bool,
    Int32,
    Int64,
    Uint32,
    Uint64,
    Sint32,
    Sint64,
    Fixed32,
    Fixed64,
    Sfixed32,
    Sfixed64,
    Float,
    Double,
    Enum(EnumIndex),
    String,
    Bytes,
    Message(MessageIndex),
}

/// An enumeration.
#[derive(Debug, Default)]
struct EnumPlan {
    default: i32,
    /// Sorted by number.
    names: Vec<(i32, String)>,
}

impl FieldKind {
    /// The wire type of one value.
    pub(crate) const fn wire(self) -> u8 {
        match self {
            Self::Bool
            | Self::Int32
            | Self::Int64
            | Self::Uint32
            | Self::Uint64
            | Self::Sint32
            | Self::Sint64
            | Self::Enum(_) => wire::VARINT,
            Self::Fixed32 | Self::Sfixed32 | Self::Float => wire::FIXED32,
            Self::Fixed64 | Self::Sfixed64 | Self::Double => wire::FIXED64,
            Self::String | Self::Bytes | Self::Message(_) => wire::BYTES,
        }
    }

    /// Returns whether repeated values may be packed, without their field numbers.
    pub(crate) const fn is_packable(self) -> bool {
        self.wire() != wire::BYTES
    }
}

impl DecodePlan {
    /// Creates the plan for a message and everything that it refers to.
    pub(crate) fn of(root: &MessageDescriptor) -> Self {
        let mut plan = Self {
            messages: Vec::new(),
            enums: Vec::new(),
        };
        let mut names = DescriptorIndex {
            messages: vec![root.clone()],
            places: HashMap::from([(root.full_name().to_owned(), 0)]),
        };
        while let Some(next) = names.messages.get(plan.messages.len()).cloned() {
            let mut message = MessagePlan::default();
            for field in next.fields() {
                message.fields.push(plan.field(&field, &mut names));
            }
            message.oneofs = oneofs(&next).count();
            plan.messages.push(message);
        }
        plan
    }

    /// Returns a message of the plan.
    pub(crate) fn message(&self, at: MessageIndex) -> &MessagePlan {
        const NONE: &MessagePlan = &MessagePlan {
            fields: Vec::new(),
            oneofs: 0,
        };
        self.messages.get(at.0).unwrap_or(NONE)
    }

    /// Returns the name of an enumeration value, if it has one.
    pub(crate) fn name(&self, at: EnumIndex, number: i32) -> Option<&str> {
        let names = &self.enums.get(at.0)?.names;
        let place = names.binary_search_by_key(&number, |(number, _)| *number).ok()?;
        names.get(place).map(|(_, name)| name.as_str())
    }

    /// Returns the number for a value of this kind that was not sent.
    pub(crate) fn default(&self, kind: FieldKind) -> u64 {
        match kind {
            FieldKind::Enum(at) => self
                .enums
                .get(at.0)
                .map_or(0, |found| i64::from(found.default) as u64),
            _ => 0,
        }
    }

    fn field(&mut self, field: &FieldDescriptor, names: &mut DescriptorIndex) -> FieldPlan {
        let key = field.json_name();
        let mut member = String::with_capacity(key.len() + 3);
        write_string(key, &mut member);
        member.push(':');
        let (shape, kind) = match field.kind() {
            Described::Message(entry) if field.is_map() => (
                FieldCardinality::Map(self.kind(&entry.map_entry_key_field().kind(), names)),
                entry.map_entry_value_field().kind(),
            ),
            kind if field.is_list() => (FieldCardinality::List, kind),
            kind => {
                let of_message = field.parent_message();
                let oneof = field
                    .containing_oneof()
                    .and_then(|oneof| oneofs(of_message).position(|other| other == oneof));
                let shape = FieldCardinality::Single {
                    can_be_absent: field.supports_presence(),
                    oneof,
                };
                (shape, kind)
            }
        };
        FieldPlan {
            number: field.number(),
            key: FieldKey::new(key),
            member,
            shape,
            kind: self.kind(&kind, names),
        }
    }

    fn kind(&mut self, kind: &Described, names: &mut DescriptorIndex) -> FieldKind {
        match kind {
            Described::Bool => FieldKind::Bool,
            Described::Int32 => FieldKind::Int32,
            Described::Int64 => FieldKind::Int64,
            Described::Uint32 => FieldKind::Uint32,
            Described::Uint64 => FieldKind::Uint64,
            Described::Sint32 => FieldKind::Sint32,
            Described::Sint64 => FieldKind::Sint64,
            Described::Fixed32 => FieldKind::Fixed32,
            Described::Fixed64 => FieldKind::Fixed64,
            Described::Sfixed32 => FieldKind::Sfixed32,
            Described::Sfixed64 => FieldKind::Sfixed64,
            Described::Float => FieldKind::Float,
            Described::Double => FieldKind::Double,
            Described::String => FieldKind::String,
            Described::Bytes => FieldKind::Bytes,
            Described::Message(message) => {
                let next = names.messages.len();
                let place = *names.places.entry(message.full_name().to_owned()).or_insert(next);
                if place == next {
                    names.messages.push(message.clone());
                }
                FieldKind::Message(MessageIndex(place))
            }
            Described::Enum(found) => {
                let next = self.enums.len();
                // A message and an enumeration cannot have the same name.
                let place = *names.places.entry(found.full_name().to_owned()).or_insert(next);
                if place == next {
                    let mut known: Vec<(i32, String)> = found
                        .values()
                        .map(|value| (value.number(), value.name().to_owned()))
                        .collect();
                    known.sort_unstable_by_key(|(number, _)| *number);
                    self.enums.push(EnumPlan {
                        default: found.default_value().number(),
                        names: known,
                    });
                }
                FieldKind::Enum(EnumIndex(place))
            }
        }
    }
}

/// The oneofs of a message, without the synthetic ones of optional fields.
fn oneofs(message: &MessageDescriptor) -> impl Iterator<Item = OneofDescriptor> {
    message.oneofs().filter(|oneof| !oneof.is_synthetic())
}

/// The messages and enumerations with an index in the plan.
struct DescriptorIndex {
    messages: Vec<MessageDescriptor>,
    places: HashMap<String, usize>,
}

impl FieldKey {
    fn new(key: &str) -> Self {
        let mut packed = Vec::with_capacity(key.len() + 2);
        kv::pack_key(key, &mut packed);
        Self {
            bytes: key.len(),
            packed: check_key(key).map(|()| packed),
        }
    }
}

/// Checks whether a name is a valid key.
pub(crate) fn check_key(key: &str) -> Result<(), &'static str> {
    if key.trim().is_empty() {
        return Err("key is empty");
    }
    if key.len() > kv::MAX_KEY_BYTES {
        return Err("key is too long");
    }
    Ok(())
}

impl MessagePlan {
    /// Returns the field with this number, and its index.
    pub(crate) fn field(&self, number: u32) -> Option<(usize, &FieldPlan)> {
        // Most messages number their fields from 1 upwards.
        let likely = (number as usize).wrapping_sub(1);
        if let Some(field) = self.fields.get(likely)
            && field.number == number
        {
            return Some((likely, field));
        }
        let place = self
            .fields
            .binary_search_by_key(&number, |field| field.number)
            .ok()?;
        self.fields.get(place).map(|field| (place, field))
    }
}
