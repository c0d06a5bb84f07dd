//! Values for related entities.

use std::sync::Arc;

use fieldline_model::EntityId;
use fieldline_model::kv::KvValue;

use super::input::FieldInput;
use super::outcome::OutputRow;
use super::state::{ArgumentEntry, CalculatedFieldState};

/// Who gets the result of this evaluation: those who have not been given anything yet, or else all. The flag says that
/// they need all values.
pub(super) fn targets(state: &mut CalculatedFieldState) -> (Vec<EntityId>, bool) {
    let added = std::mem::take(&mut state.added);
    if added.is_empty() {
        (state.related.clone(), false)
    } else {
        (added, true)
    }
}

/// The arguments under their names: all of them, or those that have changed.
pub(super) fn copied(state: &CalculatedFieldState, needs: &[FieldInput], all: bool) -> OutputRow {
    let all = all || !state.changed.contains(&true);
    let values: Vec<(Arc<str>, KvValue)> = needs
        .iter()
        .zip(&state.slots)
        .zip(&state.changed)
        .filter(|(_, changed)| all || **changed)
        .filter_map(|((need, slot), _)| match slot {
            ArgumentEntry::Single(single) => Some((need.name.clone(), single.value.clone())),
            _ => None,
        })
        .collect();
    OutputRow { ts: None, values }
}
