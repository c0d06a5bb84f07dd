//! The controller from request to answer, over real stores.

mod access;
mod delete;
mod ranges;
mod save;
mod world;
