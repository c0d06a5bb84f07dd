//! What people may have the engine compile: bounds of the configurations of nodes and of whole chains, of alarm rules and of
//! calculated fields, held when they are saved and again when they are loaded, as an older version may have stored what is
//! beyond them.

use std::cell::Cell;

use serde_json::Value;

use crate::node::{CONFIGURATION, NodeConfigError};
use crate::nodes::regex::RegexAllowance;

/// Longest configuration of a node, bytes.
pub const MAX_NODE_BYTES: usize = 1 << 20;
/// Longest configurations of the nodes of a chain together, bytes.
pub const MAX_CHAIN_BYTES: usize = 4 << 20;
/// Most values in the configuration of a node, those within others included.
pub const MAX_NODE_VALUES: usize = 5_000;
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

/// What is wrong with the alarm rules of a device profile before they are compiled.
///
/// # Errors
/// They are too large; the way to where, and why.
pub(crate) fn check_alarm_rules(rules: &Value) -> Result<(), (String, String)> {
    ConfigurationSize::of(rules, MAX_RULES_BYTES, MAX_RULES_VALUES).map(drop)
}

/// What is wrong with the configuration of a calculated field before it is compiled.
///
/// # Errors
/// It is too large; the way to where, and why.
pub(crate) fn check_field(configuration: &Value) -> Result<(), (String, String)> {
    ConfigurationSize::of(configuration, MAX_FIELD_BYTES, MAX_FIELD_VALUES).map(drop)
}

/// What a chain may still compile.
#[derive(Debug, Default)]
pub(crate) struct CompileAllowance {
    bytes: Cell<usize>,
    /// Its regular expressions.
    pub(crate) regexes: RegexAllowance,
}

impl CompileAllowance {
    /// Takes the configuration of a node, in time by its size.
    ///
    /// # Errors
    /// It is beyond a bound of a node, or together with those before beyond that of a chain; names the field.
    pub(crate) fn take(&self, configuration: &Value) -> Result<(), NodeConfigError> {
        let size = ConfigurationSize::of(configuration, MAX_NODE_BYTES, MAX_NODE_VALUES)
            .map_err(|(path, problem)| NodeConfigError::new(path, problem))?;
        let bytes = self.bytes.get().saturating_add(size);
        if bytes > MAX_CHAIN_BYTES {
            return Err(NodeConfigError::new(
                CONFIGURATION,
                format!(
                    "the configurations of the rule chain have {bytes} bytes, allowed are {MAX_CHAIN_BYTES}"
                ),
            ));
        }
        self.bytes.set(bytes);
        Ok(())
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

struct ConfigurationSize {
    bytes: usize,
    values: usize,
    max_bytes: usize,
    max_values: usize,
}

impl ConfigurationSize {
    /// Bytes of a configuration, some for each value besides those of its texts.
    fn of(configuration: &Value, max_bytes: usize, max_values: usize) -> Result<usize, (String, String)> {
        let mut size = Self {
            bytes: 0,
            values: 0,
            max_bytes,
            max_values,
        };
        let added = size.add(configuration);
        added.map_err(|(path, problem)| (field(path), problem))?;
        Ok(size.bytes)
    }

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

    fn take(configuration: &Value) -> Result<(), String> {
        let taken = CompileAllowance::default().take(configuration);
        taken.map_err(|error| error.to_string())
    }

    #[test]
    fn a_configuration_has_so_much_and_no_more() {
        let texts = |count: usize, bytes: usize| json!({"a": {"b": vec!["x".repeat(bytes); count]}});
        assert_eq!(take(&texts(1, MAX_TEXT_BYTES)), Ok(()));
        assert_eq!(
            take(&texts(1, MAX_TEXT_BYTES + 1)).unwrap_err(),
            "a.b.0: has 262145 bytes, allowed are 262144"
        );
        assert_eq!(take(&texts(3, MAX_TEXT_BYTES)), Ok(()));
        assert_eq!(
            take(&texts(4, MAX_TEXT_BYTES)).unwrap_err(),
            "a.b.3: makes the configuration longer than 1048576 bytes"
        );
        assert_eq!(take(&texts(MAX_NODE_VALUES - 3, 1)), Ok(()));
        assert_eq!(
            take(&texts(MAX_NODE_VALUES - 2, 1)).unwrap_err(),
            "a.b.4997: has more than 5000 values"
        );
        let placeholders = |count: usize| json!({"t": "${".repeat(count)});
        assert_eq!(take(&placeholders(MAX_PLACEHOLDERS)), Ok(()));
        assert_eq!(
            take(&placeholders(MAX_PLACEHOLDERS + 1)).unwrap_err(),
            "t: has 2001 placeholders, allowed are 2000"
        );
        let names = json!({"$[a]".repeat(MAX_PLACEHOLDERS + 1): 1});
        assert!(take(&names).is_err(), "names may be patterns");
    }

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

    #[test]
    fn a_chain_has_so_many_bytes_and_no_more() {
        let allowance = CompileAllowance::default();
        let half = json!({"a": ["x".repeat(MAX_TEXT_BYTES), "x".repeat(MAX_TEXT_BYTES - 64)]});
        for _ in 0..8 {
            allowance.take(&half).unwrap();
        }
        let refused = allowance.take(&half).unwrap_err();
        assert_eq!(refused.field, CONFIGURATION);
        assert!(refused.problem.contains("allowed are 4194304"), "{refused}");
        allowance.take(&json!({})).unwrap();
    }
}
