//! One calculated field in force.

use std::sync::Arc;

use fieldline_alarm_rules::{AlarmInput, AlarmInputKind, AlarmInputSource, AlarmRuleSet};
use fieldline_calculated_fields::{
    CompiledField, FieldInput, FieldInputKind, FieldInputRole, FieldInputSource,
};
use fieldline_model::entity::calculated_field::{CalculatedFieldLimits, RelationLevel};
use fieldline_model::entity::{CalculatedField, CalculatedFieldType, DebugSettings};
use fieldline_model::timeseries::AttributeScope;
use fieldline_model::{CalculatedFieldId, EntityId};
use fieldline_script::{Script, ScriptLang};

use super::event::{FieldEvent, FieldEventKind};

/// The entity whose value a field reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DependencySource {
    /// The entity that the field is evaluated for.
    Own,
    /// This entity.
    Entity(EntityId),
    /// The customer or tenant that owns the entity.
    Owner,
    /// The entities at the end of a path of relations.
    Path(Arc<[RelationLevel]>),
    /// The related entities whose values the field aggregates.
    Related,
}

/// A value that a field reads. Its position in the list is the number of the argument.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldDependency {
    /// The entity that has the value.
    pub source: DependencySource,
    /// Scope of an attribute; `None` for a series.
    pub scope: Option<AttributeScope>,
    /// Name of the series or attribute.
    pub key: Box<str>,
}

impl FieldDependency {
    /// Whether it reads the series, or the attribute of a scope, with that name.
    pub fn takes(&self, scope: Option<AttributeScope>, key: &str) -> bool {
        self.scope == scope && *self.key == *key
    }
}

/// The logic of a field.
#[derive(Debug)]
pub enum FieldLogic {
    /// Computes values.
    Values(Arc<CompiledField>),
    /// Raises and clears alarms, with the scripts of its conditions.
    Alarm(Arc<AlarmRuleSet>, Arc<[Script]>),
    /// Does not compile; with the reason.
    Broken(Box<str>),
}

/// A calculated field in force.
#[derive(Debug)]
pub struct RegisteredField {
    /// Its id.
    pub id: CalculatedFieldId,
    /// The entity, or the profile of the entities, that has the field.
    pub entity: EntityId,
    /// Its name.
    pub name: Box<str>,
    /// The debug events that are stored.
    pub debug: DebugSettings,
    /// Its logic.
    pub kind: FieldLogic,
    /// The values it reads.
    pub dependencies: Box<[FieldDependency]>,
}

impl RegisteredField {
    /// Compiles a field; `None` if it belongs to no entity.
    pub fn new(field: &CalculatedField, limits: &CalculatedFieldLimits) -> Option<Self> {
        let entity = field.entity_id?;
        let (kind, watches) = match compile(field, limits) {
            Ok(compiled) => compiled,
            Err(problem) => (FieldLogic::Broken(problem.into()), Vec::new()),
        };
        Some(Self {
            id: field.id,
            entity,
            name: field.name.as_str().into(),
            debug: field.debug_settings.unwrap_or_default(),
            kind,
            dependencies: watches.into(),
        })
    }

    /// The reason why it cannot be used, if it cannot.
    pub fn problem(&self) -> Option<&str> {
        match &self.kind {
            FieldLogic::Broken(problem) => Some(problem),
            _ => None,
        }
    }

    /// Whether an event of the entity itself, or of an entity of the profile, concerns the field.
    pub fn concerns_own(&self, event: &FieldEvent) -> bool {
        let own = |scope, key: &str| {
            self.dependencies
                .iter()
                .any(|watch| watch.source == DependencySource::Own && watch.takes(scope, key))
        };
        match &event.change {
            FieldEventKind::Values { scope, values } => values.iter().any(|(_, key, _)| own(*scope, key)),
            FieldEventKind::Removed { scope, keys } => keys.iter().any(|key| own(*scope, key)),
            FieldEventKind::Acknowledged(_) | FieldEventKind::Cleared(_) | FieldEventKind::Deleted(_) => {
                matches!(self.kind, FieldLogic::Alarm(..))
            }
            FieldEventKind::Relations => {
                matches!(&self.kind, FieldLogic::Values(field) if field.follows_relations())
            }
            FieldEventKind::Owner => self
                .dependencies
                .iter()
                .any(|watch| watch.source == DependencySource::Owner),
            FieldEventKind::Started | FieldEventKind::Moved | FieldEventKind::Gone => true,
        }
    }

    /// The arguments that an event of another entity concerns.
    pub fn affected_arguments<'a>(
        &'a self,
        event: &'a FieldEvent,
    ) -> impl Iterator<Item = &'a FieldDependency> {
        self.dependencies.iter().filter(|watch| {
            watch.source != DependencySource::Own
                && match &event.change {
                    FieldEventKind::Values { scope, values } => {
                        values.iter().any(|(_, key, _)| watch.takes(*scope, key))
                    }
                    FieldEventKind::Removed { scope, keys } => {
                        keys.iter().any(|key| watch.takes(*scope, key))
                    }
                    _ => false,
                }
        })
    }
}

fn compile(
    field: &CalculatedField,
    limits: &CalculatedFieldLimits,
) -> Result<(FieldLogic, Vec<FieldDependency>), String> {
    if field.field_type != CalculatedFieldType::Alarm {
        let compiled = CompiledField::compile(field, limits).map_err(|error| error.to_string())?;
        let watches = compiled.inputs().iter().map(of_value).collect();
        return Ok((FieldLogic::Values(compiled), watches));
    }
    let rules = AlarmRuleSet::from_calculated_field(&field.name, &field.configuration)
        .map_err(|error| error.to_string())?;
    let parameters: Vec<&str> = std::iter::once("ctx").chain(rules.argument_names()).collect();
    let scripts = rules
        .expressions()
        .iter()
        .map(|body| Script::new(ScriptLang::Tbel, &parameters, body))
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| format!("expression: {error}"))?;
    let watches = rules.inputs().iter().map(of_alarm).collect();
    Ok((FieldLogic::Alarm(rules, scripts.into()), watches))
}

fn of_value(need: &FieldInput) -> FieldDependency {
    let of = match (&need.source, need.role) {
        (_, FieldInputRole::Related) => DependencySource::Related,
        (FieldInputSource::Own, _) => DependencySource::Own,
        (FieldInputSource::Entity(entity), _) => DependencySource::Entity(*entity),
        (FieldInputSource::Owner, _) => DependencySource::Owner,
        (FieldInputSource::Path(path), _) => DependencySource::Path(path.clone()),
    };
    let scope = match need.kind {
        FieldInputKind::Attribute(scope) => Some(scope),
        FieldInputKind::Latest | FieldInputKind::Rolling { .. } => None,
    };
    FieldDependency {
        source: of,
        scope,
        key: (&*need.key).into(),
    }
}

fn of_alarm(need: &AlarmInput) -> FieldDependency {
    let of = match need.source {
        AlarmInputSource::Originator => DependencySource::Own,
        AlarmInputSource::Customer | AlarmInputSource::Tenant | AlarmInputSource::Owner => {
            DependencySource::Owner
        }
        AlarmInputSource::Entity(entity) => DependencySource::Entity(entity),
    };
    let scope = match need.kind {
        AlarmInputKind::Attribute(scope) => Some(scope.unwrap_or(AttributeScope::Server)),
        AlarmInputKind::TimeSeries | AlarmInputKind::EntityField => None,
    };
    FieldDependency {
        source: of,
        scope,
        key: need.key.clone(),
    }
}
