//! What all clients over HTTP share.

use std::error::Error;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use reqwest::redirect::Policy;
use reqwest::{Client, ClientBuilder, Response};

use crate::config::ConnectorConfigError;
use crate::egress::{Egress, HttpClient, ProxySetting};
use crate::tls;

/// How long a connection may take to come about.
pub(crate) const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// The most that is read of an answer of a cloud service.
pub(crate) const MAX_ANSWER: usize = 8 << 20;

/// A client that follows no redirects, since no client of the nodes does.
pub(crate) fn builder(tls: rustls::ClientConfig) -> ClientBuilder {
    Client::builder()
        .tls_backend_preconfigured(tls)
        .redirect(Policy::none())
        .referer(false)
        .connect_timeout(CONNECT_TIMEOUT)
        .pool_max_idle_per_host(16)
        .user_agent(concat!("fieldline/", env!("CARGO_PKG_VERSION")))
}

/// A client for a public service, with a time for everything of a request together.
pub(crate) fn service_client(egress: &Egress, timeout: Duration) -> Result<HttpClient, ConnectorConfigError> {
    let tls = tls::client_config("", None)?;
    HttpClient::new(egress, ProxySetting::Environment, move || {
        Ok(builder(tls.clone()).timeout(timeout))
    })
}

pub(crate) fn build_client(builder: ClientBuilder) -> Result<Client, ConnectorConfigError> {
    builder
        .build()
        .map_err(|error| ConnectorConfigError::new("configuration", describe(error)))
}

/// Says what went wrong with its causes, and without the URL, which may hold secrets.
pub(crate) fn describe(error: reqwest::Error) -> String {
    let error = error.without_url();
    if error.is_timeout() {
        return "no answer in time".to_owned();
    }
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let more = error.to_string();
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        cause = error.source();
    }
    text
}

/// Why a body was not read.
#[derive(Debug)]
pub(crate) enum BodyError {
    TooLarge,
    Broken(String),
}

/// Reads a body of at most `limit` bytes.
pub(crate) async fn read_body(mut response: Response, limit: usize) -> Result<Vec<u8>, BodyError> {
    if response
        .content_length()
        .is_some_and(|length| length > limit as u64)
    {
        return Err(BodyError::TooLarge);
    }
    let mut body = Vec::new();
    loop {
        match response.chunk().await {
            Ok(Some(chunk)) if body.len() + chunk.len() > limit => return Err(BodyError::TooLarge),
            Ok(Some(chunk)) => body.extend_from_slice(&chunk),
            Ok(None) => return Ok(body),
            Err(error) => return Err(BodyError::Broken(describe(error))),
        }
    }
}

/// A whole answer of a service.
#[derive(Debug)]
pub(crate) struct ServiceResponse {
    pub(crate) status: reqwest::StatusCode,
    pub(crate) headers: reqwest::header::HeaderMap,
    pub(crate) body: String,
}

impl ServiceResponse {
    /// Returns a header, or an empty text.
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers
            .get(name)
            .and_then(|value| value.to_str().ok())
            .unwrap_or_default()
    }
}

/// Sends a request to a service and reads its answer.
pub(crate) async fn exchange(
    client: &HttpClient,
    request: reqwest::RequestBuilder,
) -> Result<ServiceResponse, String> {
    let response = client.send(request).await?;
    let status = response.status();
    let headers = response.headers().clone();
    match read_body(response, MAX_ANSWER).await {
        Ok(body) => Ok(ServiceResponse {
            status,
            headers,
            body: String::from_utf8_lossy(&body).into_owned(),
        }),
        Err(BodyError::TooLarge) => Err(format!("the answer exceeds {MAX_ANSWER} bytes")),
        Err(BodyError::Broken(error)) => Err(error),
    }
}

/// The value of an `Authorization` header with user name and password.
pub(crate) fn basic(username: &str, password: &str) -> String {
    let credentials = STANDARD.encode(format!("{username}:{password}"));
    format!("Basic {credentials}")
}
