//! Keys that are chosen by regular expressions, and the configurations that three nodes share.

use fieldline_model::budget::{BudgetOverrun, EvaluationBudget};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer};
use serde_json::{Value, json};

use crate::node::{NodeConfigError, NodeInitContext};
use crate::nodes::message_part::{MessagePart, upgrade_flag};
use crate::nodes::regex::{RegexAllowance, WholeMatch};
use crate::nodes::text::plain;

/// Regular expressions, one of which a whole key has to match.
#[derive(Debug)]
pub(super) struct KeyPatterns(Vec<KeyPattern>);

#[derive(Debug)]
enum KeyPattern {
    /// Has no characters with a meaning.
    Plain(String),
    Regex(WholeMatch),
}

impl KeyPatterns {
    /// The expressions of a configuration.
    ///
    /// # Errors
    /// One does not compile.
    pub(super) fn new(patterns: &[String], regexes: &RegexAllowance) -> Result<Self, NodeConfigError> {
        let special = |c: char| r"\.+*?()|[]{}^$#&~-".contains(c) && c != '-';
        let compiled = patterns.iter().map(|pattern| {
            if !pattern.contains(special) {
                return Ok(KeyPattern::Plain(pattern.clone()));
            }
            let regex = WholeMatch::new(pattern, "", regexes);
            regex
                .map(KeyPattern::Regex)
                .map_err(|error| NodeConfigError::new("keys", error))
        });
        Ok(Self(compiled.collect::<Result<_, _>>()?))
    }

    /// Whether a key matches. One whose matching takes too many steps back does not.
    ///
    /// # Errors
    /// The message has taken too much of the evaluation.
    pub(super) fn matches(&self, key: &str, budget: &mut EvaluationBudget) -> Result<bool, BudgetOverrun> {
        for pattern in &self.0 {
            let matched = match pattern {
                KeyPattern::Plain(plain) => {
                    budget.step(1)?;
                    plain == key
                }
                KeyPattern::Regex(regex) => regex.matches(key, budget)?,
            };
            if matched {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// Keys to find, as they are configured.
#[derive(Deserialize, JsonSchema)]
pub(super) struct KeysConfig {
    /// Keys, or regular expressions that match whole keys.
    #[schemars(extend("x-editor" = "key"))]
    keys: Vec<String>,
}

/// The expressions in the field `keys` of a configuration.
///
/// # Errors
/// The field is missing or wrong.
pub(super) fn configured(config: &NodeInitContext<'_>) -> Result<KeyPatterns, NodeConfigError> {
    KeyPatterns::new(&config.parse::<KeysConfig>()?.keys, config.regexes)
}

/// Reads the part of a message that a field names; what is none reads as missing.
pub(super) fn part<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<MessagePart>, D::Error> {
    let value = Value::deserialize(deserializer)?;
    Ok(MessagePart::deserialize(value).ok())
}

/// Brings up to date which part of a message a node works on. Version 0 had the flag `fromMetadata`, version 1 another name.
pub(super) fn upgrade(from_version: i32, mut configuration: Value, old: &str, new: &str) -> Value {
    match from_version {
        0 => upgrade_flag(&mut configuration, "fromMetadata", new, MessagePart::Metadata),
        1 => {
            if let Some(fields) = configuration.as_object_mut()
                && !fields.contains_key(new)
                && let Some(name @ ("DATA" | "METADATA")) = fields.get(old).map(plain).as_deref()
            {
                let name = json!(name);
                fields.shift_remove(old);
                fields.insert(new.to_owned(), name);
            }
        }
        _ => {}
    }
    configuration
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compile(patterns: &[String]) -> Result<KeyPatterns, NodeConfigError> {
        KeyPatterns::new(patterns, &RegexAllowance::default())
    }

    #[test]
    fn whole_keys_match() {
        let patterns = ["temp", "hum.*", "^(?!no).*_x$", "a|bc"].map(str::to_owned);
        let patterns = compile(&patterns).unwrap();
        for (key, expected) in [
            ("temp", true),
            ("temperature", false),
            ("humidity", true),
            ("a_x", true),
            ("no_x", false),
            ("bc", true),
            ("abc", false),
        ] {
            assert_eq!(
                patterns.matches(key, &mut EvaluationBudget::new()),
                Ok(expected),
                "{key}"
            );
        }
        assert_eq!(compile(&["(".to_owned()]).unwrap_err().field, "keys");
        let slow = compile(&["(?=a)(a|a)*(?=b)b".to_owned()]).unwrap();
        let matched = slow.matches(&"a".repeat(200), &mut EvaluationBudget::new());
        assert_eq!(matched, Ok(false), "ends in time");
    }
}
