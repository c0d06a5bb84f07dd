//! What a field has to know.

use std::sync::Arc;

use fieldline_model::EntityId;
use fieldline_model::entity::calculated_field::{
    ArgumentDefinition, ArgumentType, DynamicSourceType, FieldConfigError, RelationLevel,
};
use fieldline_model::kv::KvValue;
use fieldline_model::timeseries::AttributeScope;

/// Points of a rolling argument where neither it nor the tenant profile has a limit.
const DEFAULT_MAX_POINTS: u64 = 50_000;

/// Which values an argument takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FieldInputKind {
    /// The newest value of a series.
    Latest,
    /// An attribute.
    Attribute(AttributeScope),
    /// The newest points of a series.
    Rolling {
        /// Most points.
        limit: usize,
        /// Age of the oldest one, milliseconds; `i64::MAX` for any age.
        window_ms: i64,
    },
}

/// Whose values an argument takes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FieldInputSource {
    /// Those of the entity that is evaluated.
    Own,
    /// Those of this entity.
    Entity(EntityId),
    /// Those of the customer or tenant that has the entity.
    Owner,
    /// Those of all entities at the end of this path of relations.
    Path(Arc<[RelationLevel]>),
}

/// What an argument is to its field, and so how its values are handed over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FieldInputRole {
    /// One value.
    Value,
    /// Points within a window.
    Points,
    /// Perimeters of zones, one an entity.
    Zones,
    /// One value a related entity.
    Related,
    /// A series whose intervals are aggregated: only the times of its points matter here.
    Series,
}

/// An argument of a field. Its place among [`super::CompiledField::inputs`] is its number.
#[derive(Debug, Clone, PartialEq)]
pub struct FieldInput {
    /// Name of the argument.
    pub name: Arc<str>,
    /// Name of the series or attribute.
    pub key: Arc<str>,
    /// Which it is.
    pub kind: FieldInputKind,
    /// Whose it is.
    pub source: FieldInputSource,
    /// What the field does with it.
    pub role: FieldInputRole,
    /// Stands in for an absent value.
    pub(super) default: Option<KvValue>,
}

impl FieldInput {
    pub(super) fn of(
        name: &str,
        argument: &ArgumentDefinition,
        role: FieldInputRole,
        max_points: u64,
    ) -> Result<Self, FieldConfigError> {
        let missing = |what: &str| {
            FieldConfigError::new(format!("configuration.arguments.{name}.{what}"), "must be set")
        };
        let key = argument
            .ref_entity_key
            .as_ref()
            .ok_or_else(|| missing("refEntityKey"))?;
        let kind = match key.kind {
            ArgumentType::TsLatest => FieldInputKind::Latest,
            ArgumentType::Attribute => {
                FieldInputKind::Attribute(key.scope.ok_or_else(|| missing("refEntityKey.scope"))?)
            }
            ArgumentType::TsRolling => rolling(argument, max_points),
        };
        let role = match (role, kind) {
            (FieldInputRole::Value, FieldInputKind::Rolling { .. }) => FieldInputRole::Points,
            (role, _) => role,
        };
        Ok(Self {
            name: name.into(),
            key: key.key.as_str().into(),
            kind,
            source: source(argument),
            role,
            default: argument.default_value.as_deref().and_then(default_value),
        })
    }

    /// Whether a value of this kind under this key is one of this argument; the entity is not looked at.
    pub fn takes(&self, key: &str, scope: Option<AttributeScope>) -> bool {
        let fits = match self.kind {
            FieldInputKind::Latest | FieldInputKind::Rolling { .. } => scope.is_none(),
            FieldInputKind::Attribute(own) => scope == Some(own),
        };
        fits && *self.key == *key
    }
}

fn rolling(argument: &ArgumentDefinition, max_points: u64) -> FieldInputKind {
    let most = if max_points == 0 {
        DEFAULT_MAX_POINTS
    } else {
        max_points
    };
    let limit = match u64::from(argument.limit.unwrap_or(0)) {
        0 => most,
        limit => limit.min(most),
    };
    FieldInputKind::Rolling {
        limit: usize::try_from(limit).unwrap_or(usize::MAX),
        window_ms: match argument.time_window {
            Some(window) if window > 0 => window,
            _ => i64::MAX,
        },
    }
}

pub(super) fn source(argument: &ArgumentDefinition) -> FieldInputSource {
    if let Some(entity) = argument.ref_entity_id {
        return FieldInputSource::Entity(entity);
    }
    match &argument.ref_dynamic_source_configuration {
        None => FieldInputSource::Own,
        Some(source) if source.kind == DynamicSourceType::CurrentOwner => FieldInputSource::Owner,
        Some(source) => FieldInputSource::Path(source.levels.as_slice().into()),
    }
}

/// A default value is a text in the configuration: a number or flag where it reads as one, nothing where it is blank.
fn default_value(text: &str) -> Option<KvValue> {
    if text.trim().is_empty() {
        return None;
    }
    if is_decimal(text)
        && let Ok(number) = text.parse::<f64>()
        && number.is_finite()
    {
        return Some(KvValue::Double(number));
    }
    if text.eq_ignore_ascii_case("true") || text.eq_ignore_ascii_case("false") {
        return Some(KvValue::Bool(text.eq_ignore_ascii_case("true")));
    }
    Some(KvValue::Text(text.into()))
}

/// Digits with at most one point among them and a minus before them.
pub(super) fn is_decimal(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let points = digits.bytes().filter(|byte| *byte == b'.').count();
    !digits.is_empty()
        && points <= 1
        && !digits.ends_with('.')
        && digits.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.')
}
