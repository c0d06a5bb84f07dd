//! Sending signed requests.

use std::time::Duration;

use chrono::Utc;
use reqwest::header::{HeaderName, HeaderValue};
use reqwest::{Method, Url};
use serde_json::Value;

use super::signature::{self, AwsCredentials, SignableRequest};
use crate::concurrency_limiter::ConcurrencyLimiter;
use crate::config::{ConnectorConfigError, require};
use crate::egress::{Egress, HttpClient, ProxySetting};
use crate::http::{self, ServiceResponse};
use crate::secret::Secret;

/// How many requests of a node may run at a time, and how many more may wait.
const MAX_PARALLEL: usize = 64;
const MAX_WAITING: usize = 10_000;

/// A service, as it is called in host names and in messages.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AwsService {
    /// The prefix of the host.
    pub(crate) host: &'static str,
    /// The name that is signed.
    pub(crate) signed: &'static str,
    /// The name for people.
    pub(crate) name: &'static str,
}

/// A request to a service.
#[derive(Debug, Default)]
pub(crate) struct AwsRequest<'a> {
    /// Path and query, encoded.
    pub(crate) target: &'a str,
    /// The base URL, where it is not that of the region.
    pub(crate) endpoint: Option<&'a str>,
    pub(crate) headers: &'a [(&'a str, &'a str)],
    pub(crate) body: String,
}

/// A client of one service in one region.
#[derive(Debug)]
pub(crate) struct AwsClient {
    client: HttpClient,
    service: AwsService,
    region: String,
    endpoint: String,
    credentials: AwsCredentials,
    gate: ConcurrencyLimiter,
}

/// Checks what all services need; `fields` are the names of access key, secret and region.
pub(super) fn check(
    fields: [&str; 3],
    access_key: &str,
    secret: &Secret,
    region: &str,
) -> Result<(), ConnectorConfigError> {
    require(fields[0], access_key)?;
    require(fields[1], secret.expose())?;
    require(fields[2], region)?;
    if !region
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    {
        return Err(ConnectorConfigError::new(fields[2], "is no name of a region"));
    }
    Ok(())
}

impl AwsClient {
    /// `endpoint` takes the place of the URL of the region.
    pub(crate) fn new(
        service: AwsService,
        credentials: (&str, &Secret),
        region: &str,
        endpoint: Option<&str>,
        timeouts: (Duration, Duration),
        egress: &Egress,
    ) -> Result<Self, ConnectorConfigError> {
        let tls = crate::tls::client_config("", None)?;
        let client = HttpClient::new(egress, ProxySetting::Environment, move || {
            Ok(http::builder(tls.clone())
                .connect_timeout(timeouts.0)
                .timeout(timeouts.1))
        })?;
        let domain = if region.starts_with("cn-") {
            "amazonaws.com.cn"
        } else {
            "amazonaws.com"
        };
        Ok(Self {
            client,
            service,
            region: region.to_owned(),
            endpoint: match endpoint {
                Some(endpoint) => endpoint.trim_end_matches('/').to_owned(),
                None => format!("https://{}.{region}.{domain}", service.host),
            },
            credentials: AwsCredentials {
                access_key_id: credentials.0.trim().to_owned(),
                secret_access_key: credentials.1.clone(),
            },
            gate: ConcurrencyLimiter::new(MAX_PARALLEL, MAX_WAITING),
        })
    }

    /// Sends a POST request; anything but a status of 2xx is an error with the words of the service.
    pub(crate) async fn call(&self, call: AwsRequest<'_>) -> Result<ServiceResponse, String> {
        let _permit = self
            .gate
            .acquire()
            .await
            .map_err(|_| "too many requests wait".to_owned())?;
        let base = call.endpoint.unwrap_or(&self.endpoint);
        let url =
            Url::parse(&format!("{base}{}", call.target)).map_err(|_| format!("'{base}' is not a URL"))?;
        let now = Utc::now();
        let mut headers: Vec<(String, String)> = call
            .headers
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect();
        headers.push(("host".to_owned(), host(&url)));
        headers.push(("x-amz-date".to_owned(), signature::timestamp(now)));
        headers.sort();
        let signable = SignableRequest {
            method: "POST",
            url: &url,
            headers: &headers,
            body: call.body.as_bytes(),
            region: &self.region,
            service: self.service.signed,
        };
        let authorization = signature::authorization(&signable, &self.credentials, now);
        let mut request = self.client.request(Method::POST, url);
        for (name, value) in headers
            .into_iter()
            .chain([("authorization".to_owned(), authorization)])
        {
            let name = HeaderName::from_bytes(name.as_bytes()).map_err(|error| error.to_string())?;
            let value = HeaderValue::from_str(&value).map_err(|error| error.to_string())?;
            request = request.header(name, value);
        }
        let answer = http::exchange(&self.client, request.body(call.body)).await?;
        if answer.status.is_success() {
            Ok(answer)
        } else {
            Err(self.failure(&answer))
        }
    }

    fn failure(&self, answer: &ServiceResponse) -> String {
        let (code, message) = if answer.body.trim_start().starts_with('<') {
            (tag(&answer.body, "Code"), tag(&answer.body, "Message"))
        } else {
            json_error(answer)
        };
        format!(
            "{} (Service: {}; Status Code: {}; Error Code: {}; Request ID: {})",
            message.unwrap_or_else(|| "request failed".to_owned()),
            self.service.name,
            answer.status.as_u16(),
            code.unwrap_or_else(|| "null".to_owned()),
            request_id(answer)
        )
    }
}

fn json_error(answer: &ServiceResponse) -> (Option<String>, Option<String>) {
    let body: Value = serde_json::from_str(&answer.body).unwrap_or_default();
    let text = |name: &str| body.get(name).and_then(Value::as_str).map(str::to_owned);
    let header = Some(answer.header("x-amzn-errortype").to_owned()).filter(|name| !name.is_empty());
    let code = text("__type").or(header).map(|code| {
        let code = code.split(':').next().unwrap_or_default();
        code.rsplit('#').next().unwrap_or_default().to_owned()
    });
    let message = ["message", "Message", "errorMessage"].into_iter().find_map(text);
    (code, message)
}

/// Returns how the service names the request.
pub(super) fn request_id(answer: &ServiceResponse) -> String {
    match answer.header("x-amzn-requestid") {
        "" => tag(&answer.body, "RequestId").unwrap_or_default(),
        id => id.to_owned(),
    }
}

/// Returns the text of the first XML element of a name.
pub(super) fn tag(xml: &str, name: &str) -> Option<String> {
    let (_, rest) = xml.split_once(&format!("<{name}>"))?;
    let (text, _) = rest.split_once(&format!("</{name}>"))?;
    let text = text
        .replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&quot;", "\"")
        .replace("&apos;", "'");
    Some(text.replace("&amp;", "&"))
}

fn host(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    match url.port() {
        Some(port) => format!("{host}:{port}"),
        None => host.to_owned(),
    }
}
