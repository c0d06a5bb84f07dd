//! The REST API: authentication, entities, telemetry, and the OpenAPI description generated from them.
//!
//! Every endpoint is registered once, with everything about it: who may call it, what it changes, what the audit log
//! records of it ([`endpoints`]). The caller is checked before the handler runs. Access to single entities is decided
//! in `fieldline_entities::access`.

mod alarm_data;
mod audit;
mod auth;
mod caller;
mod compression;
mod controllers;
mod endpoint;
mod error;
mod extract;
mod mail_consents;
mod mails;
mod map_file;
mod memory;
mod openapi;
mod options;
mod ota;
mod resources;
mod rest_limits;
mod router;
mod state;
mod telemetry;
mod user_agent;
mod ws;

pub use auth::{TokenKey, TokenKeyError, TokenSettings, stored_token_settings};
pub use endpoint::{EndpointAccess, RestEndpoint};
pub use map_file::map_file_problem;
pub use memory::PUBLIC_MEMORY;
pub use options::Options;
pub use router::{endpoints, router};
pub use state::{ApiDependencies, CertificateFiles, DevicePorts};
