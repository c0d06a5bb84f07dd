//! The contract of the entity stores on both databases, and what is special about each.

mod embedded;
mod entity_rows;
mod postgres;
