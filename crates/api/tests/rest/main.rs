//! The REST API over real stores, asked the way clients ask.

#![allow(clippy::unwrap_used, reason = "tests")]

mod devices;
mod docs;
mod login;
mod owners;
mod profiles;
mod users;
mod walls;
mod world;
