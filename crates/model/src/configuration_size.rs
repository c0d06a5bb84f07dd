//! How large the configurations may be that people have the platform compile: those of alarm rules and of calculated fields
//! here, those of nodes with the rule chains. They are checked when they are saved and again when they are loaded, as an older
//! version may have stored what is beyond them.

use serde_json::Value;

/// Longest text of a configuration, bytes: that of the longest script.
pub const MAX_TEXT_BYTES: usize = 256 << 10;
/// Most `${…}` and `$[…]` of a text.
pub const MAX_PLACEHOLDERS: usize = 2_000;
/// Longest alarm rules of a device profile, bytes.
pub const MAX_RULES_BYTES: usize = 4 << 20;
/// Most values in the alarm rules of a device profile.
pub const MAX_RULES_VALUES: usize = 100_000;
/// Longest configuration of a calculated field, bytes.
pub const MAX_FIELD_BYTES: usize = 1 << 20;
/// Most values in the configuration of a calculated field.
pub const MAX_FIELD_VALUES: usize = 20_000;

/// Name of a configuration as a whole, where no field of it is to blame.
pub const CONFIGURATION: &str = "configuration";

/// A configuration is beyond a bound.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OversizedConfiguration {
    /// The way to what is beyond it.
    pub field: String,
    /// The bound.
    pub problem: String,
}

/// Checks the alarm rules of a device profile before they are compiled.
///
/// # Errors
/// They are too large.
pub fn check_alarm_rules(rules: &Value) -> Result<(), OversizedConfiguration> {
    bytes_of(rules, MAX_RULES_BYTES, MAX_RULES_VALUES).map(drop)
}

/// Checks the configuration of a calculated field before it is compiled.
///
/// # Errors
/// It is too large.
pub fn check_field(configuration: &Value) -> Result<(), OversizedConfiguration> {
    bytes_of(configuration, MAX_FIELD_BYTES, MAX_FIELD_VALUES).map(drop)
}

/// Bytes of a configuration, some for each value besides those of its texts.
///
/// # Errors
/// It has more bytes or values than these, or a text beyond its own bounds.
pub fn bytes_of(
    configuration: &Value,
    max_bytes: usize,
    max_values: usize,
) -> Result<usize, OversizedConfiguration> {
    let mut size = ConfigurationSize {
        bytes: 0,
        values: 0,
        max_bytes,
        max_values,
    };
    match size.add(configuration) {
        Ok(()) => Ok(size.bytes),
        Err((path, problem)) => Err(OversizedConfiguration {
            field: field(path),
            problem,
        }),
    }
}

/// Name of a field by the way to it, innermost part first.
fn field(mut path: Vec<String>) -> String {
    if path.is_empty() {
        return CONFIGURATION.to_owned();
    }
    path.reverse();
    path.join(".")
}

/// The way to what is beyond a bound, innermost part first, and the bound.
type BoundViolation = (Vec<String>, String);

/// How large a configuration is, counted as far as it is allowed to be.
struct ConfigurationSize {
    bytes: usize,
    values: usize,
    max_bytes: usize,
    max_values: usize,
}

impl ConfigurationSize {
    fn add(&mut self, value: &Value) -> Result<(), BoundViolation> {
        self.values += 1;
        self.bytes += 4;
        if self.values > self.max_values {
            let problem = format!("has more than {} values", self.max_values);
            return Err((Vec::new(), problem));
        }
        let within = |part: String| {
            move |(mut path, problem): BoundViolation| {
                path.push(part);
                (path, problem)
            }
        };
        match value {
            Value::String(text) => self.add_text(text)?,
            Value::Array(items) => {
                for (at, item) in items.iter().enumerate() {
                    self.add(item).map_err(within(at.to_string()))?;
                }
            }
            Value::Object(fields) => {
                for (name, field) in fields {
                    let part = || name.chars().take(64).collect();
                    self.add_text(name).map_err(within(part()))?;
                    self.add(field).map_err(within(part()))?;
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn add_text(&mut self, text: &str) -> Result<(), BoundViolation> {
        let beyond = |problem| Err((Vec::new(), problem));
        if text.len() > MAX_TEXT_BYTES {
            return beyond(format!("has {} bytes, allowed are {MAX_TEXT_BYTES}", text.len()));
        }
        self.bytes += text.len();
        if self.bytes > self.max_bytes {
            return beyond(format!(
                "makes the configuration longer than {} bytes",
                self.max_bytes
            ));
        }
        let placeholders = text
            .as_bytes()
            .windows(2)
            .filter(|pair| matches!(*pair, [b'$', b'{' | b'[']))
            .count();
        if placeholders > MAX_PLACEHOLDERS {
            return beyond(format!(
                "has {placeholders} placeholders, allowed are {MAX_PLACEHOLDERS}"
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn rules_and_fields_have_so_much_and_no_more() {
        let values = |count: usize| json!(vec![0; count - 1]);
        assert_eq!(check_alarm_rules(&values(MAX_RULES_VALUES)), Ok(()));
        assert!(check_alarm_rules(&values(MAX_RULES_VALUES + 1)).is_err());
        assert_eq!(check_field(&values(MAX_FIELD_VALUES)), Ok(()));
        assert!(check_field(&values(MAX_FIELD_VALUES + 1)).is_err());
        let texts = |bytes: usize| json!(vec!["x".repeat(MAX_TEXT_BYTES); bytes / MAX_TEXT_BYTES]);
        assert!(
            check_field(&texts(MAX_FIELD_BYTES)).is_err(),
            "values count as well"
        );
        assert_eq!(check_alarm_rules(&texts(MAX_RULES_BYTES / 2)), Ok(()));
        assert!(check_alarm_rules(&texts(MAX_RULES_BYTES)).is_err());
    }
}
