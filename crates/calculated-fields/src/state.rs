//! What one entity has under one field.

use fieldline_model::kv::KvValue;
use fieldline_model::{CalculatedFieldId, EntityId};

use super::aggregation::OpenInterval;
use super::geofencing::GeofenceZone;
use super::rolling::RollingWindow;

/// Most fields that are remembered to have taken part in an aggregation.
const MAX_PREVIOUS: usize = 32;

/// Time of something that has not happened.
pub(super) const NEVER: i64 = -1;

/// A value with its time.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct SingleValue {
    pub(super) ts: i64,
    pub(super) value: KvValue,
    /// Whether it stands in for an absent value.
    pub(super) is_default: bool,
}

/// What is known of an argument.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) enum ArgumentEntry {
    #[default]
    Empty,
    Single(SingleValue),
    Rolling(RollingWindow),
    Zones(Vec<GeofenceZone>),
    /// By related entity, in the order of their ids.
    Related(Vec<(EntityId, Option<SingleValue>)>),
    Intervals(Vec<OpenInterval>),
}

impl ArgumentEntry {
    pub(super) fn is_empty(&self) -> bool {
        match self {
            Self::Empty => true,
            Self::Single(_) => false,
            Self::Rolling(rolling) => rolling.is_empty(),
            Self::Zones(zones) => zones.is_empty(),
            Self::Related(entities) => entities.is_empty(),
            Self::Intervals(intervals) => intervals.is_empty(),
        }
    }
}

/// See the module; made by [`super::CompiledField::new_state`] or [`super::CompiledField::decode`].
#[derive(Debug, Clone, PartialEq)]
pub struct CalculatedFieldState {
    pub(super) entity: EntityId,
    pub(super) slots: Box<[ArgumentEntry]>,
    /// Which arguments have changed since the last evaluation.
    pub(super) changed: Box<[bool]>,
    /// The related entities: targets of a propagation, sources of an aggregation; in the order of their ids.
    pub(super) related: Vec<EntityId>,
    /// Targets that have not been given anything yet.
    pub(super) added: Vec<EntityId>,
    /// Whether values have come since the last result of an aggregation.
    pub(super) pending: bool,
    /// Whether the next evaluation does not wait for the interval to pass.
    pub(super) forced: bool,
    /// Time of the last result of an aggregation, milliseconds.
    pub(super) evaluated_at: i64,
    /// When relations were last looked up, milliseconds.
    pub(super) related_at: i64,
    /// Fields that have taken part in values since the last result.
    pub(super) previous: Vec<CalculatedFieldId>,
    /// Whether it was emptied because it had grown too large.
    pub(super) oversized: bool,
}

impl CalculatedFieldState {
    pub(super) fn new(entity: EntityId, arguments: usize) -> Self {
        Self {
            entity,
            slots: (0..arguments).map(|_| ArgumentEntry::Empty).collect(),
            changed: vec![false; arguments].into(),
            related: Vec::new(),
            added: Vec::new(),
            pending: false,
            forced: true,
            evaluated_at: NEVER,
            related_at: NEVER,
            previous: Vec::new(),
            oversized: false,
        }
    }

    /// The entity.
    pub fn entity(&self) -> EntityId {
        self.entity
    }

    /// The related entities that are known: targets of a propagation, sources of an aggregation.
    pub fn related(&self) -> &[EntityId] {
        &self.related
    }

    /// Whether it was emptied because it had grown too large; such a state takes nothing until it is made anew.
    pub fn is_oversized(&self) -> bool {
        self.oversized
    }

    /// Empties it for having grown too large.
    pub(super) fn give_up(&mut self) {
        *self = Self {
            oversized: true,
            ..Self::new(self.entity, self.slots.len())
        };
    }

    pub(super) fn slot(&self, argument: usize) -> &ArgumentEntry {
        self.slots.get(argument).unwrap_or(&ArgumentEntry::Empty)
    }

    pub(super) fn mark(&mut self, argument: usize) {
        if let Some(changed) = self.changed.get_mut(argument) {
            *changed = true;
        }
    }

    pub(super) fn remember(&mut self, previous: &[CalculatedFieldId]) {
        for id in previous {
            if self.previous.len() < MAX_PREVIOUS && !self.previous.contains(id) {
                self.previous.push(*id);
            }
        }
    }

    /// The newest time of the arguments; defaults count only where there is nothing else.
    pub(super) fn latest_ts(&self, propagation: bool) -> Option<i64> {
        let is_default =
            |slot: &ArgumentEntry| matches!(slot, ArgumentEntry::Single(single) if single.is_default);
        let only_defaults = !propagation && self.slots.iter().all(is_default);
        self.slots
            .iter()
            .filter_map(|slot| match slot {
                ArgumentEntry::Single(single) => (only_defaults || !single.is_default).then_some(single.ts),
                ArgumentEntry::Rolling(rolling) => rolling.latest_ts(),
                ArgumentEntry::Zones(zones) => zones.iter().map(|zone| zone.ts).max(),
                ArgumentEntry::Related(entities) => {
                    let singles = entities.iter().filter_map(|(_, single)| single.as_ref());
                    singles
                        .filter(|single| !single.is_default)
                        .map(|single| single.ts)
                        .max()
                }
                ArgumentEntry::Empty | ArgumentEntry::Intervals(_) => None,
            })
            .max()
    }
}
