//! The controller from request to answer, over real stores.

mod access;
mod delete;
mod fixture;
mod ranges;
mod save;
