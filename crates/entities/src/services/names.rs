//! What to do when the name of a new entity is taken.

use super::{ServiceError, ServiceResult, random_text};

/// What is appended to a taken name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum NameSuffix {
    /// Six random letters and digits.
    #[default]
    Random,
    /// The first free number from 1 on.
    Incremental,
}

/// What to do when a name is taken.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum NameConflict {
    /// Refuse.
    #[default]
    Fail,
    /// Append a separator and a suffix.
    Uniquify {
        /// Stands between name and suffix.
        separator: String,
        /// What is appended.
        suffix: NameSuffix,
    },
}

/// Names that are tried before giving up.
const MOST_TRIES: u32 = 1_000;

impl NameConflict {
    /// The names to try after the wanted one; none where a taken name is refused.
    pub(super) fn alternatives<'a>(&'a self, name: &'a str) -> impl Iterator<Item = String> + Send + 'a {
        let tries = match self {
            Self::Fail => 0,
            Self::Uniquify { .. } => MOST_TRIES,
        };
        (1..=tries).map(move |number| match self {
            Self::Fail => name.to_owned(),
            Self::Uniquify { separator, suffix } => match suffix {
                NameSuffix::Random => format!("{name}{separator}{}", random_text(6)),
                NameSuffix::Incremental => format!("{name}{separator}{number}"),
            },
        })
    }

    /// Whether a taken name is replaced.
    pub(super) fn uniquifies(&self) -> bool {
        matches!(self, Self::Uniquify { .. })
    }
}

/// The answer when every name that was tried is taken.
pub(super) fn no_free_name<T>(name: &str) -> ServiceResult<T> {
    Err(ServiceError::invalid(format!(
        "There is no free name like '{name}'!"
    )))
}
