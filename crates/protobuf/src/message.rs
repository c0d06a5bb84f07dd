//! The contents of the fields of a message: references to its bytes, gathered in one walk.
//!
//! A message sent in several pieces equals the concatenation of its pieces; repeated occurrences are joined this way.
//! The first walk checks the whole message, nested messages included. Nested messages are walked again when they are
//! written, without another check.

use std::borrow::Cow;

use crate::plan::{DecodePlan, FieldCardinality, FieldKind, FieldPlan, MessageIndex, MessagePlan};
use crate::wire::{self, BYTES, TOO_DEEP, WRONG_MAP, WRONG_TYPE, WireError};

/// Most fields that are gathered without an allocation.
const INLINE_FIELDS: usize = 16;

/// The content of a field.
#[derive(Debug, Clone, Copy)]
pub(crate) enum FieldContent<'p> {
    Absent,
    /// See [`wire::number`].
    Number(u64),
    Text(&'p str),
    Bytes(&'p [u8]),
    /// Messages, elements of a list (concatenated if possible), entries of a map.
    Pieces(PieceList<'p>),
}

impl<'p> FieldContent<'p> {
    /// Creates a list of one piece.
    pub(crate) const fn single_piece(first: &'p [u8]) -> Self {
        Self::Pieces(PieceList {
            first,
            next: 0,
            last: 0,
        })
    }

    /// Returns the text, or its default.
    pub(crate) const fn text(&self) -> &'p str {
        match self {
            Self::Text(text) => text,
            _ => "",
        }
    }

    /// Returns the bytes, or their default.
    pub(crate) const fn bytes(&self) -> &'p [u8] {
        match self {
            Self::Bytes(bytes) => bytes,
            _ => &[],
        }
    }

    /// Returns the number, or its default.
    pub(crate) fn number(&self, plan: &DecodePlan, kind: FieldKind) -> u64 {
        match self {
            Self::Number(number) => *number,
            _ => plan.default(kind),
        }
    }
}

/// A piece, and the position of the others in a [`PieceChain`].
#[derive(Debug, Clone, Copy)]
pub(crate) struct PieceList<'p> {
    first: &'p [u8],
    /// The index of the next piece plus 1, or 0.
    next: u32,
    last: u32,
}

/// All pieces of all fields except the first of each field, with the position of the next piece.
#[derive(Debug, Default)]
pub(crate) struct PieceChain<'p>(Vec<(&'p [u8], u32)>);

/// Iterates over pieces.
#[derive(Debug, Clone)]
pub(crate) struct PieceIter<'c, 'p> {
    chain: &'c [(&'p [u8], u32)],
    piece: Option<&'p [u8]>,
    next: u32,
}

impl<'p> Iterator for PieceIter<'_, 'p> {
    type Item = &'p [u8];

    fn next(&mut self) -> Option<&'p [u8]> {
        let piece = self.piece.take();
        let following = (self.next as usize).checked_sub(1);
        if let Some((next, after)) = following.and_then(|place| self.chain.get(place)) {
            (self.piece, self.next) = (Some(*next), *after);
        }
        piece
    }
}

impl<'p> PieceIter<'_, 'p> {
    /// Iterates over one piece.
    pub(crate) const fn one(piece: &'p [u8]) -> Self {
        Self {
            chain: &[],
            piece: Some(piece),
            next: 0,
        }
    }
}

impl<'p> PieceChain<'p> {
    /// Iterates over the pieces of a slot.
    pub(crate) fn pieces(&self, slot: &FieldContent<'p>) -> PieceIter<'_, 'p> {
        let (piece, next) = match slot {
            FieldContent::Pieces(pieces) => (Some(pieces.first), pieces.next),
            _ => (None, 0),
        };
        PieceIter {
            chain: &self.0,
            piece,
            next,
        }
    }

    fn put(&mut self, slot: &mut FieldContent<'p>, item: WireValue<'p>) {
        *slot = match (item, &mut *slot) {
            (WireValue::Number(number), _) => FieldContent::Number(number),
            (WireValue::Text(text), _) => FieldContent::Text(text),
            (WireValue::Bytes(bytes), _) => FieldContent::Bytes(bytes),
            (WireValue::Piece(piece), FieldContent::Pieces(pieces)) => {
                self.0.push((piece, 0));
                // A message is far too small for indexes of more than 32 bits.
                let place = self.0.len() as u32;
                match (pieces.last as usize)
                    .checked_sub(1)
                    .and_then(|last| self.0.get_mut(last))
                {
                    Some((_, next)) => *next = place,
                    None => pieces.next = place,
                }
                pieces.last = place;
                return;
            }
            (WireValue::Piece(first), _) => FieldContent::single_piece(first),
        };
    }
}

