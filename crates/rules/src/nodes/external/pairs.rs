//! Names and values that are patterns: headers, parameters, attributes.

use crate::message::Msg;
use crate::node::NodeError;
use crate::nodes::pattern::Pattern;

/// Patterns of names and values.
pub(super) struct Pairs(Vec<(Pattern, Pattern)>);

impl Pairs {
    pub(super) fn new<'a>(pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        Self(
            pairs
                .into_iter()
                .map(|(name, value)| (Pattern::new(name), Pattern::new(value)))
                .collect(),
        )
    }

    pub(super) fn of(pairs: &[(String, String)]) -> Self {
        Self::new(pairs.iter().map(|(name, value)| (name.as_str(), value.as_str())))
    }

    /// Names and values for a message.
    pub(super) fn resolve(&self, msg: &mut Msg) -> Result<Vec<(String, String)>, NodeError> {
        let pair = |(name, value): &(Pattern, Pattern), msg: &mut Msg| {
            Ok((name.resolve(msg)?.into_owned(), value.resolve(msg)?.into_owned()))
        };
        self.0.iter().map(|pattern| pair(pattern, msg)).collect()
    }
}
