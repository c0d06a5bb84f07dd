//! Clients of the outside services that rule nodes talk to.
//!
//! Each module holds the configuration of one kind of node, read from the JSON that ThingsBoard stores, and a client
//! that sends one message at a time. Patterns are resolved by the caller; a client is handed the finished strings. It
//! connects when the first message comes or in the background, connects again by itself with growing pauses, and
//! bounds what waits, what runs at a time and what it reads of an answer. What it may connect to is said by its
//! [`egress::Egress`].
//!
//! All clients are made and used inside a Tokio runtime. They may be shared and dropped at any time: what still
//! waits fails.

pub mod ai;
pub mod aws;
pub mod azure;
mod backoff;
mod concurrency_limiter;
mod config;
mod credentials;
pub mod egress;
pub mod gcp;
mod http;
pub mod kafka;
mod lenient;
pub mod mail;
pub mod mqtt;
mod outcome;
mod percent;
pub mod rabbitmq;
pub mod rest;
mod secret;
pub mod slack;
pub mod sms;
mod tls;

pub use backoff::Backoff;
pub use config::{ConnectorConfig, ConnectorConfigError};
pub use credentials::{BasicCredentials, CertPemCredentials, ClientCredentials, SasCredentials};
pub use outcome::{ConnectorError, ConnectorFault, ConnectorOutcome, MetadataEntries};
pub use secret::Secret;
