//! What must hold for a field or value.

use serde::{Deserialize, Serialize};

use super::EntityKey;

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
pub enum Predicate {
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
        predicates: Vec<Predicate>,
    },
}

/// A condition on one field or value.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct KeyFilter {
    /// The field or value.
    pub key: EntityKey,
    /// What clients take it for: `STRING`, `NUMERIC`, `BOOLEAN`, `DATE_TIME`.
    #[serde(default)]
    pub value_type: Option<String>,
    /// What must hold.
    pub predicate: Predicate,
}
