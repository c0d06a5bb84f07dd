//! Whether an entity is inside of zones.

use std::sync::Arc;

use fieldline_model::EntityId;
use fieldline_model::entity::SearchDirection;
use fieldline_model::entity::calculated_field::{
    ArgumentDefinition, ArgumentType, FieldConfigError, GeofencingFieldConfiguration, ReferencedKey,
    ReportStrategy, ZoneGroup,
};
use fieldline_model::kv::KvValue;
use fieldline_model::timeseries::AttributeScope;

use super::input::{FieldInput, FieldInputRole, FieldInputSource};
use super::outcome::{FieldEvaluationError, FieldOutcome, OutputRow, RelationChange};
use super::perimeter::{GeoPoint, Perimeter};
use super::state::{ArgumentEntry, CalculatedFieldState};

/// Numbers of the arguments of the coordinates; the groups of zones follow in the order of their names.
const LATITUDE: usize = 0;
const LONGITUDE: usize = 1;
const FIRST_GROUP: usize = 2;

/// A zone and whether the entity was in it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct GeofenceZone {
    pub(super) entity: EntityId,
    /// When its perimeter was written, milliseconds.
    pub(super) ts: i64,
    pub(super) perimeter: Perimeter,
    /// `None` before the first look.
    pub(super) inside: Option<bool>,
}

impl GeofenceZone {
    pub(super) fn new(entity: EntityId, ts: i64, perimeter: Perimeter) -> Self {
        Self {
            entity,
            ts,
            perimeter,
            inside: None,
        }
    }
}

/// What is done with a group of zones.
#[derive(Debug)]
struct GeofenceGroup {
    event_key: Arc<str>,
    status_key: Arc<str>,
    report: ReportStrategy,
    /// Type and direction of the relations with zones the entity is in.
    relation: Option<(Arc<str>, SearchDirection)>,
}

#[derive(Debug)]
pub(super) struct GeofencingPlan {
    groups: Vec<GeofenceGroup>,
    /// How often zones that are found by relations are looked up, milliseconds.
    pub(super) refresh_ms: Option<i64>,
}

impl GeofencingPlan {
    pub(super) fn new(
        configuration: &GeofencingFieldConfiguration,
        min_refresh_sec: u64,
    ) -> Result<(Self, Vec<FieldInput>), FieldConfigError> {
        let coordinates = &configuration.entity_coordinates;
        let mut needs = vec![
            coordinate("latitude", &coordinates.latitude_key_name)?,
            coordinate("longitude", &coordinates.longitude_key_name)?,
        ];
        let mut groups = Vec::new();
        for (name, group) in &configuration.zone_groups {
            needs.push(zones(name, group)?);
            groups.push(GeofenceGroup {
                event_key: format!("{name}Event").into(),
                status_key: format!("{name}Status").into(),
                report: group.report_strategy,
                relation: group
                    .create_relations_with_matched_zones
                    .then(|| {
                        let kind = group.relation_type.as_deref()?;
                        Some((Arc::from(kind), group.direction?))
                    })
                    .flatten(),
            });
        }
        let by_relations = needs
            .iter()
            .any(|need| matches!(need.source, FieldInputSource::Path(_)));
        let refresh_ms = configuration
            .scheduled_update_interval
            .filter(|_| configuration.scheduled_update_enabled && by_relations)
            .map(|seconds| millis(seconds.max(min_refresh_sec)));
        Ok((Self { groups, refresh_ms }, needs))
    }

    /// Looks where the entity is; returns the results.
    pub(super) fn evaluate(
        &self,
        state: &mut CalculatedFieldState,
        needs: &[FieldInput],
        outcome: &mut FieldOutcome,
    ) -> Result<OutputRow, FieldEvaluationError> {
        let place = (
            degrees(state, needs, LATITUDE)?,
            degrees(state, needs, LONGITUDE)?,
        );
        let entity = state.entity;
        let mut values = Vec::new();
        for (group, slot) in self.groups.iter().zip(state.slots.iter_mut().skip(FIRST_GROUP)) {
            let ArgumentEntry::Zones(zones) = slot else {
                continue;
            };
            let (was_inside, is_inside) = group.look(zones, place, entity, outcome);
            group.report(was_inside, is_inside, &mut values);
        }
        Ok(OutputRow { ts: None, values })
    }
}

