//! Taking new values.

use fieldline_model::EntityId;
use fieldline_model::kv::ValueRef;

use super::field::Field;
use super::geofencing::Zone;
use super::need::{Need, NeedKind, Role};
use super::number::rolling_number;
use super::outcome::EvalError;
use super::perimeter::Perimeter;
use super::rolling::Rolling;
use super::state::{Single, Slot, State};

/// News for a state. Arguments are numbered as in [`Field::needs`].
#[derive(Debug, Clone, PartialEq)]
pub enum Update<'a> {
    /// A value: of a series or attribute of `entity`.
    Value {
        /// Number of the argument.
        argument: usize,
        /// Whose value it is.
        entity: EntityId,
        /// Time of the point, or of the last write of the attribute, milliseconds.
        ts: i64,
        /// The value.
        value: ValueRef<'a>,
    },
    /// There is no value, or no longer.
    Missing {
        /// Number of the argument.
        argument: usize,
        /// Whose value it would be.
        entity: EntityId,
    },
    /// All points of a rolling argument, in any order.
    Points {
        /// Number of the argument.
        argument: usize,
        /// Times, milliseconds, and numbers; see [`super::rolling_number`].
        points: &'a [(i64, f64)],
    },
    /// All zones of a group of zones; others are dropped. Their perimeters come as values.
    Zones {
        /// Number of the argument.
        argument: usize,
        /// The zones.
        entities: &'a [EntityId],
    },
    /// All entities of [`Field::relation`]; others are dropped.
    Related(&'a [EntityId]),
    /// An entity of [`Field::relation`] more. Its values come as values.
    RelatedAdded(EntityId),
    /// An entity of [`Field::relation`] less.
    RelatedRemoved(EntityId),
}

impl Field {
    /// Takes one update; returns whether it is a reason to evaluate.
    pub(super) fn take(&self, state: &mut State, update: &Update<'_>, now: i64) -> Result<bool, EvalError> {
        match *update {
            Update::Value {
                argument,
                entity,
                ts,
                value,
            } => {
                let need = self.need(argument)?;
                self.take_value(state, argument, need, entity, (ts, value), now)
            }
            Update::Missing { argument, entity } => {
                let need = self.need(argument)?;
                Ok(take_missing(state, argument, need, entity, now))
            }
            Update::Points { argument, points } => {
                let NeedKind::Rolling { limit, window_ms } = self.need(argument)?.kind else {
                    return Err(EvalError::WrongArgument(argument));
                };
                let mut rolling = Rolling::default();
                for (ts, value) in points {
                    rolling.insert(*ts, *value, limit);
                }
                rolling.expire(now, window_ms);
                put(state, argument, Slot::Rolling(rolling));
                Ok(true)
            }
            Update::Zones { argument, entities } => {
                if self.need(argument)?.role != Role::Zones {
                    return Err(EvalError::WrongArgument(argument));
                }
                state.related_at = now;
                Ok(keep_zones(state, argument, entities))
            }
            Update::Related(entities) => self.take_related(state, entities, now),
            Update::RelatedAdded(entity) => self.add_related(state, entity),
            Update::RelatedRemoved(entity) => Ok(remove_related(state, entity)),
        }
    }

    fn need(&self, argument: usize) -> Result<&Need, EvalError> {
        self.needs()
            .get(argument)
            .ok_or(EvalError::WrongArgument(argument))
    }

