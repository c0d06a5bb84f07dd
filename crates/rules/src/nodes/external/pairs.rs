//! Names and values that are patterns: headers, parameters, attributes.

use crate::message::RuleMessage;
use crate::node::NodeError;
use crate::nodes::text_template::TextTemplate;

/// Patterns of names and values.
pub(super) struct TemplatePairs(Vec<(TextTemplate, TextTemplate)>);

impl TemplatePairs {
    pub(super) fn new<'a>(pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        Self(
            pairs
                .into_iter()
                .map(|(name, value)| (TextTemplate::new(name), TextTemplate::new(value)))
                .collect(),
        )
    }

    pub(super) fn of(pairs: &[(String, String)]) -> Self {
        Self::new(pairs.iter().map(|(name, value)| (name.as_str(), value.as_str())))
    }

    /// Names and values for a message.
    pub(super) fn resolve(&self, msg: &mut RuleMessage) -> Result<Vec<(String, String)>, NodeError> {
        let pair = |(name, value): &(TextTemplate, TextTemplate), msg: &mut RuleMessage| {
            Ok((name.resolve(msg)?.into_owned(), value.resolve(msg)?.into_owned()))
        };
        self.0.iter().map(|pattern| pair(pattern, msg)).collect()
    }
}
