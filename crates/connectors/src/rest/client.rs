//! Calling a server.

use std::time::Duration;

use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Method, Response, StatusCode, Url};
use serde_json::value::RawValue;

use super::config::{RestConfig, RestSettings};
use super::{status, url};
use crate::concurrency_limiter::ConcurrencyLimiter;
use crate::config::{ConnectorConfig, ConnectorConfigError};
use crate::credentials::ClientCredentials;
use crate::egress::{Egress, HttpClient, ProxySetting};
use crate::http::{self, BodyError};
use crate::outcome::{ConnectorError, ConnectorFault, ConnectorOutcome, MetadataEntries, entry};

const STATUS: &str = "status";
const STATUS_CODE: &str = "statusCode";
const STATUS_REASON: &str = "statusReason";
const ERROR_BODY: &str = "error_body";
/// How long an answer that nobody reads may take.
const UNREAD_ANSWER: Duration = Duration::from_secs(5);

/// Sends requests as one REST call node is configured.
#[derive(Debug)]
pub struct RestCallClient {
    client: HttpClient,
    method: Method,
    has_body: bool,
    plain_text: bool,
    authorization: Option<HeaderValue>,
    max_answer: usize,
    gate: ConcurrencyLimiter,
}

/// One request; its patterns are resolved.
#[derive(Debug, Clone, Copy)]
pub struct RestRequest<'a> {
    /// The URL.
    pub url: &'a str,
    /// The parameters of the query; `None` if the configuration has `None`.
    pub query: Option<&'a [(String, String)]>,
    /// The headers.
    pub headers: &'a [(String, String)],
    /// What becomes the body, if the method has one.
    pub body: RestBody<'a>,
}

