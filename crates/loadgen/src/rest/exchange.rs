//! Requests and responses of the REST client.

use std::io;
use std::time::Duration;

use serde_json::Value;
use ureq::Agent;
use ureq::http::{Response, Uri};

use crate::error::{LoadError, LoadResult};

/// Timeout of a connection attempt.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// An idle connection is not used any more after this: servers close theirs after 15 s or later, and a request sent at
/// that moment is lost.
const IDLE_TIMEOUT: Duration = Duration::from_secs(10);

/// Longest response that is accepted, bytes.
const MAX_ANSWER_BYTES: u64 = 64 * 1024 * 1024;

/// Characters shown of an error body that has no JSON message.
const MAX_MESSAGE_CHARS: usize = 200;

/// One request.
#[derive(Clone, Copy)]
pub(super) struct RestClientRequest<'a> {
    pub(super) method: RestClientMethod<'a>,
    pub(super) path: &'a str,
    pub(super) query: &'a [(&'a str, &'a str)],
}

#[derive(Clone, Copy)]
pub(super) enum RestClientMethod<'a> {
    Get,
    Post(&'a Value),
    Delete,
}

/// A response.
pub(super) struct RestClientResponse {
    pub(super) status: u16,
    body: Vec<u8>,
}

impl RestClientRequest<'_> {
    pub(super) fn path_and_query(&self) -> String {
        let mut text = self.path.to_owned();
        for (index, (name, value)) in self.query.iter().enumerate() {
            text.push(if index == 0 { '?' } else { '&' });
            percent_encode(name, &mut text);
            text.push('=');
            percent_encode(value, &mut text);
        }
        text
    }

    const fn method_name(&self) -> &'static str {
        match self.method {
            RestClientMethod::Get => "GET",
            RestClientMethod::Post(_) => "POST",
            RestClientMethod::Delete => "DELETE",
        }
    }

    pub(super) fn refusal(&self, status: u16, message: String) -> LoadError {
        LoadError::Refused {
            method: self.method_name(),
            path: self.path_and_query(),
            status,
            message,
        }
    }

    pub(super) fn bad_answer(&self, reason: impl Into<String>) -> LoadError {
        LoadError::BadAnswer {
            method: self.method_name(),
            path: self.path_and_query(),
            reason: reason.into(),
        }
    }
}

impl RestClientResponse {
    pub(super) fn read(mut response: Response<ureq::Body>) -> Result<Self, ureq::Error> {
        let body = response.body_mut().with_config().limit(MAX_ANSWER_BYTES);
        Ok(Self {
            body: body.read_to_vec()?,
            status: response.status().as_u16(),
        })
    }

    pub(super) fn into_value(self, call: RestClientRequest<'_>) -> LoadResult<Value> {
        if !(200..300).contains(&self.status) {
            return Err(call.refusal(self.status, message_of(&self.body)));
        }
        if self.body.is_empty() {
            return Ok(Value::Null);
        }
        serde_json::from_slice(&self.body)
            .map_err(|error| call.bad_answer(format!("it is not JSON: {error}")))
    }
}

/// Creates a blocking client that keeps up to `pool_size` connections open, and returns every response, whatever its
/// status. It uses no proxy, which would be measured along with the server.
pub(crate) fn agent(pool_size: usize, timeout: Duration) -> Agent {
    Agent::config_builder()
        .http_status_as_error(false)
        .max_redirects(0)
        .proxy(None)
        .user_agent("fieldline-loadgen")
        .max_idle_connections(pool_size)
        .max_idle_connections_per_host(pool_size)
        .max_idle_age(IDLE_TIMEOUT)
        .timeout_connect(Some(CONNECT_TIMEOUT.min(timeout)))
        .timeout_global(Some(timeout))
        .build()
        .into()
}

/// Returns the I/O error of a failed connection, or the original error if the connection is not at fault.
pub(crate) fn connection_error(error: ureq::Error) -> Result<io::Error, ureq::Error> {
    match error {
        ureq::Error::Io(error) => Ok(error),
        ureq::Error::Timeout(timeout) => Ok(io::Error::new(
            io::ErrorKind::TimedOut,
            format!("no answer in time ({timeout})"),
        )),
        ureq::Error::HostNotFound => Ok(io::Error::new(io::ErrorKind::NotFound, "there is no such host")),
        ureq::Error::ConnectionFailed => Ok(io::Error::other("no connection")),
        other => Err(other),
    }
}

