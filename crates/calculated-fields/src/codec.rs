//! States as bytes.
//!
//! ```text
//! version · fingerprint (8 bytes) · flags · evaluated at · related at · previous fields · related entities · arguments
//! ```
//!
//! Numbers are varints, signed ones in zigzag. The fingerprint is of what a state depends on in its field: after a change
//! of the arguments the bytes are of no use any more and are refused as stale.

use fieldline_model::entity::CalculatedField;
use fieldline_model::entity::calculated_field::RelationLevel;
use fieldline_model::fnv;
use fieldline_model::kv::{CorruptData, pack_value, read_varint, take_array, unpack_value, write_varint};
use fieldline_model::{CalculatedFieldId, EntityId, EntityType};
use uuid::Uuid;

use super::aggregation::OpenInterval;
use super::field::CompiledField;
use super::geofencing::GeofenceZone;
use super::input::{FieldInput, FieldInputRole};
use super::perimeter::{GeoPoint, Perimeter};
use super::rolling::RollingWindow;
use super::state::{ArgumentEntry, CalculatedFieldState, SingleValue};

const VERSION: u8 = 1;

const PENDING: u8 = 1;
const FORCED: u8 = 2;
const OVERSIZED: u8 = 4;

/// Why bytes are no state of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum FieldStateError {
    /// They were, before the arguments of the field have changed; or a newer program has written them.
    #[error("the state belongs to another version of the field")]
    Stale,
    /// They are damaged.
    #[error(transparent)]
    Corrupt(#[from] CorruptData),
}

/// About as many bytes as a state has when encoded, without encoding it.
pub(super) fn size(state: &CalculatedFieldState) -> usize {
    const ENTITY: usize = 17;
    let single = |single: &SingleValue| 16 + single.value.heap_bytes();
    let slots = state.slots.iter().map(|slot| match slot {
        ArgumentEntry::Empty => 1,
        ArgumentEntry::Single(value) => single(value),
        ArgumentEntry::Rolling(rolling) => 2 + rolling.len() * 12,
        ArgumentEntry::Zones(zones) => zones
            .iter()
            .map(|zone| ENTITY + 10 + corners(&zone.perimeter) * 16)
            .sum(),
        ArgumentEntry::Related(entities) => entities
            .iter()
            .map(|(_, value)| ENTITY + value.as_ref().map_or(1, single))
            .sum(),
        ArgumentEntry::Intervals(intervals) => intervals.len() * 28,
    });
    32 + (state.related.len() + state.previous.len()) * ENTITY + slots.sum::<usize>()
}

fn corners(perimeter: &Perimeter) -> usize {
    match perimeter {
        Perimeter::Circle { .. } => 2,
        Perimeter::Polygons { areas, holes } => areas.iter().chain(holes).map(Vec::len).sum(),
    }
}

/// What a state depends on, as a number that stays the same between programs (FNV-1a).
pub(super) fn fingerprint(
    field: &CalculatedField,
    needs: &[FieldInput],
    relation: Option<&RelationLevel>,
) -> u64 {
    let mut text = format!("{:?} {relation:?}", field.field_type);
    for need in needs {
        text.push_str(&format!(
            " {:?}",
            (&need.name, &need.key, need.kind, &need.source, &need.default)
        ));
    }
    if let Some(interval) = field.configuration.get("interval") {
        text.push_str(&interval.to_string());
    }
    fnv::hash(fnv::BASIS, text.bytes())
}

impl CompiledField {
    /// The state as bytes.
    pub fn encode(&self, state: &CalculatedFieldState) -> Vec<u8> {
        let mut out = Vec::with_capacity(size(state));
        out.push(VERSION);
        out.extend_from_slice(&self.fingerprint().to_le_bytes());
        let flag = |set: bool, bit: u8| if set { bit } else { 0 };
        out.push(
            flag(state.pending, PENDING) | flag(state.forced, FORCED) | flag(state.oversized, OVERSIZED),
        );
        write_signed(state.evaluated_at, &mut out);
        write_signed(state.related_at, &mut out);
        write_list(&state.previous, &mut out, |id, out| {
            out.extend_from_slice(id.0.as_bytes());
        });
        write_list(&state.related, &mut out, |entity, out| write_entity(*entity, out));
        for slot in &state.slots {
            write_slot(slot, &mut out);
        }
        out
    }

