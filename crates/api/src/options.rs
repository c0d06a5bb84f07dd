//! Settings of the REST API.

use fieldline_core::options::{ByteSize, HumanDuration};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::memory::BODY_EXPANSION;

/// Settings of the REST API and of authentication.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Options {
    /// Lifetime of an access token.
    pub access_token_ttl: HumanDuration,
    /// Lifetime of a refresh token.
    pub refresh_token_ttl: HumanDuration,
    /// Wrong passwords in a row after which a user is locked out for a while; 0 for no lockout.
    pub max_failed_logins: u32,
    /// How long a user is locked out after too many wrong passwords.
    pub lockout: HumanDuration,
    /// Login attempts per minute of one address (an IPv6 /64); 0 for no limit, as behind a proxy, where all come from
    /// one address.
    pub logins_per_minute: u32,
    /// Passwords hashed at the same time; each takes 19 MiB meanwhile.
    pub parallel_password_hashes: usize,
    /// Minimum length of a password.
    pub min_password_length: usize,
    /// Whether administrators may get tokens of their users, to see what the users see.
    pub user_token_access: bool,
    /// Memory for the data that entity queries cache; beyond it they read more from disk.
    pub query_memory: ByteSize,
    /// Memory for responses of the API: data read for them, and data that clients have not received yet. A tenant may
    /// hold a part, three eighths if it is alone; beyond it requests get 429, or 503 if other tenants hold the memory.
    pub answer_memory: ByteSize,
    /// Memory for request bodies of the API and the data parsed from them, shared in the same way; each byte counts six
    /// times.
    pub request_memory: ByteSize,
    /// Memory for WebSocket subscriptions and for updates that clients have not received yet, shared in the same way;
    /// beyond it commands are refused, and sockets closed.
    pub socket_memory: ByteSize,
    /// Whether strings that hold a number are converted to numbers when values are saved through the API or imported.
    /// For devices see `mqtt.json-type-cast`.
    pub json_type_cast: bool,
    /// Interval at which subscriptions re-evaluate counts and dynamic queries.
    pub live_refresh: HumanDuration,
    /// Largest body of a request.
    pub max_body: ByteSize,
    /// Largest OTA package that can be uploaded. The tenant profile limits the total of a tenant.
    pub max_package: ByteSize,
    /// Largest image or other resource that can be uploaded. The tenant profile may allow less.
    pub max_resource: ByteSize,
    /// Public address of the platform, for links, such as `https://iot.example.com`; if empty, it is taken from each
    /// request.
    pub public_url: String,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            access_token_ttl: HumanDuration::secs(9_000),
            refresh_token_ttl: HumanDuration::secs(604_800),
            max_failed_logins: 10,
            lockout: HumanDuration::secs(300),
            logins_per_minute: 300,
            parallel_password_hashes: 2,
            min_password_length: 6,
            user_token_access: true,
            query_memory: ByteSize::mib(256),
            answer_memory: ByteSize::mib(256),
            request_memory: ByteSize::mib(256),
            socket_memory: ByteSize::mib(256),
            json_type_cast: true,
            live_refresh: HumanDuration::secs(60),
            max_body: ByteSize::mib(16),
            max_package: ByteSize::mib(256),
            max_resource: ByteSize::mib(50),
            public_url: String::new(),
        }
    }
}

impl Options {
    /// Describes the problem of the settings, if any.
    pub fn problem(&self) -> Option<String> {
        if self.access_token_ttl < HumanDuration::secs(1) || self.refresh_token_ttl < self.access_token_ttl {
            return Some(
                "access-token-ttl must be at least 1s, and refresh-token-ttl no shorter than it".to_owned(),
            );
        }
        if !(1..=64).contains(&self.parallel_password_hashes) {
            return Some("parallel-password-hashes must be 1 to 64".to_owned());
        }
        if !(1..=128).contains(&self.min_password_length) {
            return Some("min-password-length must be 1 to 128".to_owned());
        }
        if self.live_refresh < HumanDuration::secs(1) {
            return Some("live-refresh must be at least 1s".to_owned());
        }
        if self.max_body < ByteSize::kib(1) {
            return Some("max-body must be at least 1KiB".to_owned());
        }
        if self.answer_memory < ByteSize::mib(16) || self.socket_memory < ByteSize::mib(16) {
            return Some("answer-memory and socket-memory must be at least 16MiB".to_owned());
        }
        // A tenant that is alone may hold three eighths of the memory.
        let largest = self
            .max_body
            .0
            .saturating_mul(BODY_EXPANSION as u64 * 8)
            .div_ceil(3);
        if self.request_memory < ByteSize(largest) {
            return Some(format!(
                "request-memory must be at least {}, 16 times max-body, or the largest bodies are never taken",
                ByteSize(largest)
            ));
        }
        if !(self.public_url.is_empty() || self.public_url.starts_with("http")) {
            return Some("public-url must be empty or start with http:// or https://".to_owned());
        }
        None
    }
}