/// Returns the message in the body of an error, for people.
pub(crate) fn message_of(body: &[u8]) -> String {
    let json: Option<Value> = serde_json::from_slice(body).ok();
    if let Some(message) = json.as_ref().and_then(|json| json["message"].as_str()) {
        return shortened(message);
    }
    match String::from_utf8_lossy(body).trim() {
        "" => "no reason given".to_owned(),
        text => shortened(text),
    }
}

/// Puts text on one line, and cuts it off if it is long.
fn shortened(text: &str) -> String {
    let mut words = text.split_whitespace();
    let mut line = words.next().unwrap_or_default().to_owned();
    for word in words {
        if line.len() > 4 * MAX_MESSAGE_CHARS {
            break;
        }
        line.push(' ');
        line.push_str(word);
    }
    match line.char_indices().nth(MAX_MESSAGE_CHARS) {
        Some((cut, _)) => format!("{}…", &line[..cut]),
        None => line,
    }
}

/// Returns scheme, host, port and path of a server, without a trailing slash.
pub(crate) fn base_url(url: &str) -> LoadResult<String> {
    // A password in the address would appear in error messages.
    if url.contains('@') {
        return Err(LoadError::InvalidOption(
            "the address of the REST API must not hold a user or a password".to_owned(),
        ));
    }
    let invalid = || LoadError::InvalidOption(format!("'{url}' is not the address of an HTTP server"));
    let base = url.trim_end_matches('/');
    let uri: Uri = base.parse().map_err(|_| invalid())?;
    let is_http = matches!(uri.scheme_str(), Some("http" | "https"));
    if !is_http || uri.host().is_none_or(str::is_empty) || uri.query().is_some() {
        return Err(invalid());
    }
    Ok(base.to_owned())
}

/// Appends text to a query string, percent-encoded.
fn percent_encode(text: &str, to: &mut String) {
    const HEX: &[u8; 16] = b"0123456789ABCDEF";
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            to.push(char::from(byte));
        } else {
            to.push('%');
            to.push(char::from(HEX[usize::from(byte >> 4)]));
            to.push(char::from(HEX[usize::from(byte & 15)]));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_that_of_an_http_server() {
        for (url, base) in [
            ("http://127.0.0.1:8080", "http://127.0.0.1:8080"),
            ("http://localhost:8080/", "http://localhost:8080"),
            ("https://iot.example/tb//", "https://iot.example/tb"),
        ] {
            assert_eq!(base_url(url).unwrap(), base);
        }
        for url in [
            "",
            "localhost:8080",
            "mqtt://localhost",
            "http://",
            "http://a b",
            "http://h/?x=1",
        ] {
            assert!(matches!(base_url(url), Err(LoadError::InvalidOption(_))), "{url}");
        }
        let error = base_url("http://me:secret@localhost").unwrap_err().to_string();
        assert!(!error.contains("secret"), "{error}");
    }

    #[test]
    fn query_values_are_percent_encoded() {
        let call = RestClientRequest {
            method: RestClientMethod::Get,
            path: "/api/x",
            query: &[("name", "a b&c=ü"), ("keys", "k-1,k_2")],
        };
        assert_eq!(
            call.path_and_query(),
            "/api/x?name=a%20b%26c%3D%C3%BC&keys=k-1%2Ck_2"
        );
    }

    #[test]
    fn the_message_of_an_error_is_one_short_line() {
        for (body, message) in [
            (
                r#"{"status":400,"message":"Device with such name already exists!"}"#,
                "Device with such name already exists!",
            ),
            ("Invalid\n  interval\n", "Invalid interval"),
            (r#"{"error":1}"#, r#"{"error":1}"#),
            ("", "no reason given"),
            (" \n", "no reason given"),
        ] {
            assert_eq!(message_of(body.as_bytes()), message);
        }
        let long = message_of("ä".repeat(100_000).as_bytes());
        assert_eq!(long.chars().count(), MAX_MESSAGE_CHARS + 1);
        assert_eq!(
            message_of("a ".repeat(100_000).as_bytes()).len(),
            MAX_MESSAGE_CHARS + '…'.len_utf8()
        );
    }
}
