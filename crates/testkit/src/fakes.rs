//! Stand-ins of services that cannot be run here, which check what they are sent.

#![expect(clippy::unwrap_used, reason = "a test fails this way")]

pub mod aws;
pub mod azure;
pub mod google;
pub mod server;

/// Names and values of their own.
pub fn pairs(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect()
}
