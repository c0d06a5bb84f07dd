//! Keys that are chosen by regular expressions, and the configurations that three nodes share.

use fancy_regex::{Regex, RegexBuilder};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::node::{ConfigError, NodeConfig};
use crate::nodes::part::{Part, required, upgrade_flag};
use crate::nodes::text::plain;

/// Steps back that matching one key may take.
const MAX_BACKTRACKS: usize = 100_000;

/// Regular expressions, one of which a whole key has to match.
#[derive(Debug)]
pub(super) struct KeyPatterns(Vec<KeyPattern>);

#[derive(Debug)]
enum KeyPattern {
    /// Has no characters with a meaning.
    Plain(String),
    Regex(Regex),
}

impl KeyPatterns {
    /// The expressions of a configuration.
    ///
    /// # Errors
    /// One does not compile.
    pub(super) fn new(patterns: &[String]) -> Result<Self, ConfigError> {
        let special = |c: char| r"\.+*?()|[]{}^$#&~-".contains(c) && c != '-';
        let compiled = patterns.iter().map(|pattern| {
            if !pattern.contains(special) {
                return Ok(KeyPattern::Plain(pattern.clone()));
            }
            let whole = format!(r"\A(?:{pattern})\z");
            let regex = RegexBuilder::new(&whole).backtrack_limit(MAX_BACKTRACKS).build();
            let regex = regex.map_err(|error| ConfigError::new("keys", format!("`{pattern}`: {error}")))?;
            Ok(KeyPattern::Regex(regex))
        });
        Ok(Self(compiled.collect::<Result<_, _>>()?))
    }

    /// Whether a key matches. One whose matching takes too long does not.
    pub(super) fn matches(&self, key: &str) -> bool {
        self.0.iter().any(|pattern| match pattern {
            KeyPattern::Plain(plain) => plain == key,
            KeyPattern::Regex(regex) => regex.is_match(key).unwrap_or(false),
        })
    }
}

/// The part of a message that a field of a configuration names, and the expressions in its field `keys`.
///
/// # Errors
/// A field is missing or wrong.
pub(super) fn part_and_keys(
    config: &NodeConfig<'_>,
    part_field: &str,
) -> Result<(Part, KeyPatterns), ConfigError> {
    #[derive(Deserialize)]
    struct Config {
        keys: Vec<String>,
    }
    let part = config.value.get(part_field).map(Part::deserialize);
    let part = required(part.and_then(Result::ok), part_field)?;
    Ok((part, KeyPatterns::new(&config.parse::<Config>()?.keys)?))
}

/// Brings up to date which part of a message a node works on. Version 0 had the flag `fromMetadata`, version 1 another name.
pub(super) fn upgrade(from_version: i32, mut configuration: Value, old: &str, new: &str) -> Value {
    match from_version {
        0 => upgrade_flag(&mut configuration, "fromMetadata", new, Part::Metadata),
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

    #[test]
    fn whole_keys_match() {
        let patterns = ["temp", "hum.*", "^(?!no).*_x$", "a|bc"].map(str::to_owned);
        let patterns = KeyPatterns::new(&patterns).unwrap();
        for (key, expected) in [
            ("temp", true),
            ("temperature", false),
            ("humidity", true),
            ("a_x", true),
            ("no_x", false),
            ("bc", true),
            ("abc", false),
        ] {
            assert_eq!(patterns.matches(key), expected, "{key}");
        }
        assert_eq!(KeyPatterns::new(&["(".to_owned()]).unwrap_err().field, "keys");
        let slow = KeyPatterns::new(&["(?=a)(a|a)*(?=b)b".to_owned()]).unwrap();
        assert!(!slow.matches(&"a".repeat(200)), "ends in time");
    }
}