    /// The state that bytes are.
    ///
    /// # Errors
    /// The field has changed since, and the state has to be made anew; or the bytes are damaged.
    pub fn decode(
        &self,
        entity: EntityId,
        mut bytes: &[u8],
    ) -> Result<CalculatedFieldState, FieldStateError> {
        let input = &mut bytes;
        if take_array::<1>(input)? != [VERSION]
            || u64::from_le_bytes(take_array(input)?) != self.fingerprint()
        {
            return Err(FieldStateError::Stale);
        }
        let mut state = self.new_state(entity);
        let [flags] = take_array::<1>(input)?;
        state.pending = flags & PENDING != 0;
        state.forced = flags & FORCED != 0;
        state.oversized = flags & OVERSIZED != 0;
        state.evaluated_at = read_signed(input)?;
        state.related_at = read_signed(input)?;
        state.previous = read_list(input, 16, |input| {
            Ok(CalculatedFieldId(Uuid::from_bytes(take_array(input)?)))
        })?;
        state.related = read_list(input, 17, read_entity)?;
        state.related.sort_unstable();
        state.related.dedup();
        for (need, slot) in self.inputs().iter().zip(&mut state.slots) {
            *slot = read_slot(input)?;
            if !fits(need.role, slot) {
                return Err(CorruptData("argument of another kind").into());
            }
        }
        if !bytes.is_empty() {
            return Err(CorruptData("bytes behind the state").into());
        }
        Ok(state)
    }
}

fn fits(role: FieldInputRole, slot: &ArgumentEntry) -> bool {
    match slot {
        ArgumentEntry::Empty => true,
        ArgumentEntry::Single(_) => role == FieldInputRole::Value,
        ArgumentEntry::Rolling(_) => role == FieldInputRole::Points,
        ArgumentEntry::Zones(_) => role == FieldInputRole::Zones,
        ArgumentEntry::Related(_) => role == FieldInputRole::Related,
        ArgumentEntry::Intervals(_) => role == FieldInputRole::Series,
    }
}

fn write_slot(slot: &ArgumentEntry, out: &mut Vec<u8>) {
    match slot {
        ArgumentEntry::Empty => out.push(0),
        ArgumentEntry::Single(single) => {
            out.push(1);
            write_single(single, out);
        }
        ArgumentEntry::Rolling(rolling) => {
            out.push(2);
            write_varint(rolling.len() as u64, out);
            let mut before = 0;
            for (ts, value) in rolling.points() {
                write_signed(ts.wrapping_sub(before), out);
                out.extend_from_slice(&value.to_le_bytes());
                before = ts;
            }
        }
        ArgumentEntry::Zones(zones) => {
            out.push(3);
            write_list(zones, out, write_zone);
        }
        ArgumentEntry::Related(entities) => {
            out.push(4);
            write_list(entities, out, |(entity, single), out| {
                write_entity(*entity, out);
                out.push(u8::from(single.is_some()));
                if let Some(single) = single {
                    write_single(single, out);
                }
            });
        }
        ArgumentEntry::Intervals(intervals) => {
            out.push(5);
            write_list(intervals, out, |interval, out| {
                write_signed(interval.start, out);
                write_signed(interval.end.wrapping_sub(interval.start), out);
                write_signed(interval.refreshed_at, out);
                write_signed(interval.evaluated_at, out);
            });
        }
    }
}

fn read_slot(input: &mut &[u8]) -> Result<ArgumentEntry, CorruptData> {
    let [tag] = take_array::<1>(input)?;
    Ok(match tag {
        0 => ArgumentEntry::Empty,
        1 => ArgumentEntry::Single(read_single(input)?),
        2 => {
            let mut before = 0i64;
            let points = read_list(input, 9, |input| {
                before = before.wrapping_add(read_signed(input)?);
                Ok((before, f64::from_le_bytes(take_array(input)?)))
            })?;
            let mut rolling = RollingWindow::default();
            for (ts, value) in points {
                rolling.insert(ts, value, usize::MAX);
            }
            ArgumentEntry::Rolling(rolling)
        }
        3 => ArgumentEntry::Zones(read_list(input, 20, read_zone)?),
        4 => {
            let mut entities = read_list(input, 18, |input| {
                let entity = read_entity(input)?;
                let single = match take_array::<1>(input)? {
                    [0] => None,
                    _ => Some(read_single(input)?),
                };
                Ok((entity, single))
            })?;
            entities.sort_by_key(|(entity, _)| *entity);
            entities.dedup_by_key(|(entity, _)| *entity);
            ArgumentEntry::Related(entities)
        }
        5 => ArgumentEntry::Intervals(read_list(input, 4, |input| {
            let start = read_signed(input)?;
            Ok(OpenInterval {
                start,
                end: start.wrapping_add(read_signed(input)?),
                refreshed_at: read_signed(input)?,
                evaluated_at: read_signed(input)?,
            })
        })?),
        _ => return Err(CorruptData("unknown kind of argument")),
    })
}

