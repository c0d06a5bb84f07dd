//! Who may connect to the publish/subscribe broker, and on which topics: credentials of clients, the ways in which clients
//! show who they are, blocked clients, and those that were refused. Names and JSON are TBMQ's.
//!
//! | module | job |
//! |---|---|
//! | `service`, `provider_service`, `refused` | what administrators change, and what they see: credentials; providers; blocks and refused clients |
//! | `import` | many credentials from one CSV text |
//! | `login`, `enhanced` | lets a client in or not: by what its CONNECT says, or after an exchange of messages |
//! | `cache` | what log-ins ask for, read once in a while |
//! | `prepared`, `prepared_providers`, `rules`, `patterns` | credentials, providers and topics, compiled |
//! | `values` | what credentials say, and what is checked before they are stored |
//! | `providers`, `provider_settings`, `provider_store` | the ways in which clients show who they are: their order and their settings |
//! | `jwt`, `token_keys`, `key_sets` | tokens, and the keys that they are signed with, also published ones |
//! | `http_provider`, `http_body`, `address_turns`, `scram` | servers that are asked, and proofs of a password |
//! | `blocked`, `unauthorized` | clients that may not connect, and those that were refused |

mod address_turns;
mod blocked;
mod cache;
mod enhanced;
#[cfg(test)]
mod fake_server;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
mod http_body;
mod http_provider;
mod import;
mod jwt;
mod key_sets;
mod login;
mod patterns;
mod prepared;
mod prepared_providers;
mod provider_service;
mod provider_settings;
mod provider_store;
mod providers;
mod refused;
mod rules;
mod scram;
mod service;
mod snapshot;
mod token_keys;
mod unauthorized;
mod values;

use std::sync::Arc;
use std::time::Duration;

use crate::password::PasswordHashPool;
use crate::services::ServiceContext;

pub use enhanced::ScramExchange;
pub use import::{CredentialsColumn, CredentialsImport};
pub use login::{ClientLogin, CommonNames};
pub use provider_settings::{AuthProvider, AuthProviderChange, BasicStrategy, ClientCertificates};
pub use providers::{AuthProviderType, ORDER_KEY, PROVIDERS_KEY, auth_provider_order};
pub use refused::{BLOCKED_KEPT_MINUTES, BlockedClientStatus};
pub use service::PasswordChange;

/// Passwords of clients that are checked at once. They have a pool of their own: a fleet that connects must not keep people
/// from logging in, nor the other way round.
const PARALLEL_PASSWORDS: usize = 2;
/// How long a server may take that an administrator has tried.
const PROBE_WAIT: Duration = Duration::from_secs(15);
/// About the memory that access takes: the cache, and the passwords that are checked at once, bytes.
pub const MEMORY: u64 = cache::CACHED_BYTES + PARALLEL_PASSWORDS as u64 * PasswordHashPool::MEMORY;

/// Access of clients to the broker. Clones share what is cached, and who was refused.
#[derive(Clone)]
pub struct BrokerAccessService(Arc<AccessState>);

struct AccessState {
    context: Arc<ServiceContext>,
    /// Checks the passwords of clients.
    passwords: PasswordHashPool,
    cache: cache::AccessCache,
    unauthorized: unauthorized::UnauthorizedClients,
    /// Whoever changes the settings of providers has this.
    provider_changes: tokio::sync::Mutex<()>,
}

impl BrokerAccessService {
    /// Access by what the stores of a context have.
    pub fn new(context: &Arc<ServiceContext>) -> Self {
        Self(Arc::new(AccessState {
            context: context.clone(),
            passwords: PasswordHashPool::new(PARALLEL_PASSWORDS),
            cache: cache::AccessCache::new(),
            unauthorized: unauthorized::UnauthorizedClients::default(),
            provider_changes: tokio::sync::Mutex::default(),
        }))
    }
}

impl AccessState {
    fn now(&self) -> i64 {
        self.context.clock.now_ms()
    }
}

/// Credentials with a value, for tests.
#[cfg(test)]
fn test_credentials(
    kind: fieldline_model::entity::MqttCredentialsType,
    value: &serde_json::Value,
) -> fieldline_model::entity::MqttClientCredentials {
    fieldline_model::entity::MqttClientCredentials {
        id: uuid::Uuid::nil(),
        created_time: 0,
        name: "a".to_owned(),
        client_type: fieldline_model::entity::MqttClientType::Device,
        credentials_type: kind,
        credentials_id: String::new(),
        credentials_value: value.to_string(),
        additional_info: serde_json::Value::Null,
    }
}
