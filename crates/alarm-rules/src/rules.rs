//! A compiled rule set.

use fieldline_model::EntityId;
use fieldline_model::entity::AlarmSeverity;
use fieldline_model::kv::KvValue;
use fieldline_model::timeseries::AttributeScope;
use rustc_hash::FxHashMap;
use uuid::Uuid;

use super::condition::AlarmCondition;
use super::condition_spec::AlarmConditionSpec;
use super::details::DetailsTemplate;
use super::parse::{ConfigCursor, ConfigResult};
use super::schedule::ScheduleSource;

/// Most values one rule set may read.
pub(super) const MAX_INPUTS: usize = 256;
/// Most alarm types in one device profile.
pub(super) const MAX_ALARMS: usize = 256;
/// Create rules of an alarm, one a severity, and the clear rule.
pub(super) const MAX_RULES_PER_ALARM: usize = 6;

const NO_NEED: u16 = u16::MAX;

/// Which of the two forms a rule set has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RuleSetForm {
    /// `profileData.alarms` of a device profile, evaluated by the device-profile node.
    DeviceProfile,
    /// A calculated field of type ALARM.
    CalculatedField,
}

/// Whose value is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AlarmInputSource {
    /// The entity that the rules are evaluated for.
    Originator,
    /// The customer it is assigned to.
    Customer,
    /// Its tenant.
    Tenant,
    /// Its customer, or its tenant where it has none.
    Owner,
    /// An entity named in the configuration.
    Entity(EntityId),
}

/// What kind of value is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AlarmInputKind {
    /// The latest point of a time series.
    TimeSeries,
    /// An attribute of a scope; of any scope (server before shared before client) where none is given.
    Attribute(Option<AttributeScope>),
    /// A field of the entity itself: `name`, `type`, `label` or `createdTime`.
    EntityField,
}

/// A value that a rule set reads.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct AlarmInput {
    /// Whose value.
    pub source: AlarmInputSource,
    /// What kind of value.
    pub kind: AlarmInputKind,
    /// Its key.
    pub key: Box<str>,
}

/// A set of needs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct AlarmInputSet([u64; MAX_INPUTS / 64]);

impl AlarmInputSet {
    pub(super) fn insert(&mut self, need: u16) {
        if let Some(word) = self.0.get_mut(usize::from(need) / 64) {
            *word |= 1 << (need % 64);
        }
    }

    pub(super) fn intersects(&self, other: &Self) -> bool {
        self.0.iter().zip(&other.0).any(|(left, right)| left & right != 0)
    }

    pub(super) fn add(&mut self, other: &Self) {
        for (word, more) in self.0.iter_mut().zip(&other.0) {
            *word |= more;
        }
    }
}

/// A named input of a calculated field.
#[derive(Debug)]
pub(super) struct AlarmArgument {
    pub name: Box<str>,
    pub need: u16,
    pub default: Option<KvValue>,
}

/// When an alarm is raised with one severity, or cleared.
#[derive(Debug)]
pub(super) struct AlarmRule {
    /// Identity over restarts and edits: alarm, severity and type of the condition.
    pub key: u64,
    /// `None` for the clear rule.
    pub severity: Option<AlarmSeverity>,
    /// Changes of these values make the rule worth evaluating.
    pub triggers: AlarmInputSet,
    pub expression: AlarmCondition,
    pub span: AlarmConditionSpec,
    pub schedule: Option<ScheduleSource>,
    pub details: Option<DetailsTemplate>,
    pub dashboard: Option<Uuid>,
}

/// An alarm type with its rules.
#[derive(Debug)]
pub(super) struct AlarmDefinition {
    pub key: u64,
    pub alarm_type: Box<str>,
    pub triggers: AlarmInputSet,
    /// The worst severity first.
    pub create: Box<[AlarmRule]>,
    pub clear: Option<AlarmRule>,
    pub propagation: PropagationTargets,
}

#[derive(Debug, Default)]
pub(super) struct PropagationTargets {
    pub related: bool,
    pub owner: bool,
    pub tenant: bool,
    pub relation_types: Box<[Box<str>]>,
}

impl AlarmDefinition {
    pub(super) fn rules(&self) -> impl Iterator<Item = &AlarmRule> {
        self.create.iter().chain(&self.clear)
    }
}

/// A rule set, checked and compiled. Shared by all originators that it applies to.
#[derive(Debug)]
pub struct AlarmRuleSet {
    pub(super) form: RuleSetForm,
    /// Hash of the configuration.
    pub(super) definition: u64,
    pub(super) inputs: Box<[AlarmInput]>,
    series: FxHashMap<Box<str>, u16>,
    /// Any scope, client, shared, server.
    attributes: FxHashMap<Box<str>, [u16; 4]>,
    pub(super) arguments: Box<[AlarmArgument]>,
    pub(super) expressions: Box<[Box<str>]>,
    pub(super) alarms: Box<[AlarmDefinition]>,
    /// Whether any rule of a calculated field has a schedule, and any a NO_DATA predicate.
    pub(super) scheduled: bool,
    pub(super) watches_silence: bool,
}

impl AlarmRuleSet {
    /// The form of the rule set.
    pub fn form(&self) -> RuleSetForm {
        self.form
    }

    /// The values that the rules read, in a fixed order; [`super::AlarmValueSource`] is asked by position in it.
    pub fn inputs(&self) -> &[AlarmInput] {
        &self.inputs
    }

