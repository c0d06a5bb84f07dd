//! Whether a calculated field of any type can be evaluated.

use fieldline_alarm_rules::AlarmRuleSet;
use fieldline_model::entity::calculated_field::{CalculatedFieldLimits, FieldConfigError};
use fieldline_model::entity::{CalculatedField, CalculatedFieldType};
use fieldline_script::{Script, ScriptLang};

use super::field::CompiledField;

/// Compiles a field with all its scripts, and forgets it.
///
/// # Errors
/// What is wrong, with the name of the setting.
pub fn check(field: &CalculatedField, limits: &CalculatedFieldLimits) -> Result<(), FieldConfigError> {
    if field.field_type != CalculatedFieldType::Alarm {
        return CompiledField::compile(field, limits).map(drop);
    }
    let rules = AlarmRuleSet::from_calculated_field(&field.name, &field.configuration)
        .map_err(|error| FieldConfigError::new(error.path, error.reason))?;
    let parameters: Vec<&str> = std::iter::once("ctx").chain(rules.argument_names()).collect();
    for expression in rules.expressions() {
        Script::new(ScriptLang::Tbel, &parameters, expression).map_err(|error| {
            FieldConfigError::new(
                "configuration",
                format!("the script of a condition is wrong: {error}"),
            )
        })?;
    }
    Ok(())
}