fn write_single(single: &SingleValue, out: &mut Vec<u8>) {
    out.push(u8::from(single.is_default));
    write_signed(single.ts, out);
    pack_value(single.value.as_ref(), out);
}

fn read_single(input: &mut &[u8]) -> Result<SingleValue, CorruptData> {
    Ok(SingleValue {
        is_default: take_array::<1>(input)? != [0],
        ts: read_signed(input)?,
        value: unpack_value(input)?.to_value(),
    })
}

fn write_zone(zone: &GeofenceZone, out: &mut Vec<u8>) {
    write_entity(zone.entity, out);
    write_signed(zone.ts, out);
    out.push(match zone.inside {
        None => 0,
        Some(false) => 1,
        Some(true) => 2,
    });
    match &zone.perimeter {
        Perimeter::Circle { middle, radius } => {
            out.push(0);
            write_place(middle, out);
            out.extend_from_slice(&radius.to_le_bytes());
        }
        Perimeter::Polygons { areas, holes } => {
            out.push(1);
            for polygons in [areas, holes] {
                write_list(polygons, out, |polygon, out| {
                    write_list(polygon, out, write_place);
                });
            }
        }
    }
}

fn read_zone(input: &mut &[u8]) -> Result<GeofenceZone, CorruptData> {
    let entity = read_entity(input)?;
    let ts = read_signed(input)?;
    let inside = match take_array::<1>(input)? {
        [0] => None,
        [inside] => Some(inside == 2),
    };
    let perimeter = match take_array::<1>(input)? {
        [0] => Perimeter::Circle {
            middle: read_place(input)?,
            radius: f64::from_le_bytes(take_array(input)?),
        },
        _ => {
            let polygons =
                |input: &mut &[u8]| read_list(input, 1, |input: &mut &[u8]| read_list(input, 16, read_place));
            Perimeter::Polygons {
                areas: polygons(input)?,
                holes: polygons(input)?,
            }
        }
    };
    Ok(GeofenceZone {
        entity,
        ts,
        perimeter,
        inside,
    })
}

fn write_place(place: &GeoPoint, out: &mut Vec<u8>) {
    out.extend_from_slice(&place.0.to_le_bytes());
    out.extend_from_slice(&place.1.to_le_bytes());
}

fn read_place(input: &mut &[u8]) -> Result<GeoPoint, CorruptData> {
    Ok((
        f64::from_le_bytes(take_array(input)?),
        f64::from_le_bytes(take_array(input)?),
    ))
}

fn write_entity(entity: EntityId, out: &mut Vec<u8>) {
    out.push(entity.entity_type as u8);
    out.extend_from_slice(entity.id.as_bytes());
}

fn read_entity(input: &mut &[u8]) -> Result<EntityId, CorruptData> {
    let [code] = take_array::<1>(input)?;
    let entity_type = EntityType::from_code(code).ok_or(CorruptData("unknown entity type"))?;
    Ok(EntityId::new(entity_type, Uuid::from_bytes(take_array(input)?)))
}

fn write_list<T>(items: &[T], out: &mut Vec<u8>, write: impl Fn(&T, &mut Vec<u8>)) {
    write_varint(items.len() as u64, out);
    for item in items {
        write(item, out);
    }
}

/// Reads as many items as are announced, of `least` bytes or more each: what cannot be there takes no memory.
fn read_list<T>(
    input: &mut &[u8],
    least: usize,
    mut read: impl FnMut(&mut &[u8]) -> Result<T, CorruptData>,
) -> Result<Vec<T>, CorruptData> {
    let count = usize::try_from(read_varint(input)?).map_err(|_| CorruptData("list too long"))?;
    if count > input.len() / least {
        return Err(CorruptData("list cut short"));
    }
    let mut items = Vec::with_capacity(count);
    for _ in 0..count {
        items.push(read(input)?);
    }
    Ok(items)
}

fn write_signed(value: i64, out: &mut Vec<u8>) {
    write_varint(((value << 1) ^ (value >> 63)) as u64, out);
}

fn read_signed(input: &mut &[u8]) -> Result<i64, CorruptData> {
    let value = read_varint(input)?;
    Ok(((value >> 1) as i64) ^ -((value & 1) as i64))
}
