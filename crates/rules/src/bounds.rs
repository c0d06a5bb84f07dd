//! Limits of what users may have the engine compile: sizes of the configurations of nodes and of whole chains. They are
//! enforced at each save and again at each load, because an older version may have stored more.

use std::cell::Cell;

use fieldline_model::configuration_size::{CONFIGURATION, bytes_of};
use serde_json::Value;

use crate::node::NodeConfigError;
use crate::nodes::regex::RegexAllowance;

/// Longest configuration of a node, bytes.
pub const MAX_NODE_BYTES: usize = 1 << 20;
/// Longest sum of the configurations of a chain's nodes, bytes.
pub const MAX_CHAIN_BYTES: usize = 4 << 20;
/// Most values in the configuration of a node, nested values included.
pub const MAX_NODE_VALUES: usize = 5_000;

/// What the compilation of one chain has used of its limits.
#[derive(Debug, Default)]
pub struct CompileAllowance {
    bytes: Cell<usize>,
    /// The part of the chain's regular expressions.
    pub(crate) regexes: RegexAllowance,
}

impl CompileAllowance {
    /// Counts the configuration of a node, in time proportional to its size.
    ///
    /// # Errors
    /// It exceeds a limit of a node, or the chain's limit together with those before; names the field.
    pub(crate) fn take(&self, configuration: &Value) -> Result<(), NodeConfigError> {
        let size = bytes_of(configuration, MAX_NODE_BYTES, MAX_NODE_VALUES)
            .map_err(|error| NodeConfigError::new(error.field, error.problem))?;
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

#[cfg(test)]
mod tests {
    use fieldline_model::configuration_size::{MAX_PLACEHOLDERS, MAX_TEXT_BYTES};
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
