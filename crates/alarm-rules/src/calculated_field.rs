//! Rules of a calculated field of type ALARM.

use std::str::FromStr as _;
use std::sync::Arc;

use fieldline_model::configuration_size::check_field;
use fieldline_model::entity::AlarmSeverity;
use fieldline_model::timeseries::AttributeScope;
use fieldline_model::{EntityId, EntityType};
use serde_json::Value as Json;

use super::condition::{AlarmCondition, ConditionFilter, FilterInput};
use super::condition_spec::AlarmConditionSpec;
use super::convert::stable_hash;
use super::details::DetailsTemplate;
use super::device_profile::{parse_propagation, rule_key};
use super::parse::{AlarmConfigError, ConfigCursor, ConfigResult, FromConfig, typed_default};
use super::predicate::{AlarmOperand, AlarmPredicate, MAX_LIST, OperandParser};
use super::rules::{
    AlarmArgument, AlarmDefinition, AlarmInputKind, AlarmInputSet, AlarmInputSource, AlarmRule, AlarmRuleSet,
    MAX_INPUTS, MAX_RULES_PER_ALARM, RuleSetBuilder, RuleSetForm,
};
use super::schedule::{AlarmSchedule, ScheduleSource, ScheduleType};

impl AlarmRuleSet {
    /// Compiles the `configuration` of a calculated field of type ALARM, whose name is the alarm type.
    ///
    /// # Errors
    /// The first field that is missing or wrong.
    pub fn from_calculated_field(name: &str, configuration: &Json) -> Result<Arc<Self>, AlarmConfigError> {
        let root = ConfigCursor::root(configuration, "configuration");
        check_field(configuration)?;
        let mut builder = RuleSetBuilder::default();
        let arguments = parse_arguments(&root.field("arguments").required()?, &mut builder)?;

        // Changes of any argument run all rules.
        let mut triggers = AlarmInputSet::default();
        for argument in &arguments {
            triggers.insert(argument.need);
        }
        let mut parser = AlarmFieldParser {
            builder,
            arguments: &arguments,
            triggers,
        };
        let create_rules = root.field("createRules").required()?;
        let mut create = Vec::new();
        for (name, rule) in create_rules.entries(MAX_RULES_PER_ALARM - 1)? {
            let Some(severity) = AlarmSeverity::from_name(name) else {
                return rule.error("is no severity of alarms");
            };
            create.push(parser.rule(&rule, Some(severity))?);
        }
        if create.is_empty() {
            return create_rules.error("must have at least one rule");
        }
        create.sort_by_key(|rule| rule.severity);
        let clear = root.field("clearRule").present();
        let alarm = AlarmDefinition {
            key: stable_hash(&[b"field", name.as_bytes()]),
            alarm_type: name.into(),
            triggers,
            create: create.into(),
            clear: clear.map(|rule| parser.rule(&rule, None)).transpose()?,
            propagation: parse_propagation(&root)?,
        };
        let definition = stable_hash(&[b"field", name.as_bytes(), configuration.to_string().as_bytes()]);
        let builder = parser.builder;
        Ok(Arc::new(builder.finish(
            RuleSetForm::CalculatedField,
            definition,
            arguments,
            vec![alarm],
        )))
    }
}

fn parse_arguments(at: &ConfigCursor<'_>, builder: &mut RuleSetBuilder) -> ConfigResult<Vec<AlarmArgument>> {
    let mut arguments = Vec::new();
    for (name, at) in at.entries(MAX_INPUTS)? {
        let key = at.field("refEntityKey").required()?;
        let kind = key.field("type");
        let need_kind = match kind.text()?.as_str() {
            "TS_LATEST" => AlarmInputKind::TimeSeries,
            "ATTRIBUTE" => {
                let scope = key.field("scope").one_of(&[
                    ("CLIENT_SCOPE", AttributeScope::Client),
                    ("SHARED_SCOPE", AttributeScope::Shared),
                    ("SERVER_SCOPE", AttributeScope::Server),
                ])?;
                AlarmInputKind::Attribute(Some(scope))
            }
            _ => return kind.error("must be TS_LATEST or ATTRIBUTE, alarm rules take single values"),
        };
        let of = parse_source(&at)?;
        let key = key.field("key");
        let default = at.field("defaultValue").optional_text()?;
        arguments.push(AlarmArgument {
            name: name.into(),
            need: builder.need(of, need_kind, &key.name()?, &key)?,
            default: default.as_deref().and_then(typed_default),
        });
    }
    if arguments.is_empty() {
        return at.error("must have at least one argument");
    }
    Ok(arguments)
}

fn parse_source(at: &ConfigCursor<'_>) -> ConfigResult<AlarmInputSource> {
    if let Some(dynamic) = at.field("refDynamicSourceConfiguration").present() {
        return dynamic
            .field("type")
            .one_of(&[("CURRENT_OWNER", AlarmInputSource::Owner)]);
    }
    let Some(entity) = at.field("refEntityId").present() else {
        return Ok(AlarmInputSource::Originator);
    };
    let kind = entity.field("entityType");
    let Ok(entity_type) = EntityType::from_str(&kind.text()?) else {
        return kind.error("is no type of entities");
    };
    match entity.field("id").required()?.optional_uuid()? {
        Some(id) => Ok(AlarmInputSource::Entity(EntityId::new(entity_type, id))),
        None => entity.field("id").error("is required"),
    }
}

