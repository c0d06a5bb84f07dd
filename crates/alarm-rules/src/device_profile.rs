//! Rules of a device profile, `profileData.alarms`.

use std::sync::Arc;

use fieldline_model::configuration_size::check_alarm_rules;
use fieldline_model::entity::AlarmSeverity;
use fieldline_model::kv::KvValue;
use fieldline_model::timeseries::AttributeScope;
use serde_json::Value as Json;

use super::condition::{AlarmCondition, ConditionFilter, FilterInput};
use super::condition_spec::AlarmConditionSpec;
use super::convert::{parse_double, stable_hash};
use super::details::DetailsTemplate;
use super::parse::{AlarmConfigError, ConfigCursor, ConfigResult, FromConfig};
use super::predicate::{AlarmOperand, AlarmPredicate, MAX_LIST, OperandParser};
use super::rules::{
    AlarmDefinition, AlarmInputKind, AlarmInputSet, AlarmInputSource, AlarmRule, AlarmRuleSet, MAX_ALARMS,
    MAX_RULES_PER_ALARM, PropagationTargets, RuleSetBuilder, RuleSetForm,
};
use super::schedule::{AlarmSchedule, ScheduleSource, ScheduleType};

impl AlarmRuleSet {
    /// Compiles the alarm rules of a device profile: the profile itself, its `profileData`, or the array `alarms`.
    ///
    /// # Errors
    /// The first field that is missing or wrong.
    pub fn from_device_profile(profile: &Json) -> Result<Arc<Self>, AlarmConfigError> {
        let root = ConfigCursor::root(profile, "");
        let data = root.field("profileData").present().unwrap_or(root);
        let list = if data.value.is_array() {
            ConfigCursor::root(data.value, "alarms")
        } else {
            data.field("alarms")
        };

        check_alarm_rules(list.value).map_err(|oversized| AlarmConfigError {
            path: format!("alarms.{}", oversized.field),
            reason: oversized.problem,
        })?;
        let mut builder = RuleSetBuilder::default();
        let mut alarms: Vec<AlarmDefinition> = Vec::new();
        for at in list.list(MAX_ALARMS)? {
            let alarm = parse_alarm(&at, &mut builder, &alarms)?;
            alarms.push(alarm);
        }
        let definition = stable_hash(&[b"profile", list.value.to_string().as_bytes()]);
        Ok(Arc::new(builder.finish(
            RuleSetForm::DeviceProfile,
            definition,
            Vec::new(),
            alarms,
        )))
    }
}

fn parse_alarm(
    at: &ConfigCursor<'_>,
    builder: &mut RuleSetBuilder,
    earlier: &[AlarmDefinition],
) -> ConfigResult<AlarmDefinition> {
    let alarm_type = at.field("alarmType").name()?;
    if earlier.iter().any(|alarm| *alarm.alarm_type == *alarm_type) {
        return at
            .field("alarmType")
            .error("is the type of an earlier alarm as well");
    }
    let id = at
        .field("id")
        .optional_text()?
        .unwrap_or_else(|| alarm_type.clone());
    let mut key = stable_hash(&[b"alarm", id.as_bytes()]);
    if earlier.iter().any(|alarm| alarm.key == key) {
        key = stable_hash(&[b"alarm", id.as_bytes(), alarm_type.as_bytes()]);
    }
    let mut create = Vec::new();
    for (name, rule) in at.field("createRules").entries(MAX_RULES_PER_ALARM - 1)? {
        let Some(severity) = AlarmSeverity::from_name(name) else {
            return rule.error("is no severity of alarms");
        };
        create.push(parse_rule(&rule, key, Some(severity), builder)?);
    }
    create.sort_by_key(|rule| rule.severity);
    let clear = at.field("clearRule").present();
    Ok(AlarmDefinition {
        key,
        alarm_type: alarm_type.into(),
        triggers: AlarmInputSet::default(),
        create: create.into(),
        clear: clear
            .map(|rule| parse_rule(&rule, key, None, builder))
            .transpose()?,
        propagation: parse_propagation(at)?,
    })
}