    fn take_value(
        &self,
        state: &mut State,
        argument: usize,
        need: &Need,
        entity: EntityId,
        (ts, value): (i64, ValueRef<'_>),
        now: i64,
    ) -> Result<bool, EvalError> {
        match (need.role, need.kind) {
            (Role::Points, NeedKind::Rolling { limit, window_ms }) => {
                let mut rolling = match take_slot(state, argument) {
                    Slot::Rolling(rolling) => rolling,
                    _ => Rolling::default(),
                };
                rolling.insert(ts, rolling_number(value), limit);
                rolling.expire(now, window_ms);
                put(state, argument, Slot::Rolling(rolling));
                Ok(true)
            }
            (Role::Zones, _) => take_zone(state, argument, entity, ts, value),
            (Role::Series, _) => self.take_point(state, argument, need, ts, now),
            (Role::Related, _) => {
                self.check_value_size(need, value)?;
                // A value of something that is not related, or no longer, is none of ours.
                if state.related.binary_search(&entity).is_err() {
                    return Ok(false);
                }
                Ok(take_related_value(state, argument, need, entity, ts, value))
            }
            _ => {
                self.check_value_size(need, value)?;
                if is_late(need, state.slot(argument), ts) {
                    return Ok(false);
                }
                put(state, argument, Slot::Single(single(ts, value)));
                Ok(true)
            }
        }
    }

    fn check_value_size(&self, need: &Need, value: ValueRef<'_>) -> Result<(), EvalError> {
        let bytes = match value {
            ValueRef::Text(text) | ValueRef::Json(text) => text.len() as u64,
            _ => 0,
        };
        let most = self.limits().max_value_bytes;
        if most > 0 && bytes > most {
            return Err(EvalError::ValueTooLarge(need.name.clone()));
        }
        Ok(())
    }

    fn take_related(&self, state: &mut State, entities: &[EntityId], now: i64) -> Result<bool, EvalError> {
        let most = self.limits().max_related_entities;
        state.related_at = now;
        let mut wanted = entities.to_vec();
        wanted.sort_unstable();
        wanted.dedup();
        let mut changed = false;
        for gone in state.related.clone() {
            if wanted.binary_search(&gone).is_err() {
                changed |= remove_related(state, gone);
            }
        }
        let too_many = most > 0 && wanted.len() as u64 > most;
        if too_many {
            wanted.truncate(usize::try_from(most).unwrap_or(usize::MAX));
        }
        for entity in wanted {
            changed |= self.add_related(state, entity)?;
        }
        if too_many {
            return Err(EvalError::TooManyEntities(most));
        }
        Ok(changed)
    }

    fn add_related(&self, state: &mut State, entity: EntityId) -> Result<bool, EvalError> {
        let Err(at) = state.related.binary_search(&entity) else {
            return Ok(false);
        };
        let most = self.limits().max_related_entities;
        if most > 0 && state.related.len() as u64 >= most {
            return Err(EvalError::TooManyEntities(most));
        }
        state.related.insert(at, entity);
        state.added.push(entity);
        state.forced = true;
        state.pending = true;
        for (need, slot) in self.needs().iter().zip(&mut state.slots) {
            if need.role == Role::Related {
                related_entry(slot, entity);
            }
        }
        Ok(true)
    }
}

fn single(ts: i64, value: ValueRef<'_>) -> Single {
    Single {
        ts,
        value: value.to_value(),
        is_default: false,
    }
}

/// Points may come late; attributes have no order but that of their writes.
fn is_late(need: &Need, slot: &Slot, ts: i64) -> bool {
    need.kind == NeedKind::Latest
        && matches!(slot, Slot::Single(stored) if !stored.is_default && ts < stored.ts)
}

fn default_of(need: &Need, now: i64) -> Option<Single> {
    Some(Single {
        ts: now,
        value: need.default.clone()?,
        is_default: true,
    })
}

fn take_missing(state: &mut State, argument: usize, need: &Need, entity: EntityId, now: i64) -> bool {
    match need.role {
        Role::Value => {
            let slot = default_of(need, now).map_or(Slot::Empty, Slot::Single);
            put(state, argument, slot);
        }
        Role::Points => put(state, argument, Slot::Rolling(Rolling::default())),
        Role::Zones => {
            if let Some(Slot::Zones(zones)) = state.slots.get_mut(argument) {
                zones.retain(|zone| zone.entity != entity);
            }
            state.mark(argument);
        }
        Role::Series => return false,
        Role::Related => {
            if state.related.binary_search(&entity).is_err() {
                return false;
            }
            if let Some(slot) = state.slots.get_mut(argument)
                && let Some(entry) = related_entry(slot, entity)
            {
                *entry = default_of(need, now);
            }
            state.pending = true;
            state.mark(argument);
        }
    }
    true
}

fn take_related_value(
    state: &mut State,
    argument: usize,
    need: &Need,
    entity: EntityId,
    ts: i64,
    value: ValueRef<'_>,
) -> bool {
    let slot = state.slots.get_mut(argument);
    let Some(entry) = slot.and_then(|slot| related_entry(slot, entity)) else {
        return false;
    };
    let late = entry
        .as_ref()
        .is_some_and(|stored| need.kind == NeedKind::Latest && !stored.is_default && ts < stored.ts);
    if late {
        return false;
    }
    *entry = Some(single(ts, value));
    state.pending = true;
    state.mark(argument);
    true
}

/// The place of an entity's value, made where there is none.
fn related_entry(slot: &mut Slot, entity: EntityId) -> Option<&mut Option<Single>> {
    if !matches!(slot, Slot::Related(_)) {
        *slot = Slot::Related(Vec::new());
    }
    let Slot::Related(entities) = slot else {
        return None;
    };
    let at = match entities.binary_search_by_key(&entity, |(other, _)| *other) {
        Ok(at) => at,
        Err(at) => {
            entities.insert(at, (entity, None));
            at
        }
    };
    entities.get_mut(at).map(|(_, single)| single)
}

fn remove_related(state: &mut State, entity: EntityId) -> bool {
    let Ok(at) = state.related.binary_search(&entity) else {
        return false;
    };
    state.related.remove(at);
    state.added.retain(|other| *other != entity);
    for slot in &mut state.slots {
        if let Slot::Related(entities) = slot {
            entities.retain(|(other, _)| *other != entity);
        }
    }
    state.forced = true;
    state.pending = true;
    true
}

/// A perimeter that stays the same leaves what is known about the zone.
fn take_zone(
    state: &mut State,
    argument: usize,
    entity: EntityId,
    ts: i64,
    value: ValueRef<'_>,
) -> Result<bool, EvalError> {
    let (ValueRef::Text(text) | ValueRef::Json(text)) = value else {
        return Err(EvalError::Perimeter {
            zone: entity,
            problem: "the attribute is no JSON".to_owned(),
        });
    };
    let perimeter = Perimeter::parse(text).map_err(|problem| EvalError::Perimeter {
        zone: entity,
        problem,
    })?;
    let mut zones = match take_slot(state, argument) {
        Slot::Zones(zones) => zones,
        _ => Vec::new(),
    };
    let changed = match zones.iter_mut().find(|zone| zone.entity == entity) {
        Some(zone) if zone.perimeter == perimeter => false,
        Some(zone) => {
            *zone = Zone::new(entity, ts, perimeter);
            true
        }
        None => {
            zones.push(Zone::new(entity, ts, perimeter));
            true
        }
    };
    if let Some(slot) = state.slots.get_mut(argument) {
        *slot = Slot::Zones(zones);
    }
    if changed {
        state.mark(argument);
    }
    Ok(changed)
}

fn keep_zones(state: &mut State, argument: usize, entities: &[EntityId]) -> bool {
    let Some(Slot::Zones(zones)) = state.slots.get_mut(argument) else {
        return false;
    };
    let before = zones.len();
    zones.retain(|zone| entities.contains(&zone.entity));
    let changed = zones.len() < before;
    if changed {
        state.mark(argument);
    }
    changed
}

fn put(state: &mut State, argument: usize, slot: Slot) {
    if let Some(place) = state.slots.get_mut(argument) {
        *place = slot;
    }
    state.mark(argument);
}

pub(super) fn take_slot(state: &mut State, argument: usize) -> Slot {
    state
        .slots
        .get_mut(argument)
        .map(std::mem::take)
        .unwrap_or_default()
}
