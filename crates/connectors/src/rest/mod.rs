//! REST calls to servers of the tenant's own.

mod client;
mod config;
mod status;
mod url;

pub(crate) use client::plain_text;
pub use client::{RestBody, RestCallClient, RestRequest};
pub use config::{QueryParameter, RestConfig, RestSettings};
