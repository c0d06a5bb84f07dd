//! Servers of the operator's own that are asked over HTTP.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde_json::Value;

/// How a server is asked.
#[derive(Debug, Clone, PartialEq)]
pub struct RestEndpointSettings {
    /// The method, in capitals.
    pub method: String,
    /// How to prove who asks, as rule nodes have it: `anonymous`, `basic` or `cert.PEM`.
    pub credentials: Value,
    /// How long the server may be silent.
    pub read_timeout: Duration,
    /// How many requests may run at a time, [`Self::MOST_PARALLEL`] at most; 0 leaves it to the platform.
    pub max_parallel: u32,
    /// The most to read of an answer, KiB; 0 leaves it to the platform.
    pub max_answer_kib: u32,
}

impl RestEndpointSettings {
    /// How many requests to a server may run at a time, whatever the settings say: clients that log in wait for them. Each server
    /// has its own, so that a slow one keeps nobody else waiting.
    pub const MOST_PARALLEL: u32 = 256;
}

/// One request.
#[derive(Debug, Clone, Copy)]
pub struct RestEndpointCall<'a> {
    /// The URL.
    pub url: &'a str,
    /// Parameters that are added to its query.
    pub query: &'a [(String, String)],
    /// The headers.
    pub headers: &'a [(String, String)],
    /// The body, where the method has one.
    pub body: &'a str,
}

/// A server that can be asked.
#[async_trait]
pub trait RestEndpoint: Send + Sync {
    /// Checks what can be told of a request without sending it.
    ///
    /// # Errors
    /// Its URL, or a header, can never be sent.
    fn check(&self, call: RestEndpointCall<'_>) -> Result<(), String>;

    /// Asks, and returns the body of the answer; `{}` for none.
    ///
    /// # Errors
    /// Why there is no answer with a status of 2xx.
    async fn call(&self, call: RestEndpointCall<'_>) -> Result<String, RestEndpointError>;
}

/// Why there is no answer with a status of 2xx.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RestEndpointError {
    /// The status of the answer, if there was one.
    pub status: Option<u16>,
    /// The reason, in words that name no secret.
    pub message: String,
}

impl RestEndpointError {
    /// Whether the server has not answered, or says that it cannot: another time it may.
    pub fn is_passing(&self) -> bool {
        self.status
            .is_none_or(|status| status >= 500 || [408, 425, 429].contains(&status))
    }
}

/// Makes connections to servers.
pub trait RestEndpoints: Send + Sync {
    /// A server that is asked so.
    ///
    /// # Errors
    /// The setting that cannot work, and why.
    fn open(&self, settings: &RestEndpointSettings) -> Result<Arc<dyn RestEndpoint>, String>;
}

/// Reaches no server: for what is asked of none.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoRestEndpoints;

impl RestEndpoints for NoRestEndpoints {
    fn open(&self, _: &RestEndpointSettings) -> Result<Arc<dyn RestEndpoint>, String> {
        Err("servers cannot be asked here".to_owned())
    }
}
