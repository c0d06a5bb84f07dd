//! The clients against real servers, which the scripts in `tests/services` of the repository start.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails this way")]

mod kafka;
mod mqtt;
mod rabbitmq;
mod smtp;
