//! Calculated fields: values that are derived from others.
//!
//! A [`CompiledField`] is a configuration, compiled once. [`CalculatedFieldState`] is what one entity has under one field: the values of the
//! arguments, windows of points, zones, open intervals. [`CompiledField::update`] takes new values, [`CompiledField::evaluate`] makes the
//! results. There is no I/O here: values come in as [`ArgumentUpdate`]s, scripts are called through [`ScriptRunner`], time is a
//! parameter, and what has to be done is told by an [`FieldOutcome`].
//!
//! | type | results |
//! |---|---|
//! | SIMPLE | an expression over the newest values; no allocation but for the result |
//! | SCRIPT | whatever a script returns |
//! | GEOFENCING | events and presence a group of zones, and relations with the zones the entity is in |
//! | PROPAGATION | the arguments, or what a script returns, at related entities |
//! | RELATED_ENTITIES_AGGREGATION | metrics over the newest values of related entities, at most once an interval |
//! | ENTITY_AGGREGATION | metrics over intervals of the entity's own series; the caller reads the series |
//!
//! Fields of type ALARM are [`fieldline_alarm_rules`].
//!
//! A field that has taken part in making a value is not evaluated because of it: `previous` goes along with each value,
//! and aggregations remember it until their next result, so that two of them cannot feed each other for ever.
//!
//! Differences from ThingsBoard, all on purpose: an attribute takes each write, whatever its time; a default gives way to
//! any value; an argument that is deleted and has no default makes the field wait; expired points of a window are never
//! used; averages are not cut to the digits of their input; MAX of negative numbers is right; zones that a search of
//! relations no longer finds are dropped.

mod aggregation;
mod check;
mod codec;
mod describe;
mod field;
mod geofencing;
mod input;
mod interval;
mod metric;
mod number;
mod outcome;
pub mod perimeter;
mod propagation;
mod related;
mod rolling;
mod script;
mod state;
mod update;

#[cfg(test)]
mod tests;

pub use check::check;
pub use codec::FieldStateError;
pub use field::CompiledField;
pub use fieldline_model::entity::calculated_field::{
    AggregationFunction, CalculatedFieldLimits, FieldConfigError, OutputStrategy, OutputStrategyType,
    RelationLevel,
};
pub use input::{FieldInput, FieldInputKind, FieldInputRole, FieldInputSource};
pub use number::rolling_number;
pub use outcome::{
    FieldEvaluationError, FieldOutcome, IntervalAnswer, IntervalQuery, Output, OutputKind, OutputRow,
    OutputTargets, RelationChange,
};
pub use script::{NoScriptRunner, ScriptRunner};
pub use state::CalculatedFieldState;
pub use update::ArgumentUpdate;
