//! The configuration of `TbRestApiCallNode`.

use std::time::Duration;

use reqwest::Method;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::config::{ConnectorConfig, ConnectorConfigError, require};
use crate::credentials::ClientCredentials;
use crate::lenient;
use crate::secret::Secret;

/// The configuration of a REST call node.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct RestConfig {
    /// Pattern of the URL.
    #[serde(deserialize_with = "lenient::string")]
    #[schemars(title = "URL", extend("x-editor" = "template"))]
    pub rest_endpoint_url_pattern: String,
    /// The method, in capitals.
    #[serde(deserialize_with = "lenient::string")]
    #[schemars(extend("enum" = METHODS))]
    pub request_method: String,
    /// Patterns of the query's parameters. `None`, as older nodes have it, encodes the URL in another way.
    #[serde(default)]
    pub query_params: Option<Vec<QueryParameter>>,
    /// Patterns of names and values of headers.
    #[serde(deserialize_with = "lenient::pairs")]
    #[schemars(schema_with = "lenient::pairs_schema")]
    pub headers: Vec<(String, String)>,
    /// How long the server may be silent, in milliseconds; 0 leaves it to the platform.
    #[serde(deserialize_with = "lenient::integer")]
    #[schemars(title = "Read timeout", extend("x-unit" = "ms"))]
    pub read_timeout_ms: u32,
    /// How many requests may run at a time; 0 leaves it to the platform.
    #[serde(deserialize_with = "lenient::integer")]
    pub max_parallel_requests_count: u32,
    /// Whether a body that is a JSON text is sent without its quotes.
    #[serde(alias = "trimDoubleQuotes", deserialize_with = "lenient::boolean")]
    pub parse_to_plain_text: bool,
    /// Whether to go through a proxy.
    #[serde(deserialize_with = "lenient::boolean")]
    pub enable_proxy: bool,
    /// Whether the proxy is the one that the environment names (`HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY`).
    #[serde(deserialize_with = "lenient::boolean")]
    pub use_system_proxy_properties: bool,
    /// The host of the proxy.
    #[serde(deserialize_with = "lenient::string")]
    pub proxy_host: String,
    /// The port of the proxy.
    #[serde(deserialize_with = "lenient::integer")]
    pub proxy_port: u16,
    /// The user name at the proxy, if it asks for one.
    #[serde(deserialize_with = "lenient::string")]
    pub proxy_user: String,
    /// The password at the proxy.
    pub proxy_password: Secret,
    /// How to prove who calls.
    #[schemars(transform = ClientCredentials::for_servers)]
    pub credentials: ClientCredentials,
    /// Whether requests go without a body.
    #[serde(deserialize_with = "lenient::boolean")]
    pub ignore_request_body: bool,
    /// Pattern of the body; the message itself if there is none.
    #[serde(deserialize_with = "lenient::optional_string")]
    #[schemars(title = "Request body", extend("x-editor" = "template"))]
    pub request_body_template: Option<String>,
    /// The most to read of an answer, in KiB; 0 means 256.
    #[serde(deserialize_with = "lenient::integer")]
    #[schemars(title = "Largest answer", extend("x-unit" = "KiB"))]
    pub max_in_memory_buffer_size_in_kb: u32,
}

/// A parameter of the query: two patterns.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
pub struct QueryParameter {
    /// The name.
    #[serde(deserialize_with = "lenient::string")]
    #[schemars(extend("x-editor" = "template"))]
    pub key: String,
    /// The value.
    #[serde(deserialize_with = "lenient::string")]
    #[schemars(extend("x-editor" = "template"))]
    pub value: String,
}

impl Default for RestConfig {
    fn default() -> Self {
        Self {
            rest_endpoint_url_pattern: "http://localhost/api".to_owned(),
            request_method: "POST".to_owned(),
            query_params: Some(Vec::new()),
            headers: vec![("Content-Type".to_owned(), "application/json".to_owned())],
            read_timeout_ms: 0,
            max_parallel_requests_count: 0,
            parse_to_plain_text: false,
            enable_proxy: false,
            use_system_proxy_properties: false,
            proxy_host: String::new(),
            proxy_port: 0,
            proxy_user: String::new(),
            proxy_password: Secret::default(),
            credentials: ClientCredentials::Anonymous,
            ignore_request_body: false,
            request_body_template: None,
            max_in_memory_buffer_size_in_kb: 256,
        }
    }
}

/// The methods that a request can have.
const METHODS: [&str; 8] = [
    "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE",
];

impl ConnectorConfig for RestConfig {
    fn validate(&self) -> Result<(), ConnectorConfigError> {
        require("restEndpointUrlPattern", &self.rest_endpoint_url_pattern)?;
        if !METHODS.contains(&self.request_method.as_str()) {
            let problem = format!("must be one of {}", METHODS.join(", "));
            return Err(ConnectorConfigError::new("requestMethod", problem));
        }
        if self.enable_proxy && !self.use_system_proxy_properties {
            require("proxyHost", &self.proxy_host)?;
            crate::config::require_port("proxyPort", self.proxy_port)?;
        }
        self.credentials.tls().map(|_| ())
    }
}

impl RestConfig {
    pub(super) fn method(&self) -> Result<Method, ConnectorConfigError> {
        Method::from_bytes(self.request_method.as_bytes())
            .map_err(|_| ConnectorConfigError::new("requestMethod", "is no method"))
    }

    /// Whether requests carry a body.
    pub(super) fn has_body(&self) -> bool {
        !self.ignore_request_body
            && matches!(self.request_method.as_str(), "POST" | "PUT" | "PATCH" | "DELETE")
    }
}

/// The bounds that the platform sets to all REST call nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RestSettings {
    /// How many requests of a node may run at a time, whatever its configuration says.
    pub max_parallel_requests: usize,
    /// How many more may wait for that; a message beyond it fails at once.
    pub max_pending_requests: usize,
    /// The largest buffer that a node may ask for, in KiB.
    pub max_buffer_kb: u32,
    /// How long a server may be silent, whatever the configuration says.
    pub read_timeout: Duration,
}

impl Default for RestSettings {
    fn default() -> Self {
        Self {
            max_parallel_requests: 64,
            max_pending_requests: 10_000,
            max_buffer_kb: 25_000,
            read_timeout: Duration::from_secs(120),
        }
    }
}
