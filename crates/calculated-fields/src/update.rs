//! Taking new values.

use fieldline_model::EntityId;
use fieldline_model::kv::KvValueRef;

use super::field::CompiledField;
use super::geofencing::GeofenceZone;
use super::input::{FieldInput, FieldInputKind, FieldInputRole};
use super::number::rolling_number;
use super::outcome::FieldEvaluationError;
use super::perimeter::Perimeter;
use super::rolling::RollingWindow;
use super::state::{ArgumentEntry, CalculatedFieldState, SingleValue};

/// News for a state. Arguments are numbered as in [`CompiledField::inputs`].
#[derive(Debug, Clone, PartialEq)]
pub enum ArgumentUpdate<'a> {
    /// A value: of a series or attribute of `entity`.
    Value {
        /// Number of the argument.
        argument: usize,
        /// Whose value it is.
        entity: EntityId,
        /// Time of the point, or of the last write of the attribute, milliseconds.
        ts: i64,
        /// The value.
        value: KvValueRef<'a>,
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
    /// All entities of [`CompiledField::relation`]; others are dropped.
    Related(&'a [EntityId]),
    /// An entity of [`CompiledField::relation`] more. Its values come as values.
    RelatedAdded(EntityId),
    /// An entity of [`CompiledField::relation`] less.
    RelatedRemoved(EntityId),
}

impl CompiledField {
    /// Takes one update; returns whether it is a reason to evaluate.
    pub(super) fn take(
        &self,
        state: &mut CalculatedFieldState,
        update: &ArgumentUpdate<'_>,
        now: i64,
    ) -> Result<bool, FieldEvaluationError> {
        match *update {
            ArgumentUpdate::Value {
                argument,
                entity,
                ts,
                value,
            } => {
                let need = self.need(argument)?;
                self.take_value(state, argument, need, entity, (ts, value), now)
            }
            ArgumentUpdate::Missing { argument, entity } => {
                let need = self.need(argument)?;
                Ok(take_missing(state, argument, need, entity, now))
            }
            ArgumentUpdate::Points { argument, points } => {
                let FieldInputKind::Rolling { limit, window_ms } = self.need(argument)?.kind else {
                    return Err(FieldEvaluationError::WrongArgument(argument));
                };
                let mut rolling = RollingWindow::default();
                for (ts, value) in points {
                    rolling.insert(*ts, *value, limit);
                }
                rolling.expire(now, window_ms);
                put(state, argument, ArgumentEntry::Rolling(rolling));
                Ok(true)
            }
            ArgumentUpdate::Zones { argument, entities } => {
                if self.need(argument)?.role != FieldInputRole::Zones {
                    return Err(FieldEvaluationError::WrongArgument(argument));
                }
                state.related_at = now;
                Ok(keep_zones(state, argument, entities))
            }
            ArgumentUpdate::Related(entities) => self.take_related(state, entities, now),
            ArgumentUpdate::RelatedAdded(entity) => self.add_related(state, entity),
            ArgumentUpdate::RelatedRemoved(entity) => Ok(remove_related(state, entity)),
        }
    }

    fn need(&self, argument: usize) -> Result<&FieldInput, FieldEvaluationError> {
        self.inputs()
            .get(argument)
            .ok_or(FieldEvaluationError::WrongArgument(argument))
    }

    fn take_value(
        &self,
        state: &mut CalculatedFieldState,
        argument: usize,
        need: &FieldInput,
        entity: EntityId,
        (ts, value): (i64, KvValueRef<'_>),
        now: i64,
    ) -> Result<bool, FieldEvaluationError> {
        match (need.role, need.kind) {
            (FieldInputRole::Points, FieldInputKind::Rolling { limit, window_ms }) => {
                let mut rolling = match take_slot(state, argument) {
                    ArgumentEntry::Rolling(rolling) => rolling,
                    _ => RollingWindow::default(),
                };
                rolling.insert(ts, rolling_number(value), limit);
                rolling.expire(now, window_ms);
                put(state, argument, ArgumentEntry::Rolling(rolling));
                Ok(true)
            }
            (FieldInputRole::Zones, _) => take_zone(state, argument, entity, ts, value),
            (FieldInputRole::Series, _) => self.take_point(state, argument, need, ts, now),
            (FieldInputRole::Related, _) => {
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
                put(state, argument, ArgumentEntry::Single(single(ts, value)));
                Ok(true)
            }
        }
    }

    fn check_value_size(&self, need: &FieldInput, value: KvValueRef<'_>) -> Result<(), FieldEvaluationError> {
        let bytes = match value {
            KvValueRef::Text(text) | KvValueRef::Json(text) => text.len() as u64,
            _ => 0,
        };
        let most = self.limits().max_value_bytes;
        if most > 0 && bytes > most {
            return Err(FieldEvaluationError::ValueTooLarge(need.name.clone()));
        }
        Ok(())
    }

    fn take_related(
        &self,
        state: &mut CalculatedFieldState,
        entities: &[EntityId],
        now: i64,
    ) -> Result<bool, FieldEvaluationError> {
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
            return Err(FieldEvaluationError::TooManyEntities(most));
        }
        Ok(changed)
    }

    fn add_related(
        &self,
        state: &mut CalculatedFieldState,
        entity: EntityId,
    ) -> Result<bool, FieldEvaluationError> {
        let Err(at) = state.related.binary_search(&entity) else {
            return Ok(false);
        };
        let most = self.limits().max_related_entities;
        if most > 0 && state.related.len() as u64 >= most {
            return Err(FieldEvaluationError::TooManyEntities(most));
        }
        state.related.insert(at, entity);
        state.added.push(entity);
        state.forced = true;
        state.pending = true;
        for (need, slot) in self.inputs().iter().zip(&mut state.slots) {
            if need.role == FieldInputRole::Related {
                related_entry(slot, entity);
            }
        }
        Ok(true)
    }
}

fn single(ts: i64, value: KvValueRef<'_>) -> SingleValue {
    SingleValue {
        ts,
        value: value.to_value(),
        is_default: false,
    }
}

/// Points may come late; attributes have no order but that of their writes.
fn is_late(need: &FieldInput, slot: &ArgumentEntry, ts: i64) -> bool {
    need.kind == FieldInputKind::Latest
        && matches!(slot, ArgumentEntry::Single(stored) if !stored.is_default && ts < stored.ts)
}

fn default_of(need: &FieldInput, now: i64) -> Option<SingleValue> {
    Some(SingleValue {
        ts: now,
        value: need.default.clone()?,
        is_default: true,
    })
}

fn take_missing(
    state: &mut CalculatedFieldState,
    argument: usize,
    need: &FieldInput,
    entity: EntityId,
    now: i64,
) -> bool {
    match need.role {
        FieldInputRole::Value => {
            let slot = default_of(need, now).map_or(ArgumentEntry::Empty, ArgumentEntry::Single);
            put(state, argument, slot);
        }
        FieldInputRole::Points => put(state, argument, ArgumentEntry::Rolling(RollingWindow::default())),
        FieldInputRole::Zones => {
            if let Some(ArgumentEntry::Zones(zones)) = state.slots.get_mut(argument) {
                zones.retain(|zone| zone.entity != entity);
            }
            state.mark(argument);
        }
        FieldInputRole::Series => return false,
        FieldInputRole::Related => {
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
    state: &mut CalculatedFieldState,
    argument: usize,
    need: &FieldInput,
    entity: EntityId,
    ts: i64,
    value: KvValueRef<'_>,
) -> bool {
    let slot = state.slots.get_mut(argument);
    let Some(entry) = slot.and_then(|slot| related_entry(slot, entity)) else {
        return false;
    };
    let late = entry
        .as_ref()
        .is_some_and(|stored| need.kind == FieldInputKind::Latest && !stored.is_default && ts < stored.ts);
    if late {
        return false;
    }
    *entry = Some(single(ts, value));
    state.pending = true;
    state.mark(argument);
    true
}

/// The place of an entity's value, made where there is none.
fn related_entry(slot: &mut ArgumentEntry, entity: EntityId) -> Option<&mut Option<SingleValue>> {
    if !matches!(slot, ArgumentEntry::Related(_)) {
        *slot = ArgumentEntry::Related(Vec::new());
    }
    let ArgumentEntry::Related(entities) = slot else {
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

fn remove_related(state: &mut CalculatedFieldState, entity: EntityId) -> bool {
    let Ok(at) = state.related.binary_search(&entity) else {
        return false;
    };
    state.related.remove(at);
    state.added.retain(|other| *other != entity);
    for slot in &mut state.slots {
        if let ArgumentEntry::Related(entities) = slot {
            entities.retain(|(other, _)| *other != entity);
        }
    }
    state.forced = true;
    state.pending = true;
    true
}

/// A perimeter that stays the same leaves what is known about the zone.
fn take_zone(
    state: &mut CalculatedFieldState,
    argument: usize,
    entity: EntityId,
    ts: i64,
    value: KvValueRef<'_>,
) -> Result<bool, FieldEvaluationError> {
    let (KvValueRef::Text(text) | KvValueRef::Json(text)) = value else {
        return Err(FieldEvaluationError::Perimeter {
            zone: entity,
            problem: "the attribute is no JSON".to_owned(),
        });
    };
    let perimeter = Perimeter::parse(text).map_err(|problem| FieldEvaluationError::Perimeter {
        zone: entity,
        problem,
    })?;
    let mut zones = match take_slot(state, argument) {
        ArgumentEntry::Zones(zones) => zones,
        _ => Vec::new(),
    };
    let changed = match zones.iter_mut().find(|zone| zone.entity == entity) {
        Some(zone) if zone.perimeter == perimeter => false,
        Some(zone) => {
            *zone = GeofenceZone::new(entity, ts, perimeter);
            true
        }
        None => {
            zones.push(GeofenceZone::new(entity, ts, perimeter));
            true
        }
    };
    if let Some(slot) = state.slots.get_mut(argument) {
        *slot = ArgumentEntry::Zones(zones);
    }
    if changed {
        state.mark(argument);
    }
    Ok(changed)
}

fn keep_zones(state: &mut CalculatedFieldState, argument: usize, entities: &[EntityId]) -> bool {
    let Some(ArgumentEntry::Zones(zones)) = state.slots.get_mut(argument) else {
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

fn put(state: &mut CalculatedFieldState, argument: usize, slot: ArgumentEntry) {
    if let Some(place) = state.slots.get_mut(argument) {
        *place = slot;
    }
    state.mark(argument);
}

pub(super) fn take_slot(state: &mut CalculatedFieldState, argument: usize) -> ArgumentEntry {
    state
        .slots
        .get_mut(argument)
        .map(std::mem::take)
        .unwrap_or_default()
}