/// The contents of a message's fields, in order.
pub(crate) struct MessageFields<'g, 'p> {
    pub(crate) message: &'g MessagePlan,
    pub(crate) slots: &'g [FieldContent<'p>],
    pub(crate) chain: &'g PieceChain<'p>,
}

impl<'p> MessageFields<'_, 'p> {
    /// Iterates over the fields with their contents; `None` for fields with presence that are not set.
    pub(crate) fn fields(&self) -> impl Iterator<Item = (&FieldPlan, Option<&FieldContent<'p>>)> {
        self.message.fields.iter().zip(self.slots).map(|(field, slot)| {
            let is_absent = matches!(
                (field.shape, slot),
                (
                    FieldCardinality::Single {
                        can_be_absent: true,
                        ..
                    },
                    FieldContent::Absent
                )
            );
            (field, (!is_absent).then_some(slot))
        })
    }

    /// Returns a field with its content.
    pub(crate) fn field(&self, place: usize) -> Option<(&FieldPlan, &FieldContent<'p>)> {
        match self.fields().nth(place)? {
            (field, Some(slot)) => Some((field, slot)),
            _ => None,
        }
    }
}

/// Gathers a message from these pieces, and passes its fields to `work`. `check` is set for a message that has not been
/// walked yet.
pub(crate) fn with_message_fields<'p, T, E: From<WireError>>(
    plan: &DecodePlan,
    at: MessageIndex,
    pieces: PieceIter<'_, 'p>,
    check: bool,
    work: impl FnOnce(&MessageFields<'_, 'p>) -> Result<T, E>,
) -> Result<T, E> {
    let message = plan.message(at);
    // After the fields, a slot per oneof tells which of its fields is set.
    let count = message.fields.len() + message.oneofs;
    let (mut few, mut many);
    let slots = if count <= INLINE_FIELDS {
        few = [FieldContent::Absent; INLINE_FIELDS];
        few.get_mut(..count).unwrap_or_default()
    } else {
        many = vec![FieldContent::Absent; count];
        many.as_mut_slice()
    };
    let (slots, set) = slots.split_at_mut(message.fields.len());
    let mut chain = PieceChain::default();
    for piece in pieces {
        walk(
            plan,
            message,
            piece,
            wire::MAX_DEPTH,
            check,
            &mut |place, field, item| {
                if let FieldCardinality::Single {
                    oneof: Some(oneof), ..
                } = field.shape
                    && let Some(set) = set.get_mut(oneof)
                {
                    if let FieldContent::Number(other) = *set
                        && other != place as u64
                        && let Some(other) = slots.get_mut(other as usize)
                    {
                        *other = FieldContent::Absent;
                    }
                    *set = FieldContent::Number(place as u64);
                }
                if let Some(slot) = slots.get_mut(place) {
                    chain.put(slot, item);
                }
            },
        )?;
    }
    work(&MessageFields {
        message,
        slots,
        chain: &chain,
    })
}

