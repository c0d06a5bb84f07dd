//! The clients against real servers, which the scripts in `tests/services` of the repository start.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails this way")]

mod kafka;
mod mqtt;
mod proxy;
mod rabbitmq;
mod smtp;

/// What a script has told about its server.
fn told(name: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| panic!("{name} is not set; run the test by its script"))
}

/// A name that no other test uses.
fn unique(prefix: &str) -> String {
    use std::sync::atomic::{AtomicU32, Ordering};
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    format!("{prefix}-{}-{number}", std::process::id())
}
