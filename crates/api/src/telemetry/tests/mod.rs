//! Tests of the controller from request to response, on real stores.

mod access;
mod delete;
mod fixture;
mod ranges;
mod save;
