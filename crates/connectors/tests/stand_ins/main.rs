//! The clients against stand-ins of services that cannot be run here, which check what they are sent.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails this way")]

mod ai;
mod aws;
mod configurations;
mod google;
mod limits;
mod others;
mod rest;