pub(super) fn parse_propagation(at: &ConfigCursor<'_>) -> ConfigResult<PropagationTargets> {
    let types = at.field("propagateRelationTypes").list(MAX_LIST)?;
    Ok(PropagationTargets {
        related: at.field("propagate").flag()?,
        owner: at.field("propagateToOwner").flag()?,
        tenant: at.field("propagateToTenant").flag()?,
        relation_types: types
            .iter()
            .map(|name| name.text().map(Box::from))
            .collect::<ConfigResult<_>>()?,
    })
}

/// Identity of a rule: its place, and the type of its condition, since counters of another type mean nothing to it.
pub(super) fn rule_key(alarm: u64, severity: Option<AlarmSeverity>, span: &AlarmConditionSpec) -> u64 {
    let place = severity.map_or("clear", AlarmSeverity::name);
    stable_hash(&[&alarm.to_le_bytes(), place.as_bytes(), &[span.code()]])
}

fn parse_rule(
    at: &ConfigCursor<'_>,
    alarm: u64,
    severity: Option<AlarmSeverity>,
    builder: &mut RuleSetBuilder,
) -> ConfigResult<AlarmRule> {
    let condition = at.field("condition").required()?;
    let mut triggers = AlarmInputSet::default();
    let mut filters = Vec::new();
    let mut keys: Vec<(String, u16)> = Vec::new();
    for filter in condition.field("condition").list(MAX_LIST)? {
        let key = filter.field("key");
        let name = key.field("key");
        let kind = key.field("type").one_of(&[
            ("TIME_SERIES", Some(AlarmInputKind::TimeSeries)),
            ("ATTRIBUTE", Some(AlarmInputKind::Attribute(None))),
            ("ENTITY_FIELD", Some(AlarmInputKind::EntityField)),
            ("CONSTANT", None),
        ])?;
        let subject = match kind {
            Some(kind) => {
                let text = name.name()?;
                let need = builder.need(AlarmInputSource::Originator, kind, &text, &name)?;
                triggers.insert(need);
                keys.push((text, need));
                FilterInput::Need(need)
            }
            None => FilterInput::Constant(constant(&filter)),
        };
        let mut operands = ProfileOperandParser {
            builder,
            triggers: Some(&mut triggers),
            fallback: kind.is_some(),
        };
        let predicate = AlarmPredicate::parse(&filter.field("predicate").required()?, &mut operands, 0)?;
        filters.push(ConditionFilter { subject, predicate });
    }
    let span = parse_span(&condition.field("spec"), builder)?;
    let schedule = at.field("schedule").present();
    let details = at.field("alarmDetails").optional_text()?.map(|text| {
        DetailsTemplate::parse(&text, |name| {
            keys.iter()
                .filter(|(key, _)| key == name)
                .map(|(_, need)| FilterInput::Need(*need))
                .collect()
        })
    });
    Ok(AlarmRule {
        key: rule_key(alarm, severity, &span),
        severity,
        triggers,
        expression: AlarmCondition::All(filters.into()),
        span,
        schedule: schedule
            .map(|at| parse_schedule(&at, builder))
            .transpose()?
            .flatten(),
        details,
        dashboard: at.field("dashboardId").optional_uuid()?,
    })
}

/// The constant of a filter; one that is not of its type makes the filter false, and is no error.
fn constant(filter: &ConfigCursor<'_>) -> Option<KvValue> {
    let text = filter.field("value").text().ok()?;
    match filter.field("valueType").text().ok()?.as_str() {
        "STRING" => Some(KvValue::Text(text.into())),
        "DATE_TIME" => text.parse().ok().map(KvValue::Long),
        "NUMERIC" => parse_double(&text).map(KvValue::Double),
        "BOOLEAN" => Some(KvValue::Bool(text.eq_ignore_ascii_case("true"))),
        _ => None,
    }
}

