//! Topic names, topic filters and how they match (MQTT 5 §4.7, §4.8).

use thiserror::Error;

/// The reason why a topic filter is invalid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Error)]
pub enum TopicFilterError {
    /// The filter, or the filter after the share name, is empty.
    #[error("topic filter is empty")]
    Empty,
    /// It exceeds 65,535 bytes.
    #[error("topic filter exceeds 65,535 bytes")]
    TooLong,
    /// It contains U+0000.
    #[error("topic filter holds U+0000")]
    Nul,
    /// A wildcard does not occupy its whole level, or `#` is not last.
    #[error("topic filter has a misplaced wildcard")]
    Wildcard,
    /// The share name is empty or contains a wildcard.
    #[error("share name is empty or holds a wildcard")]
    ShareName,
}

/// Returns whether a message may be published under this name: not empty, no wildcards, no U+0000.
#[inline]
pub fn is_valid_name(name: &str) -> bool {
    !name.is_empty() && name.len() <= usize::from(u16::MAX) && !has_forbidden(name.as_bytes())
}

/// Returns whether the bytes of a topic name contain a wildcard or zero; without branches, so that it vectorises.
#[inline]
pub(crate) fn has_forbidden(name: &[u8]) -> bool {
    name.iter().fold(false, |found, &byte| {
        found | (byte == b'+') | (byte == b'#') | (byte == 0)
    })
}

/// A valid topic filter, with the share name split off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TopicFilter<'a> {
    /// The name in `$share/name/filter`.
    pub share_name: Option<&'a str>,
    /// The filter that topics are matched against.
    pub filter: &'a str,
}

impl<'a> TopicFilter<'a> {
    /// Splits off the share name and validates both.
    pub fn parse(text: &'a str) -> Result<Self, TopicFilterError> {
        if text.len() > usize::from(u16::MAX) {
            return Err(TopicFilterError::TooLong);
        }
        if text.as_bytes().contains(&0) {
            return Err(TopicFilterError::Nul);
        }
        let Some(shared) = text.strip_prefix("$share/") else {
            check_levels(text)?;
            return Ok(Self {
                share_name: None,
                filter: text,
            });
        };
        let (share_name, filter) = shared.split_once('/').unwrap_or((shared, ""));
        if share_name.is_empty() || share_name.contains(['+', '#']) {
            return Err(TopicFilterError::ShareName);
        }
        check_levels(filter)?;
        Ok(Self {
            share_name: Some(share_name),
            filter,
        })
    }

    /// Returns whether the filter contains a wildcard.
    pub fn has_wildcard(&self) -> bool {
        has_forbidden(self.filter.as_bytes())
    }

    /// Returns whether the subscription matches a topic.
    pub fn matches(&self, topic: &str) -> bool {
        matches(self.filter, topic)
    }
}

fn check_levels(filter: &str) -> Result<(), TopicFilterError> {
    if filter.is_empty() {
        return Err(TopicFilterError::Empty);
    }
    let mut levels = filter.split('/').peekable();
    while let Some(level) = levels.next() {
        let valid = match level {
            "#" => levels.peek().is_none(),
            "+" => true,
            name => !name.contains(['+', '#']),
        };
        if !valid {
            return Err(TopicFilterError::Wildcard);
        }
    }
    Ok(())
}

/// Returns whether a valid filter without share name matches a topic name.
///
/// A wildcard in the first level matches no topic that starts with `$` (§4.7.2), and `a/#` matches `a` too.
pub fn matches(filter: &str, topic: &str) -> bool {
    if topic.starts_with('$') && filter.starts_with(['+', '#']) {
        return false;
    }
    let mut names = topic.split('/');
    for level in filter.split('/') {
        if level == "#" {
            return true;
        }
        match names.next() {
            Some(name) if level == "+" || level == name => {}
            _ => return false,
        }
    }
    names.next().is_none()
}
