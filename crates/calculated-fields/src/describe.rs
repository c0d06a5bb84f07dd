//! Arguments as people see them in debug events.

use serde_json::{Map, Value as Json, json};

use super::field::CompiledField;
use super::input::FieldInputKind;
use super::state::{ArgumentEntry, CalculatedFieldState, SingleValue};

/// Points of a window that are shown.
const MAX_POINTS: usize = 100;

impl CompiledField {
    /// The arguments by their names: `{"ts", "value"}` of a single value, `{"timeWindow", "values"}` of a window; of
    /// several entities an object by their ids.
    pub fn arguments_json(&self, state: &CalculatedFieldState) -> Json {
        let mut arguments = Map::new();
        for (need, slot) in self.inputs().iter().zip(&state.slots) {
            let shown = match slot {
                ArgumentEntry::Empty => Json::Null,
                ArgumentEntry::Single(value) => single(value),
                ArgumentEntry::Rolling(rolling) => {
                    let points: Vec<Json> = rolling
                        .points()
                        .take(MAX_POINTS)
                        .map(|(ts, value)| json!({"ts": ts, "value": value}))
                        .collect();
                    let window = match need.kind {
                        FieldInputKind::Rolling { window_ms, .. } if window_ms < i64::MAX => Some(window_ms),
                        _ => None,
                    };
                    json!({"timeWindow": window, "values": points})
                }
                ArgumentEntry::Zones(zones) => zones
                    .iter()
                    .map(|zone| {
                        (
                            zone.entity.id.to_string(),
                            json!({"ts": zone.ts, "inside": zone.inside}),
                        )
                    })
                    .collect::<Map<_, _>>()
                    .into(),
                ArgumentEntry::Related(entities) => entities
                    .iter()
                    .map(|(entity, value)| (entity.id.to_string(), value.as_ref().map_or(Json::Null, single)))
                    .collect::<Map<_, _>>()
                    .into(),
                ArgumentEntry::Intervals(intervals) => intervals
                    .iter()
                    .map(|interval| json!({"startTs": interval.start, "endTs": interval.end}))
                    .collect::<Vec<_>>()
                    .into(),
            };
            arguments.insert(need.name.to_string(), shown);
        }
        arguments.into()
    }
}

fn single(single: &SingleValue) -> Json {
    json!({"ts": single.ts, "value": single.value.to_json()})
}