fn parse_span(at: &ConfigCursor<'_>, builder: &mut RuleSetBuilder) -> ConfigResult<AlarmConditionSpec> {
    if at.is_null() {
        return Ok(AlarmConditionSpec::Simple);
    }
    let operand = |builder| {
        let mut operands = ProfileOperandParser {
            builder,
            triggers: None,
            fallback: true,
        };
        let predicate = at.field("predicate").required()?;
        predicate.field("defaultValue").integer()?;
        operands.operand(&predicate)
    };
    let kind = at.field("type");
    match kind.text()?.as_str() {
        "SIMPLE" => Ok(AlarmConditionSpec::Simple),
        "DURATION" => Ok(AlarmConditionSpec::Duration {
            unit: at.field("unit").unit()?,
            value: operand(builder)?,
        }),
        "REPEATING" => Ok(AlarmConditionSpec::Repeating {
            count: operand(builder)?,
        }),
        _ => kind.error("must be SIMPLE, DURATION or REPEATING"),
    }
}

fn parse_schedule(
    at: &ConfigCursor<'_>,
    builder: &mut RuleSetBuilder,
) -> ConfigResult<Option<ScheduleSource>> {
    let kind = ScheduleType::parse(at)?;
    if kind == ScheduleType::AnyTime {
        return Ok(None);
    }
    let fallback = AlarmSchedule::parse(at, kind)?;
    let chain = parse_chain(&at.field("dynamicValue"), builder, None)?;
    Ok(Some(match chain {
        Some(chain) => ScheduleSource::Attribute { chain, fallback },
        None => ScheduleSource::Fixed(fallback),
    }))
}

/// The attributes that a dynamic value is looked for in, in order.
fn parse_chain(
    at: &ConfigCursor<'_>,
    builder: &mut RuleSetBuilder,
    triggers: Option<&mut AlarmInputSet>,
) -> ConfigResult<Option<Box<[u16]>>> {
    let name = at.field("sourceAttribute");
    if at.is_null() || name.optional_text()?.is_none() || at.field("sourceType").is_null() {
        return Ok(None);
    }
    let key = name.name()?;
    // A user is not at hand when alarm rules run: such a value never exists.
    let first = at.field("sourceType").one_of(&[
        ("CURRENT_DEVICE", 0),
        ("CURRENT_CUSTOMER", 1),
        ("CURRENT_TENANT", 2),
        ("CURRENT_USER", 3),
    ])?;
    let inherits = at.field("inherit").flag()?;
    let server = AlarmInputKind::Attribute(Some(AttributeScope::Server));
    let mut chain = Vec::new();
    for level in first..3 {
        chain.push(match level {
            0 => builder.need(
                AlarmInputSource::Originator,
                AlarmInputKind::Attribute(None),
                &key,
                at,
            )?,
            1 => builder.need(AlarmInputSource::Customer, server, &key, at)?,
            _ => builder.need(AlarmInputSource::Tenant, server, &key, at)?,
        });
        if !inherits {
            break;
        }
    }
    if let Some(triggers) = triggers {
        // An attribute of that name at the device makes the rule run, whoever's attribute is meant.
        triggers.insert(builder.need(
            AlarmInputSource::Originator,
            AlarmInputKind::Attribute(None),
            &key,
            at,
        )?);
    }
    Ok(Some(chain.into()))
}

/// Operands of the form `{"defaultValue":…,"dynamicValue":{…}}`.
struct ProfileOperandParser<'b, 'm> {
    builder: &'b mut RuleSetBuilder,
    /// Where attributes that are read are noted, so that their changes count.
    triggers: Option<&'m mut AlarmInputSet>,
    /// Filters over constants compare with dynamic values only.
    fallback: bool,
}

impl OperandParser for ProfileOperandParser<'_, '_> {
    const NO_DATA: bool = false;

    fn operand<T: FromConfig>(&mut self, at: &ConfigCursor<'_>) -> ConfigResult<AlarmOperand<T>> {
        let at = at.clone().required()?;
        let default = at.field("defaultValue").present();
        let default = default.map(|at| T::from_config(&at)).transpose()?;
        let fallback = default.filter(|_| self.fallback);
        let chain = parse_chain(
            &at.field("dynamicValue"),
            self.builder,
            self.triggers.as_deref_mut(),
        )?;
        Ok(match chain {
            Some(chain) => AlarmOperand::Attribute { chain, fallback },
            None => AlarmOperand::Fixed(fallback),
        })
    }
}