/// One value of a field.
#[derive(Clone, Copy)]
enum WireValue<'p> {
    Number(u64),
    Text(&'p str),
    Bytes(&'p [u8]),
    Piece(&'p [u8]),
}

/// Walks through the fields of a message, which may nest `depth` further levels.
fn walk<'p>(
    plan: &DecodePlan,
    message: &MessagePlan,
    mut bytes: &'p [u8],
    depth: u32,
    check: bool,
    found: &mut impl FnMut(usize, &FieldPlan, WireValue<'p>),
) -> Result<(), WireError> {
    while !bytes.is_empty() {
        let key @ (number, wire) = wire::key(&mut bytes)?;
        let Some((place, field)) = message.field(number) else {
            wire::skip(key, &mut bytes, depth, false)?;
            continue;
        };
        let within = WireContext { plan, depth, check };
        let item = match field.shape {
            FieldCardinality::Single { .. } => within.single(field.kind, wire, &mut bytes)?,
            FieldCardinality::List => WireValue::Piece(within.elements(field.kind, wire, &mut bytes)?),
            FieldCardinality::Map(key) => {
                if wire != BYTES {
                    return Err(WRONG_MAP);
                }
                let piece = wire::chunk(&mut bytes)?;
                if check {
                    within.entry(key, field.kind, piece, &mut PieceChain::default())?;
                }
                WireValue::Piece(piece)
            }
        };
        found(place, field, item);
    }
    Ok(())
}

/// The context in which values are read.
#[derive(Clone, Copy)]
struct WireContext<'s> {
    plan: &'s DecodePlan,
    depth: u32,
    check: bool,
}

impl WireContext<'_> {
    #[inline]
    fn single<'p>(self, kind: FieldKind, wire: u8, bytes: &mut &'p [u8]) -> Result<WireValue<'p>, WireError> {
        if wire != kind.wire() {
            return Err(WRONG_TYPE);
        }
        match kind {
            FieldKind::String => wire::text(wire::chunk(bytes)?).map(WireValue::Text),
            FieldKind::Bytes => wire::chunk(bytes).map(WireValue::Bytes),
            FieldKind::Message(at) => {
                let piece = wire::chunk(bytes)?;
                if self.check {
                    let depth = self.depth.checked_sub(1).ok_or(TOO_DEEP)?;
                    let message = self.plan.message(at);
                    walk(self.plan, message, piece, depth, true, &mut |_, _, _| {})?;
                }
                Ok(WireValue::Piece(piece))
            }
            _ => wire::number(kind, bytes).map(WireValue::Number),
        }
    }

    /// Returns the bytes of one list element, or of all elements of a packed list.
    fn elements<'p>(self, kind: FieldKind, wire: u8, bytes: &mut &'p [u8]) -> Result<&'p [u8], WireError> {
        if wire == BYTES && kind.is_packable() {
            let piece = wire::chunk(bytes)?;
            let mut left = piece;
            while self.check && !left.is_empty() {
                wire::number(kind, &mut left)?;
            }
            return Ok(piece);
        }
        let before = *bytes;
        Ok(match self.single(kind, wire, bytes)? {
            WireValue::Number(_) => before.get(..before.len() - bytes.len()).unwrap_or_default(),
            WireValue::Text(text) => text.as_bytes(),
            WireValue::Bytes(piece) | WireValue::Piece(piece) => piece,
        })
    }

    /// Reads a map entry. Key and value may be missing, and then have their defaults.
    fn entry<'p>(
        self,
        key_kind: FieldKind,
        value_kind: FieldKind,
        mut bytes: &'p [u8],
        chain: &mut PieceChain<'p>,
    ) -> Result<(EntryKey<'p>, FieldContent<'p>), WireError> {
        const KEY: u32 = 1;
        const VALUE: u32 = 2;
        let (mut key, mut value) = (FieldContent::Absent, FieldContent::Absent);
        while !bytes.is_empty() {
            let found @ (number, wire) = wire::key(&mut bytes)?;
            match number {
                KEY => chain.put(&mut key, self.single(key_kind, wire, &mut bytes)?),
                VALUE => chain.put(&mut value, self.single(value_kind, wire, &mut bytes)?),
                _ => wire::skip(found, &mut bytes, self.depth, true)?,
            }
        }
        let number = match key {
            FieldContent::Number(number) => number,
            _ => 0,
        };
        let key = match (key_kind, key) {
            (FieldKind::String, FieldContent::Text(text)) => EntryKey::Text(text),
            (FieldKind::String, _) => EntryKey::Text(""),
            (FieldKind::Bool, _) => EntryKey::Bool(number != 0),
            (FieldKind::Uint32 | FieldKind::Uint64 | FieldKind::Fixed32 | FieldKind::Fixed64, _) => {
                EntryKey::Unsigned(number)
            }
            _ => EntryKey::Signed(number as i64),
        };
        Ok((key, value))
    }
}

/// The key of a map entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum EntryKey<'p> {
    Bool(bool),
    Signed(i64),
    Unsigned(u64),
    Text(&'p str),
}

impl<'p> EntryKey<'p> {
    /// Converts the key to text.
    pub(crate) fn text(self) -> Cow<'p, str> {
        match self {
            Self::Bool(key) => (if key { "true" } else { "false" }).into(),
            Self::Signed(key) => key.to_string().into(),
            Self::Unsigned(key) => key.to_string().into(),
            Self::Text(key) => key.into(),
        }
    }
}

/// The entries of a map.
pub(crate) struct MapEntries<'p> {
    /// Sorted by key, so that the same message always becomes the same text. Of entries with the same key, the last
    /// counts.
    pub(crate) entries: Vec<(EntryKey<'p>, FieldContent<'p>)>,
    /// The pieces that their values refer to.
    pub(crate) chain: PieceChain<'p>,
}

impl<'p> MapEntries<'p> {
    /// Reads the entries of a map that has been walked.
    pub(crate) fn of(
        plan: &DecodePlan,
        kinds: (FieldKind, FieldKind),
        pieces: PieceIter<'_, 'p>,
    ) -> Result<Self, WireError> {
        let (mut entries, mut chain) = (Vec::new(), PieceChain::default());
        let within = WireContext {
            plan,
            depth: wire::MAX_DEPTH,
            check: false,
        };
        for piece in pieces {
            entries.push(within.entry(kinds.0, kinds.1, piece, &mut chain)?);
        }
        entries.reverse();
        entries.sort_by_key(|(key, _)| *key);
        entries.dedup_by_key(|(key, _)| *key);
        Ok(Self { entries, chain })
    }
}
