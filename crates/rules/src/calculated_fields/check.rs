//! Whether a calculated field of any type can be evaluated.

use fieldline_model::entity::calculated_field::{CalculatedFieldLimits, ConfigError};
use fieldline_model::entity::{CalculatedField, CalculatedFieldType};
use fieldline_script::{Lang, Script};

use super::field::Field;
use crate::alarm_rules::Rules;

/// Compiles a field with all its scripts, and forgets it.
///
/// # Errors
/// What is wrong, with the name of the setting.
pub fn check(field: &CalculatedField, limits: &CalculatedFieldLimits) -> Result<(), ConfigError> {
    if field.field_type != CalculatedFieldType::Alarm {
        return Field::compile(field, limits).map(drop);
    }
    let rules = Rules::from_calculated_field(&field.name, &field.configuration)
        .map_err(|error| ConfigError::new(error.path, error.reason))?;
    let parameters: Vec<&str> = std::iter::once("ctx").chain(rules.argument_names()).collect();
    for expression in rules.expressions() {
        Script::new(Lang::Tbel, &parameters, expression).map_err(|error| {
            ConfigError::new(
                "configuration",
                format!("the script of a condition is wrong: {error}"),
            )
        })?;
    }
    Ok(())
}