struct AlarmFieldParser<'a> {
    builder: RuleSetBuilder,
    arguments: &'a [AlarmArgument],
    triggers: AlarmInputSet,
}

impl AlarmFieldParser<'_> {
    fn argument(&self, at: &ConfigCursor<'_>) -> ConfigResult<u16> {
        let name = at.name()?;
        match self.arguments.iter().position(|argument| *argument.name == *name) {
            Some(position) => Ok(position as u16),
            None => at.error(format_args!(
                "`{}` is none of the arguments",
                super::parse::shortened(&name)
            )),
        }
    }

    fn rule(&mut self, at: &ConfigCursor<'_>, severity: Option<AlarmSeverity>) -> ConfigResult<AlarmRule> {
        let condition = at.field("condition").required()?;
        let expression = self.expression(&condition.field("expression").required()?)?;
        let span = self.span(&condition)?;
        if expression.watches_silence() && span.code() != AlarmConditionSpec::Simple.code() {
            return condition
                .field("type")
                .error("must be SIMPLE where NO_DATA is used");
        }
        let schedule = condition.field("schedule").present();
        let details = at.field("alarmDetails").optional_text()?.map(|text| {
            DetailsTemplate::parse(&text, |name| {
                let position = self.arguments.iter().position(|argument| &*argument.name == name);
                position
                    .map(|position| FilterInput::Argument(position as u16))
                    .into_iter()
                    .collect()
            })
        });
        Ok(AlarmRule {
            key: rule_key(0, severity, &span),
            severity,
            triggers: self.triggers,
            expression,
            span,
            schedule: schedule.map(|at| self.schedule(&at)).transpose()?.flatten(),
            details,
            dashboard: at.field("dashboardId").optional_uuid()?,
        })
    }

    fn expression(&mut self, at: &ConfigCursor<'_>) -> ConfigResult<AlarmCondition> {
        let kind = at.field("type");
        match kind.text()?.as_str() {
            "TBEL" => Ok(AlarmCondition::Script(
                self.builder.expression(at.field("expression").name()?),
            )),
            "SIMPLE" => {
                let list = at.field("filters").required()?;
                let mut filters = Vec::new();
                for filter in list.list(MAX_LIST)? {
                    let argument = self.argument(&filter.field("argument"))?;
                    let predicates = filter.field("predicates").required()?;
                    let parts = AlarmPredicate::parse_list(&predicates, self, 0)?;
                    if parts.is_empty() {
                        return predicates.error("must not be empty");
                    }
                    let any = is_any(&filter.field("operation"))?;
                    let predicate = if any {
                        AlarmPredicate::Any(parts)
                    } else {
                        AlarmPredicate::All(parts)
                    };
                    filters.push(ConditionFilter {
                        subject: FilterInput::Argument(argument),
                        predicate,
                    });
                }
                if filters.is_empty() {
                    return list.error("must not be empty");
                }
                let any = is_any(&at.field("operation"))?;
                Ok(if any {
                    AlarmCondition::Any(filters.into())
                } else {
                    AlarmCondition::All(filters.into())
                })
            }
            _ => kind.error("must be SIMPLE or TBEL"),
        }
    }

    fn span(&mut self, at: &ConfigCursor<'_>) -> ConfigResult<AlarmConditionSpec> {
        let kind = at.field("type");
        match kind.text()?.as_str() {
            "SIMPLE" => Ok(AlarmConditionSpec::Simple),
            "DURATION" => Ok(AlarmConditionSpec::Duration {
                unit: at.field("unit").unit()?,
                value: self.operand(&at.field("value"))?,
            }),
            "REPEATING" => Ok(AlarmConditionSpec::Repeating {
                count: self.operand(&at.field("count"))?,
            }),
            _ => kind.error("must be SIMPLE, DURATION or REPEATING"),
        }
    }

    fn schedule(&mut self, at: &ConfigCursor<'_>) -> ConfigResult<Option<ScheduleSource>> {
        if let Some(fixed) = at.field("staticValue").present() {
            let kind = ScheduleType::parse(&fixed)?;
            let schedule = AlarmSchedule::parse(&fixed, kind)?;
            return Ok((kind != ScheduleType::AnyTime).then_some(ScheduleSource::Fixed(schedule)));
        }
        let argument = self.argument(&at.field("dynamicValueArgument"))?;
        Ok(Some(ScheduleSource::Argument(argument)))
    }
}

fn is_any(at: &ConfigCursor<'_>) -> ConfigResult<bool> {
    if at.is_null() {
        Ok(false)
    } else {
        at.one_of(&[("AND", false), ("OR", true)])
    }
}

/// Operands of the form `{"staticValue":…}` or `{"dynamicValueArgument":"name"}`.
impl OperandParser for AlarmFieldParser<'_> {
    const NO_DATA: bool = true;

    fn operand<T: FromConfig>(&mut self, at: &ConfigCursor<'_>) -> ConfigResult<AlarmOperand<T>> {
        let at = at.clone().required()?;
        match (
            at.field("staticValue").present(),
            at.field("dynamicValueArgument").present(),
        ) {
            (Some(fixed), None) => Ok(AlarmOperand::Fixed(Some(T::from_config(&fixed)?))),
            (None, Some(argument)) => Ok(AlarmOperand::Argument(self.argument(&argument)?)),
            _ => at.error("must have either staticValue or dynamicValueArgument"),
        }
    }
}
