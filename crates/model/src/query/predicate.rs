//! What must hold for a field or value.

use serde::{Deserialize, Serialize};

use super::EntityQueryKey;

/// Whether all parts must hold or one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "UPPERCASE")]
pub enum ComplexOperation {
    /// All.
    #[default]
    And,
    /// One at least.
    Or,
}

/// How a text is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
#[allow(missing_docs, reason = "the names are their own documentation")]
pub enum StringOperation {
    Equal,
    NotEqual,
    StartsWith,
    EndsWith,
    Contains,
    NotContains,
    /// One of a list with commas between the texts.
    In,
    /// None of a list with commas between the texts.
    NotIn,
}

impl StringOperation {
    /// Whether what a text is compared with is a list.
    pub const fn takes_list(self) -> bool {
        matches!(self, Self::In | Self::NotIn)
    }

    /// Whether it holds for a text and what that is compared with: one text, or the elements of a list.
    pub fn holds<T: AsRef<str>>(self, text: &str, others: &[T]) -> bool {
        let other = others.first().map_or("", AsRef::as_ref);
        match self {
            Self::Equal => text == other,
            Self::NotEqual => text != other,
            Self::StartsWith => text.starts_with(other),
            Self::EndsWith => text.ends_with(other),
            Self::Contains => text.contains(other),
            Self::NotContains => !text.contains(other),
            Self::In => others.iter().any(|one| one.as_ref() == text),
            Self::NotIn => others.iter().all(|one| one.as_ref() != text),
        }
    }
}

/// How a number is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
#[allow(missing_docs, reason = "the names are their own documentation")]
pub enum NumericOperation {
    Equal,
    NotEqual,
    Greater,
    Less,
    GreaterOrEqual,
    LessOrEqual,
}

impl NumericOperation {
    /// Whether it holds for a number and what that is compared with.
    pub fn holds(self, number: f64, other: f64) -> bool {
        match self {
            Self::Equal => number == other,
            Self::NotEqual => number != other,
            Self::Greater => number > other,
            Self::Less => number < other,
            Self::GreaterOrEqual => number >= other,
            Self::LessOrEqual => number <= other,
        }
    }
}

/// How a flag is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
#[allow(missing_docs, reason = "the names are their own documentation")]
pub enum BooleanOperation {
    Equal,
    NotEqual,
}

/// Whose attribute a dynamic value is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
#[allow(missing_docs, reason = "the names are their own documentation")]
pub enum DynamicSource {
    CurrentTenant,
    CurrentCustomer,
    CurrentUser,
    CurrentDevice,
}

/// A value that is a server attribute of the one who asks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct DynamicValue {
    /// Whose attribute it is.
    pub source_type: DynamicSource,
    /// Its name.
    pub source_attribute: String,
    /// Whether the owner's is taken where there is none: the customer's for a user, the tenant's for a customer.
    #[serde(default, deserialize_with = "crate::entity::null_as_default")]
    pub inherit: bool,
}

/// What is compared with: the user's value, else the dynamic one, else the default one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct PredicateValue<T> {
    /// Where nothing else is given.
    pub default_value: Option<T>,
    /// What the user has set.
    #[serde(default = "none")]
    pub user_value: Option<T>,
    /// An attribute of the one who asks.
    #[serde(default)]
    pub dynamic_value: Option<DynamicValue>,
}

fn none<T>() -> Option<T> {
    None
}

/// What must hold for a field or value.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(tag = "type", rename_all = "UPPERCASE", rename_all_fields = "camelCase")]
#[schema(as = Predicate)]
pub enum KeyFilterPredicate {
    /// About a text.
    String {
        /// How it is compared.
        operation: StringOperation,
        /// With what.
        value: PredicateValue<String>,
        /// Whether case does not matter.
        #[serde(default, deserialize_with = "crate::entity::null_as_default")]
        ignore_case: bool,
    },
    /// About a number.
    Numeric {
        /// How it is compared.
        operation: NumericOperation,
        /// With what.
        value: PredicateValue<f64>,
    },
    /// About a flag.
    Boolean {
        /// How it is compared.
        operation: BooleanOperation,
        /// With what.
        value: PredicateValue<bool>,
    },
    /// Made of others.
    Complex {
        /// Whether all must hold or one.
        operation: ComplexOperation,
        /// The others.
        #[serde(deserialize_with = "crate::entity::null_as_default")]
        #[schema(no_recursion)]
        predicates: Vec<KeyFilterPredicate>,
    },
}

/// A condition on one field or value.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct KeyFilter {
    /// The field or value.
    pub key: EntityQueryKey,
    /// What clients take it for: `STRING`, `NUMERIC`, `BOOLEAN`, `DATE_TIME`.
    #[serde(default)]
    pub value_type: Option<String>,
    /// What must hold.
    pub predicate: KeyFilterPredicate,
}
