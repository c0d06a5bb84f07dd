//! Where Fieldline keeps things: entities in SQL, time series, latest values and attributes in an embedded LSM engine.

pub mod broker;
#[cfg(feature = "cassandra")]
mod cql_session;
#[cfg(feature = "sql")]
mod page_size;
pub mod series;
#[cfg(feature = "sql")]
pub mod sql;
#[cfg(feature = "cassandra")]
pub mod thingsboard;

#[cfg(test)]
#[cfg(feature = "sql")]
mod tests;
