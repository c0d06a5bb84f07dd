//! The promises of the ports of `fieldline-core`, each written once as a function that a backend's tests call.

pub mod entities;
pub mod journal;
pub mod series;
pub mod two_writers;
