//! Google Cloud, by its HTTP interfaces.

mod pubsub;
mod token;

pub use pubsub::{PubSubClient, PubSubConfig};
pub(crate) use token::{CLOUD_PLATFORM, TokenSource};