/// What the body of a request is made of.
#[derive(Debug, Clone, Copy)]
pub enum RestBody<'a> {
    /// The body of the message.
    Message(&'a str),
    /// The body template, resolved.
    Template(&'a str),
}

impl RestCallClient {
    /// Makes a client. Fails if the configuration is wrong or beyond what the platform allows.
    pub fn new(
        config: &RestConfig,
        settings: &RestSettings,
        egress: &Egress,
    ) -> Result<Self, ConnectorConfigError> {
        config.validate()?;
        if config.max_in_memory_buffer_size_in_kb > settings.max_buffer_kb {
            let problem = format!("exceeds the limit of {} KB", settings.max_buffer_kb);
            return Err(ConnectorConfigError::new("maxInMemoryBufferSizeInKb", problem));
        }
        let buffer_kb = match config.max_in_memory_buffer_size_in_kb {
            0 => 256,
            kb => kb as usize,
        };
        let parallel = match config.max_parallel_requests_count as usize {
            0 => settings.max_parallel_requests,
            own => own.min(settings.max_parallel_requests),
        };
        let read_timeout = match config.read_timeout_ms {
            0 => settings.read_timeout,
            own => settings.read_timeout.min(Duration::from_millis(own.into())),
        };
        let (tls, own) = (config.credentials.tls()?, config.clone());
        let client = HttpClient::new(egress, proxy(config)?, move || {
            let builder = http::builder(tls.clone())
                .read_timeout(read_timeout)
                .pool_max_idle_per_host(parallel);
            with_proxy(builder, &own)
        })?;
        Ok(Self {
            client,
            method: config.method()?,
            has_body: config.has_body(),
            plain_text: config.parse_to_plain_text,
            authorization: authorization(&config.credentials)?,
            max_answer: buffer_kb * 1024,
            gate: ConcurrencyLimiter::new(parallel.max(1), settings.max_pending_requests),
        })
    }

    /// Says what is wrong with a request that can never be sent.
    ///
    /// # Errors
    /// The URL, or a header.
    pub fn check(&self, request: &RestRequest<'_>) -> Result<(), String> {
        url::build(request.url, request.query)?;
        self.headers(request.headers).map(drop)
    }

    /// Sends a request and waits for its whole answer. Anything but a status of 2xx is a failure.
    pub async fn send(&self, request: &RestRequest<'_>) -> Result<ConnectorOutcome, ConnectorError> {
        let _permit = self.acquire().await?;
        let (url, response) = self.exchange(request).await?;
        self.finish(&url, response).await
    }

    /// Sends a request for whose answer nobody asks: a status of 2xx says that it was taken, whatever follows.
    pub async fn deliver(&self, request: &RestRequest<'_>) -> Result<(), ConnectorError> {
        let _permit = self.acquire().await?;
        let (url, response) = self.exchange(request).await?;
        let status = response.status();
        // The connection can be used again after the whole answer.
        let _ = tokio::time::timeout(UNREAD_ANSWER, http::read_body(response, self.max_answer)).await;
        match status.is_success() {
            true => Ok(()),
            false => {
                Err(ConnectorError::bare(self.describe_request(&url, status)).with_fault(fault_of(status)))
            }
        }
    }

    async fn acquire(&self) -> Result<impl Sized, ConnectorError> {
        let permit = self.gate.acquire().await;
        permit.map_err(|_| ConnectorError::with_error_metadata("Max pending requests limit exceeded!"))
    }

    /// Sends a request, and waits for the head of its answer.
    async fn exchange(&self, request: &RestRequest<'_>) -> Result<(Url, Response), ConnectorError> {
        let url = url::build(request.url, request.query).map_err(ConnectorError::with_error_metadata)?;
        let mut headers = self
            .headers(request.headers)
            .map_err(ConnectorError::with_error_metadata)?;
        let mut call = self.client.request(self.method.clone(), url.clone());
        if self.has_body {
            let (body, content_type) = self
                .body(request.body)
                .map_err(ConnectorError::with_error_metadata)?;
            headers
                .entry(CONTENT_TYPE)
                .or_insert(HeaderValue::from_static(content_type));
            call = call.body(body);
        }
        let sent = self.client.send(call.headers(headers)).await;
        let response = sent.map_err(ConnectorError::with_error_metadata)?;
        Ok((url, response))
    }

    fn headers(&self, given: &[(String, String)]) -> Result<HeaderMap, String> {
        let mut headers = HeaderMap::with_capacity(given.len() + 1);
        for (name, value) in given {
            let name = HeaderName::from_bytes(name.as_bytes())
                .map_err(|_| format!("'{name}' is not the name of a header"))?;
            let value = HeaderValue::from_str(value).map_err(|_| {
                format!("the value of the header '{name}' has characters that are not allowed")
            })?;
            headers.append(name, value);
        }
        if let Some(authorization) = &self.authorization {
            headers.append(AUTHORIZATION, authorization.clone());
        }
        Ok(headers)
    }

    fn body(&self, body: RestBody<'_>) -> Result<(String, &'static str), String> {
        const TEXT: &str = "text/plain;charset=UTF-8";
        const JSON: &str = "application/json";
        match body {
            RestBody::Template(text) if self.plain_text => Ok((text.to_owned(), TEXT)),
            RestBody::Message(text) if self.plain_text => Ok((plain_text(text), TEXT)),
            RestBody::Template(text) if !is_json(text) => {
                Err("Request body template produced invalid JSON".to_owned())
            }
            RestBody::Message(text) if !is_json(text) => {
                Err("The body of the message is not JSON".to_owned())
            }
            RestBody::Template(text) | RestBody::Message(text) => Ok((text.to_owned(), JSON)),
        }
    }

    async fn finish(&self, url: &Url, response: Response) -> Result<ConnectorOutcome, ConnectorError> {
        let status = response.status();
        let headers = response.headers().clone();
        let body = match http::read_body(response, self.max_answer).await {
            Ok(body) => text(&headers, &body),
            Err(error) => return Err(self.body_error(url, status, error)),
        };
        if status.is_client_error() || status.is_server_error() {
            return Err(self.status_error(url, status, body));
        }
        let mut metadata = vec![
            entry(STATUS, status::name(status)),
            entry(STATUS_CODE, status.as_str()),
            entry(STATUS_REASON, status::reason(status)),
        ];
        if !status.is_success() {
            metadata.push(entry(ERROR_BODY, body));
            status::add_headers(&headers, &mut metadata);
            return Err(ConnectorError {
                metadata,
                ..ConnectorError::bare(self.describe_request(url, status))
            });
        }
        status::add_headers(&headers, &mut metadata);
        Ok(ConnectorOutcome {
            body: Some(if body.is_empty() { "{}".to_owned() } else { body }),
            metadata,
        })
    }

    /// A status of 4xx or 5xx.
    fn status_error(&self, url: &Url, status: StatusCode, body: String) -> ConnectorError {
        let mut error = ConnectorError::with_error_metadata(self.describe_request(url, status))
            .with_fault(fault_of(status));
        error.metadata.extend(failure(status, body));
        error
    }

    fn body_error(&self, url: &Url, status: StatusCode, error: BodyError) -> ConnectorError {
        let problem = match error {
            BodyError::TooLarge => format!("exceeded limit on max bytes to buffer: {}", self.max_answer),
            BodyError::Broken(error) => error,
        };
        let line = self.describe_request(url, status);
        let mut error =
            ConnectorError::with_error_metadata(format!("{line}, but response failed with cause: {problem}"));
        error.metadata.extend(failure(status, String::new()));
        error
    }

    /// Names the request without its query, which may hold secrets.
    fn describe_request(&self, url: &Url, status: StatusCode) -> String {
        let mut shown = url.clone();
        shown.set_query(None);
        shown.set_fragment(None);
        let _ = shown.set_username("");
        let _ = shown.set_password(None);
        format!(
            "{} {} from {} {shown}",
            status.as_str(),
            status::reason(status),
            self.method
        )
    }
}

/// What a status of 4xx or 5xx finds fault with. One that asks for other credentials is not about the message.
fn fault_of(status: StatusCode) -> ConnectorFault {
    match status.as_u16() {
        404 | 405 | 410 => ConnectorFault::Destination,
        401 | 403 | 407 => ConnectorFault::Service,
        408 | 425 | 429 | 502..=504 => ConnectorFault::Busy,
        400..500 => ConnectorFault::Message,
        _ => ConnectorFault::Service,
    }
}

fn failure(status: StatusCode, body: String) -> MetadataEntries {
    vec![
        entry(STATUS, status::reason(status)),
        entry(STATUS_CODE, status.as_str()),
        entry(ERROR_BODY, body),
    ]
}

fn with_proxy(
    builder: reqwest::ClientBuilder,
    config: &RestConfig,
) -> Result<reqwest::ClientBuilder, ConnectorConfigError> {
    if !config.enable_proxy {
        return Ok(builder.no_proxy());
    }
    if config.use_system_proxy_properties {
        const NAMES: [&str; 3] = ["HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY"];
        let is_set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        if !NAMES
            .iter()
            .any(|name| is_set(name) || is_set(&name.to_lowercase()))
        {
            let problem = format!(
                "the environment of the platform names no proxy in {}",
                NAMES.join(", ")
            );
            return Err(ConnectorConfigError::new("useSystemProxyProperties", problem));
        }
        return Ok(builder);
    }
    let mut proxy = reqwest::Proxy::all(proxy_url(config))
        .map_err(|_| ConnectorConfigError::new("proxyHost", "is no host"))?;
    if !config.proxy_user.is_empty() && !config.proxy_password.is_empty() {
        proxy = proxy.basic_auth(&config.proxy_user, config.proxy_password.expose());
    }
    Ok(builder.no_proxy().proxy(proxy))
}

/// Which proxy that is, as the way out has to know it.
fn proxy(config: &RestConfig) -> Result<ProxySetting, ConnectorConfigError> {
    if !config.enable_proxy {
        return Ok(ProxySetting::None);
    }
    if config.use_system_proxy_properties {
        return Ok(ProxySetting::Environment);
    }
    // Read as the client reads it, so that nothing else is looked at than what is connected to.
    let url = Url::parse(&proxy_url(config)).ok();
    match url.as_ref().and_then(Url::host_str) {
        Some(host) => Ok(ProxySetting::Own {
            host: host.to_owned(),
            port: url
                .as_ref()
                .and_then(Url::port_or_known_default)
                .unwrap_or_default(),
        }),
        None => Err(ConnectorConfigError::new("proxyHost", "is no host")),
    }
}

fn proxy_url(config: &RestConfig) -> String {
    format!("http://{}:{}", config.proxy_host, config.proxy_port)
}

fn authorization(credentials: &ClientCredentials) -> Result<Option<HeaderValue>, ConnectorConfigError> {
    let ClientCredentials::Basic(basic) = credentials else {
        return Ok(None);
    };
    let mut value = HeaderValue::from_str(&http::basic(&basic.username, basic.password.expose()))
        .map_err(|_| ConnectorConfigError::new("credentials.username", "cannot be sent"))?;
    value.set_sensitive(true);
    Ok(Some(value))
}

fn is_json(text: &str) -> bool {
    serde_json::from_str::<&RawValue>(text).is_ok()
}

/// Takes a JSON text out of its quotes; anything else stays as it is.
pub(crate) fn plain_text(data: &str) -> String {
    if data.len() >= 2 && data.starts_with('"') && data.ends_with('"') {
        serde_json::from_str(data).unwrap_or_else(|_| data.to_owned())
    } else {
        data.to_owned()
    }
}

/// Decodes an answer: Latin-1 where the server says so, UTF-8 otherwise.
fn text(headers: &HeaderMap, body: &[u8]) -> String {
    let latin = headers
        .get(CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
        .is_some_and(|value| value.to_ascii_lowercase().contains("charset=iso-8859-1"));
    if latin {
        body.iter().copied().map(char::from).collect()
    } else {
        String::from_utf8_lossy(body).into_owned()
    }
}