impl GeofenceGroup {
    /// Whether the entity was and is in a zone of the group. Zones that are looked at for the first time count as if
    /// nothing had changed.
    fn look(
        &self,
        zones: &mut [GeofenceZone],
        place: GeoPoint,
        entity: EntityId,
        outcome: &mut FieldOutcome,
    ) -> (bool, bool) {
        let (mut was_inside, mut is_inside) = (false, false);
        for zone in zones {
            let inside = zone.perimeter.contains(place);
            let before = zone.inside.replace(inside);
            was_inside |= before.unwrap_or(inside);
            is_inside |= inside;
            if before != Some(inside)
                && let Some((kind, direction)) = &self.relation
            {
                let (from, to) = match direction {
                    SearchDirection::From => (entity, zone.entity),
                    SearchDirection::To => (zone.entity, entity),
                };
                outcome.relations.push(RelationChange {
                    from,
                    to,
                    relation_type: kind.clone(),
                    exists: inside,
                });
            }
        }
        (was_inside, is_inside)
    }

    fn report(&self, was_inside: bool, is_inside: bool, values: &mut Vec<(Arc<str>, KvValue)>) {
        let event = match (was_inside, is_inside) {
            (false, true) => Some("ENTERED"),
            (true, false) => Some("LEFT"),
            _ => None,
        };
        if let Some(event) = event.filter(|_| self.report != ReportStrategy::ReportPresenceStatusOnly) {
            values.push((self.event_key.clone(), KvValue::Text(event.into())));
        }
        if self.report != ReportStrategy::ReportTransitionEventsOnly {
            let status = if is_inside { "INSIDE" } else { "OUTSIDE" };
            values.push((self.status_key.clone(), KvValue::Text(status.into())));
        }
    }
}

/// Whole milliseconds of seconds.
pub(super) fn millis(seconds: u64) -> i64 {
    i64::try_from(seconds.saturating_mul(1_000)).unwrap_or(i64::MAX)
}

fn coordinate(name: &str, key: &str) -> Result<FieldInput, FieldConfigError> {
    let argument = ArgumentDefinition {
        ref_entity_key: Some(ReferencedKey {
            key: key.to_owned(),
            kind: ArgumentType::TsLatest,
            scope: None,
        }),
        ..ArgumentDefinition::default()
    };
    FieldInput::of(name, &argument, FieldInputRole::Value, 0)
}

fn zones(name: &str, group: &ZoneGroup) -> Result<FieldInput, FieldConfigError> {
    let argument = ArgumentDefinition {
        ref_entity_id: group.ref_entity_id,
        ref_dynamic_source_configuration: group.ref_dynamic_source_configuration.clone(),
        ref_entity_key: Some(ReferencedKey {
            key: group.perimeter_key_name.clone(),
            kind: ArgumentType::Attribute,
            scope: Some(AttributeScope::Server),
        }),
        ..ArgumentDefinition::default()
    };
    FieldInput::of(name, &argument, FieldInputRole::Zones, 0)
}

fn degrees(
    state: &CalculatedFieldState,
    needs: &[FieldInput],
    argument: usize,
) -> Result<f64, FieldEvaluationError> {
    let number = match state.slot(argument) {
        ArgumentEntry::Single(single) => match single.value {
            KvValue::Bool(_) => None,
            ref value => super::number::number(value.as_ref()),
        },
        _ => None,
    };
    number.filter(|number| number.is_finite()).ok_or_else(|| {
        let name = needs.get(argument).map(|need| need.name.clone());
        FieldEvaluationError::NotANumber(name.unwrap_or_default())
    })
}