    /// The position in [`Self::inputs`] that an update of the originator's own value concerns. Attributes have a scope.
    pub fn find(&self, kind: AlarmInputKind, key: &str) -> Option<usize> {
        let need = match kind {
            AlarmInputKind::TimeSeries => *self.series.get(key)?,
            AlarmInputKind::Attribute(scope) => {
                let by_scope = self.attributes.get(key)?;
                let own = scope.and_then(|scope| by_scope.get(scope as usize)).copied();
                // A form reads either any scope or given ones, so at most one of the two is set.
                own.filter(|need| *need != NO_NEED)
                    .or_else(|| by_scope.first().copied())?
            }
            AlarmInputKind::EntityField => {
                return self.inputs.iter().position(|need| {
                    need.source == AlarmInputSource::Originator
                        && need.kind == AlarmInputKind::EntityField
                        && &*need.key == key
                });
            }
        };
        (need != NO_NEED).then_some(usize::from(need))
    }

    /// Number of alarm types.
    pub fn alarm_count(&self) -> usize {
        self.alarms.len()
    }

    /// The type of an alarm, by the position that [`super::AlarmAction::alarm`] gives.
    pub fn alarm_type(&self, alarm: usize) -> Option<&str> {
        self.alarms.get(alarm).map(|alarm| &*alarm.alarm_type)
    }

    /// Whether an alarm is shown at related entities, at the owner and at the tenant.
    pub fn propagation(&self, alarm: usize) -> (bool, bool, bool) {
        self.alarms.get(alarm).map_or((false, false, false), |alarm| {
            let to = &alarm.propagation;
            (to.related, to.owner, to.tenant)
        })
    }

    /// Types of the relations along which an alarm is propagated; all where empty.
    pub fn propagation_relation_types(&self, alarm: usize) -> impl Iterator<Item = &str> {
        let alarm = self.alarms.get(alarm);
        alarm
            .into_iter()
            .flat_map(|alarm| alarm.propagation.relation_types.iter().map(|name| &**name))
    }

    /// TBEL expressions, by the position that [`super::AlarmValueSource::expression`] is asked with.
    pub fn expressions(&self) -> &[Box<str>] {
        &self.expressions
    }

    /// Names of the arguments of a calculated field, in the order of [`super::AlarmScriptArguments`].
    pub fn argument_names(&self) -> impl Iterator<Item = &str> {
        self.arguments.iter().map(|argument| &*argument.name)
    }

    pub(super) fn rule(&self, key: u64) -> Option<(&AlarmDefinition, &AlarmRule)> {
        self.alarms.iter().find_map(|alarm| {
            alarm
                .rules()
                .find(|rule| rule.key == key)
                .map(|rule| (alarm, rule))
        })
    }
}

/// Collects what the parts of a rule set share while it is compiled.
#[derive(Default)]
pub(super) struct RuleSetBuilder {
    needs: Vec<AlarmInput>,
    positions: FxHashMap<AlarmInput, u16>,
    expressions: Vec<Box<str>>,
}

impl RuleSetBuilder {
    /// The position of a value, which is added where it is new.
    pub(super) fn need(
        &mut self,
        of: AlarmInputSource,
        kind: AlarmInputKind,
        key: &str,
        at: &ConfigCursor<'_>,
    ) -> ConfigResult<u16> {
        let need = AlarmInput {
            source: of,
            kind,
            key: key.into(),
        };
        if let Some(position) = self.positions.get(&need) {
            return Ok(*position);
        }
        if self.needs.len() == MAX_INPUTS {
            return at.error(format_args!(
                "is one more than the {MAX_INPUTS} different values that rules may read"
            ));
        }
        let position = self.needs.len() as u16;
        self.needs.push(need.clone());
        self.positions.insert(need, position);
        Ok(position)
    }

    pub(super) fn expression(&mut self, text: String) -> u16 {
        if let Some(position) = self.expressions.iter().position(|known| **known == *text) {
            return position as u16;
        }
        self.expressions.push(text.into());
        (self.expressions.len() - 1) as u16
    }

    pub(super) fn finish(
        self,
        form: RuleSetForm,
        definition: u64,
        arguments: Vec<AlarmArgument>,
        mut alarms: Vec<AlarmDefinition>,
    ) -> AlarmRuleSet {
        let mut series = FxHashMap::default();
        let mut attributes: FxHashMap<Box<str>, [u16; 4]> = FxHashMap::default();
        for (position, need) in self.needs.iter().enumerate() {
            if need.source != AlarmInputSource::Originator {
                continue;
            }
            match need.kind {
                AlarmInputKind::TimeSeries => {
                    series.insert(need.key.clone(), position as u16);
                }
                AlarmInputKind::Attribute(scope) => {
                    let by_scope = attributes.entry(need.key.clone()).or_insert([NO_NEED; 4]);
                    if let Some(slot) = by_scope.get_mut(scope.map_or(0, |scope| scope as usize)) {
                        *slot = position as u16;
                    }
                }
                AlarmInputKind::EntityField => {}
            }
        }
        for alarm in &mut alarms {
            let mut triggers = AlarmInputSet::default();
            for rule in alarm.rules() {
                triggers.add(&rule.triggers);
            }
            alarm.triggers = triggers;
        }
        let any = |is: fn(&AlarmRule) -> bool| alarms.iter().flat_map(AlarmDefinition::rules).any(is);
        let scheduled = any(|rule| rule.schedule.is_some());
        let watches_silence = any(|rule| rule.expression.watches_silence());
        AlarmRuleSet {
            form,
            definition,
            inputs: self.needs.into(),
            series,
            attributes,
            arguments: arguments.into(),
            expressions: self.expressions.into(),
            scheduled,
            watches_silence,
            alarms: alarms.into(),
        }
    }
}
