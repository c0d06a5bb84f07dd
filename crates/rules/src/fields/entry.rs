//! One calculated field in force.

use std::sync::Arc;

use fieldline_model::entity::calculated_field::{CalculatedFieldLimits, RelationLevel};
use fieldline_model::entity::{CalculatedField, CalculatedFieldType, DebugSettings};
use fieldline_model::timeseries::AttributeScope;
use fieldline_model::{CalculatedFieldId, EntityId};
use fieldline_script::{Lang, Script};

use super::news::{Change, News};
use crate::alarm_rules::{self, Rules};
use crate::calculated_fields::{self, Field, Role};

/// Whose value a field looks at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Of {
    /// That of the entity it is evaluated for.
    Own,
    /// That of this entity.
    Entity(EntityId),
    /// That of the customer or tenant that has the entity.
    Owner,
    /// That of the entities at the end of a path of relations.
    Path(Arc<[RelationLevel]>),
    /// That of the related entities it aggregates.
    Related,
}

/// A value that a field looks at. Its position is the number of the argument.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Watch {
    /// Whose it is.
    pub of: Of,
    /// Scope of an attribute; `None` for a series.
    pub scope: Option<AttributeScope>,
    /// Its name.
    pub key: Box<str>,
}

impl Watch {
    /// Whether it looks at a series, or an attribute of a scope, of that name.
    pub fn takes(&self, scope: Option<AttributeScope>, key: &str) -> bool {
        self.scope == scope && *self.key == *key
    }
}

/// What a field does.
#[derive(Debug)]
pub enum Kind {
    /// It makes values.
    Values(Arc<Field>),
    /// It raises and clears alarms; with the scripts of its conditions.
    Alarm(Arc<Rules>, Arc<[Script]>),
    /// It cannot be used.
    Broken(Box<str>),
}

/// A calculated field in force.
#[derive(Debug)]
pub struct Entry {
    /// Its id.
    pub id: CalculatedFieldId,
    /// The entity, or the profile of the entities, that have it.
    pub entity: EntityId,
    /// Its name.
    pub name: Box<str>,
    /// Which debug events are stored.
    pub debug: DebugSettings,
    /// What it does.
    pub kind: Kind,
    /// The values it looks at.
    pub watches: Box<[Watch]>,
}

impl Entry {
    /// Compiles a field.
    pub fn new(field: &CalculatedField, limits: &CalculatedFieldLimits) -> Option<Self> {
        let (id, entity) = (field.id?, field.entity_id?);
        let (kind, watches) = match compile(field, limits) {
            Ok(compiled) => compiled,
            Err(problem) => (Kind::Broken(problem.into()), Vec::new()),
        };
        Some(Self {
            id,
            entity,
            name: field.name.as_str().into(),
            debug: field.debug_settings.unwrap_or_default(),
            kind,
            watches: watches.into(),
        })
    }

    /// Why it cannot be used.
    pub fn problem(&self) -> Option<&str> {
        match &self.kind {
            Kind::Broken(problem) => Some(problem),
            _ => None,
        }
    }

    /// Whether news about the entity itself, or its profile's entity, concerns the field.
    pub fn concerns_own(&self, news: &News) -> bool {
        let own = |scope, key: &str| {
            self.watches
                .iter()
                .any(|watch| watch.of == Of::Own && watch.takes(scope, key))
        };
        match &news.change {
            Change::Values { scope, values } => values.iter().any(|(_, key, _)| own(*scope, key)),
            Change::Removed { scope, keys } => keys.iter().any(|key| own(*scope, key)),
            Change::Acknowledged(_) | Change::Cleared(_) | Change::Deleted(_) => {
                matches!(self.kind, Kind::Alarm(..))
            }
            Change::Relations => matches!(&self.kind, Kind::Values(field) if field.follows_relations()),
            Change::Owner => self.watches.iter().any(|watch| watch.of == Of::Owner),
            Change::Started | Change::Moved | Change::Gone => true,
        }
    }

    /// The numbers of the arguments that news about another entity concerns.
    pub fn taken_from<'a>(&'a self, news: &'a News) -> impl Iterator<Item = &'a Watch> {
        self.watches.iter().filter(|watch| {
            watch.of != Of::Own
                && match &news.change {
                    Change::Values { scope, values } => {
                        values.iter().any(|(_, key, _)| watch.takes(*scope, key))
                    }
                    Change::Removed { scope, keys } => keys.iter().any(|key| watch.takes(*scope, key)),
                    _ => false,
                }
        })
    }
}

fn compile(field: &CalculatedField, limits: &CalculatedFieldLimits) -> Result<(Kind, Vec<Watch>), String> {
    if field.field_type != CalculatedFieldType::Alarm {
        let compiled = Field::compile(field, limits).map_err(|error| error.to_string())?;
        let watches = compiled.needs().iter().map(of_value).collect();
        return Ok((Kind::Values(compiled), watches));
    }
    let rules =
        Rules::from_calculated_field(&field.name, &field.configuration).map_err(|error| error.to_string())?;
    let parameters: Vec<&str> = std::iter::once("ctx").chain(rules.argument_names()).collect();
    let scripts = rules
        .expressions()
        .iter()
        .map(|body| Script::new(Lang::Tbel, &parameters, body))
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| format!("expression: {error}"))?;
    let watches = rules.needs().iter().map(of_alarm).collect();
    Ok((Kind::Alarm(rules, scripts.into()), watches))
}

fn of_value(need: &calculated_fields::Need) -> Watch {
    use calculated_fields::{NeedKind, NeedSource};
    let of = match (&need.source, need.role) {
        (_, Role::Related) => Of::Related,
        (NeedSource::Own, _) => Of::Own,
        (NeedSource::Entity(entity), _) => Of::Entity(*entity),
        (NeedSource::Owner, _) => Of::Owner,
        (NeedSource::Path(path), _) => Of::Path(path.clone()),
    };
    let scope = match need.kind {
        NeedKind::Attribute(scope) => Some(scope),
        NeedKind::Latest | NeedKind::Rolling { .. } => None,
    };
    Watch {
        of,
        scope,
        key: (&*need.key).into(),
    }
}

fn of_alarm(need: &alarm_rules::Need) -> Watch {
    use alarm_rules::{NeedKind, NeedOf};
    let of = match need.of {
        NeedOf::Originator => Of::Own,
        NeedOf::Customer | NeedOf::Tenant | NeedOf::Owner => Of::Owner,
        NeedOf::Entity(entity) => Of::Entity(entity),
    };
    let scope = match need.kind {
        NeedKind::Attribute(scope) => Some(scope.unwrap_or(AttributeScope::Server)),
        NeedKind::TimeSeries | NeedKind::EntityField => None,
    };
    Watch {
        of,
        scope,
        key: need.key.clone(),
    }
}
