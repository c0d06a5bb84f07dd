//! A server of the operator's own that is asked whether a client may connect.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use fieldline_core::ports::{
    ClientGrant, RestEndpoint, RestEndpointCall, RestEndpointSettings, RestEndpoints,
};
use fieldline_core::web_url::is_web_url;
use fieldline_model::entity::{MqttClientType, null_as_default};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Value, json};

use super::address_turns::AddressTurns;
use super::http_body::{BodyTemplate, ClientFields};
use super::login::ClientLogin;
use super::rules::CompiledRules;
use super::values::{TopicRuleLists, check_rules};
use crate::services::{ServiceError, ServiceResult};

/// Largest body that is sent, bytes, before what the client says is put into it.
const MAX_BODY: usize = 64 << 10;
/// Largest answer that may be asked for, KiB.
const MAX_ANSWER_KIB: u32 = 25_000;
/// How long an answer may take where the settings do not say: less than the 10 seconds that `broker.connect-timeout` leaves a
/// client at first.
const USUAL_WAIT: Duration = Duration::from_secs(8);
/// How long an answer may take, whatever the settings say.
const LONGEST_WAIT: Duration = Duration::from_secs(60);
/// How many requests run at a time where the settings do not say.
const USUAL_PARALLEL: u32 = 100;
/// Why the next provider is asked where no answer came.
const NO_ANSWER: &str = "HTTP authentication failed: no answer in time";
/// Fields of credentials that are never shown.
const SECRETS: [&str; 3] = ["password", "privateKey", "privateKeyPassword"];

/// Settings of `HTTP`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct HttpConfiguration {
    #[serde(deserialize_with = "null_as_default")]
    pub(super) rest_endpoint_url: String,
    #[serde(deserialize_with = "null_as_default")]
    pub(super) request_method: String,
    #[serde(deserialize_with = "null_as_anonymous")]
    pub(super) credentials: Value,
    #[serde(deserialize_with = "null_as_default")]
    pub(super) headers: BTreeMap<String, String>,
    /// What is sent, with what the client says in the places of `${clientId}`, `${username}`, `${password}` and `${commonName}`.
    #[serde(deserialize_with = "null_as_default")]
    pub(super) request_body: String,
    #[serde(deserialize_with = "null_as_default")]
    pub(super) read_timeout_ms: u32,
    #[serde(deserialize_with = "null_as_default")]
    pub(super) max_parallel_requests_count: u32,
    #[serde(deserialize_with = "null_as_default")]
    pub(super) max_in_memory_buffer_size_in_kb: u32,
    #[serde(deserialize_with = "null_as_default")]
    pub(super) default_client_type: MqttClientType,
    pub(super) auth_rules: Option<TopicRuleLists>,
}

impl Default for HttpConfiguration {
    fn default() -> Self {
        let body = json!({ "clientId": "${clientId}", "username": "${username}", "password": "${password}" });
        Self {
            rest_endpoint_url: "http://localhost:8080".to_owned(),
            request_method: "POST".to_owned(),
            credentials: anonymous(),
            headers: BTreeMap::from([("Content-Type".to_owned(), "application/json".to_owned())]),
            request_body: format!("{body:#}"),
            read_timeout_ms: 5_000,
            max_parallel_requests_count: USUAL_PARALLEL,
            max_in_memory_buffer_size_in_kb: 256,
            default_client_type: MqttClientType::Device,
            auth_rules: Some(TopicRuleLists::everything()),
        }
    }
}

/// Credentials of somebody who proves nothing.
pub(super) fn anonymous() -> Value {
    json!({ "type": "anonymous" })
}

pub(super) fn null_as_anonymous<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Value, D::Error> {
    let given = Option::<Value>::deserialize(deserializer)?;
    Ok(given.unwrap_or_else(anonymous))
}

/// Checks that headers can be sent.
pub(super) fn check_headers(headers: &BTreeMap<String, String>) -> ServiceResult<()> {
    let is_name = |name: &str| {
        !name.is_empty()
            && name
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte))
    };
    let is_value = |value: &str| {
        value
            .bytes()
            .all(|byte| byte == b'\t' || (byte >= b' ' && byte != 0x7f))
    };
    match headers
        .iter()
        .find(|(name, value)| !is_name(name) || !is_value(value))
    {
        Some((name, _)) => Err(ServiceError::invalid(format!(
            "Validation error: the header '{name}' cannot be sent"
        ))),
        None => Ok(()),
    }
}

/// Whether the value of a header may be a secret, by its name.
fn is_secret_header(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    ["auth", "key", "token", "secret", "cookie", "password"]
        .iter()
        .any(|part| name.contains(part))
}

/// Takes the values out of headers that may be secret.
pub(super) fn hide_headers(headers: &mut BTreeMap<String, String>) {
    for (name, value) in headers {
        if is_secret_header(name) {
            value.clear();
        }
    }
}

/// Takes the values of other headers where these have none and may be secret.
pub(super) fn keep_headers(headers: &mut BTreeMap<String, String>, before: &BTreeMap<String, String>) {
    for (name, value) in headers {
        if value.is_empty()
            && is_secret_header(name)
            && let Some(kept) = before.get(name)
        {
            value.clone_from(kept);
        }
    }
}

/// Takes the secrets of other credentials where these have none: people do not see them, and send what they see.
pub(super) fn keep_secrets(credentials: &mut Value, before: &Value) {
    if credentials.get("type") != before.get("type") {
        return;
    }
    let Some(fields) = credentials.as_object_mut() else {
        return;
    };
    for secret in SECRETS {
        let is_given = fields
            .get(secret)
            .is_some_and(|given| given.as_str().is_some_and(|text| !text.is_empty()));
        if let Some(kept) = before.get(secret).filter(|_| !is_given) {
            fields.insert(secret.to_owned(), kept.clone());
        }
    }
}

/// Takes the secrets out of credentials.
pub(super) fn hide_secrets(credentials: &mut Value) {
    if let Some(fields) = credentials.as_object_mut() {
        for secret in SECRETS {
            fields.remove(secret);
        }
    }
}

impl HttpConfiguration {
    /// Checks settings before they are stored.
    pub(super) fn check(&self) -> ServiceResult<()> {
        let invalid = |message: String| Err(ServiceError::invalid(message));
        for (field, text) in [
            ("restEndpointUrl", &self.rest_endpoint_url),
            ("requestMethod", &self.request_method),
            ("requestBody", &self.request_body),
        ] {
            if text.trim().is_empty() {
                return invalid(format!("Validation error: {field} must not be blank"));
            }
        }
        if !is_web_url(&self.rest_endpoint_url) {
            return invalid("Validation error: restEndpointUrl must be an http or https URL".to_owned());
        }
        if self.request_body.len() > MAX_BODY {
            return invalid(format!(
                "Validation error: requestBody must not be longer than {MAX_BODY} bytes"
            ));
        }
        if self.max_in_memory_buffer_size_in_kb > MAX_ANSWER_KIB {
            return invalid(format!(
                "Validation error: maxInMemoryBufferSizeInKb must not be more than {MAX_ANSWER_KIB}"
            ));
        }
        check_headers(&self.headers)?;
        check_rules(self.auth_rules.as_ref(), None)
    }

    pub(super) fn keep_secrets(&mut self, before: &Self) {
        // Secrets go to the server that they were given for.
        if self.rest_endpoint_url == before.rest_endpoint_url {
            keep_secrets(&mut self.credentials, &before.credentials);
            keep_headers(&mut self.headers, &before.headers);
        }
    }

    /// The settings without secrets.
    pub(super) fn shown(mut self) -> Self {
        hide_secrets(&mut self.credentials);
        hide_headers(&mut self.headers);
        self
    }

    /// How long an answer may take, with the wait for a request of others to end.
    fn wait(&self) -> Duration {
        match self.read_timeout_ms {
            0 => USUAL_WAIT,
            ms => LONGEST_WAIT.min(Duration::from_millis(ms.into())),
        }
    }

    /// How many requests run at a time.
    fn parallel(&self) -> u32 {
        match self.max_parallel_requests_count {
            0 => USUAL_PARALLEL,
            count => count,
        }
    }

    /// Whether requests have a body; what a client says is in the query of others.
    fn has_body(&self) -> bool {
        matches!(self.request_method.as_str(), "POST" | "PUT" | "PATCH")
    }

    /// Whether the body is that of a form.
    fn is_form(&self) -> bool {
        let mut types = self
            .headers
            .iter()
            .filter(|(name, _)| name.eq_ignore_ascii_case("content-type"));
        types.any(|(_, value)| {
            let kind = value.split(';').next().unwrap_or_default().trim();
            kind.eq_ignore_ascii_case("application/x-www-form-urlencoded")
        })
    }

    fn open(&self, method: &str, endpoints: &dyn RestEndpoints) -> Result<Arc<dyn RestEndpoint>, String> {
        endpoints.open(&RestEndpointSettings {
            method: method.to_owned(),
            credentials: self.credentials.clone(),
            read_timeout: self.wait(),
            max_parallel: self.parallel(),
            max_answer_kib: self.max_in_memory_buffer_size_in_kb,
        })
    }

    fn headers(&self) -> Vec<(String, String)> {
        self.headers.clone().into_iter().collect()
    }

    /// Asks the server for the head of its answer.
    ///
    /// # Errors
    /// Why it cannot be asked, or has not answered with a status of 2xx.
    pub(super) async fn probe(&self, endpoints: &dyn RestEndpoints) -> Result<(), String> {
        let call = RestEndpointCall {
            url: &self.rest_endpoint_url,
            query: &[],
            headers: &self.headers(),
            body: "",
        };
        let probed = self.open("HEAD", endpoints)?.call(call).await;
        probed.map(drop).map_err(|error| error.message)
    }
}

/// What a server says.
pub(super) enum HttpAnswer {
    Granted(ClientGrant),
    /// It does not know the client, or says nothing that can be used.
    Skipped(String),
    /// It has not answered.
    Unknown(String),
    /// Nobody else shall be asked.
    Refused(String),
}

/// The settings, ready to ask.
pub(super) struct HttpAuthenticator {
    endpoint: Arc<dyn RestEndpoint>,
    configuration: HttpConfiguration,
    headers: Vec<(String, String)>,
    body: BodyTemplate,
    turns: AddressTurns,
    rules: Arc<CompiledRules>,
}

/// The answer of a server.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct AnswerBody {
    result: Option<String>,
    client_type: Value,
    auth_rules: Value,
}

impl AnswerBody {
    /// Reads an answer. An empty one and `null` say nothing, as for TBMQ; what else is no object cannot be used.
    fn read(text: &str) -> Option<Self> {
        if text.trim().is_empty() {
            return Some(Self::default());
        }
        match serde_json::from_str::<Value>(text).ok()? {
            Value::Null => Some(Self::default()),
            fields @ Value::Object(_) => serde_json::from_value(fields).ok(),
            _ => None,
        }
    }
}

impl HttpAuthenticator {
    /// Prepares the connections.
    ///
    /// # Errors
    /// The setting that cannot work, and why.
    pub(super) fn new(
        configuration: &HttpConfiguration,
        endpoints: &dyn RestEndpoints,
    ) -> Result<Self, String> {
        let lists = configuration.auth_rules.clone().unwrap_or_default();
        Ok(Self {
            endpoint: configuration.open(&configuration.request_method, endpoints)?,
            headers: configuration.headers(),
            body: BodyTemplate::new(&configuration.request_body, configuration.is_form()),
            // Half of the requests are for others than those who ask most.
            turns: AddressTurns::new(configuration.parallel() as usize / 2),
            rules: Arc::new(CompiledRules::new(&[&lists], None)?),
            configuration: configuration.clone(),
        })
    }

    /// Asks about a client.
    pub(super) async fn ask(&self, login: &ClientLogin<'_>) -> HttpAnswer {
        let password = String::from_utf8_lossy(login.password.unwrap_or_default());
        let common_name = match login.has_certificate {
            true => (login.common_names)(false)
                .ok()
                .and_then(|names| names.into_iter().next()),
            false => None,
        };
        let fields: ClientFields<'_> = [
            ("${clientId}", login.client_id),
            ("${username}", login.username.unwrap_or_default()),
            ("${password}", &password),
            ("${commonName}", common_name.as_deref().unwrap_or_default()),
        ];
        let (query, body) = match self.configuration.has_body() {
            true => (Vec::new(), self.body.filled_in(&fields)),
            false => (self.body.query(&fields), String::new()),
        };
        let call = RestEndpointCall {
            url: &self.configuration.rest_endpoint_url,
            query: &query,
            headers: &self.headers,
            body: &body,
        };
        // A server that is slow keeps nobody waiting for longer, not even for the requests of others to end.
        let called = async {
            let _turn = self.turns.take(login.address).await;
            self.endpoint.call(call).await
        };
        match tokio::time::timeout(self.configuration.wait(), called).await {
            Ok(Ok(answer)) => self.understand(&answer),
            Err(_) => HttpAnswer::Unknown(NO_ANSWER.to_owned()),
            Ok(Err(error)) => {
                let reason = format!("HTTP authentication failed: {}", error.message);
                match error.is_passing() {
                    true => HttpAnswer::Unknown(reason),
                    false => HttpAnswer::Skipped(reason),
                }
            }
        }
    }

    fn understand(&self, answer: &str) -> HttpAnswer {
        let Some(answer) = AnswerBody::read(answer) else {
            return HttpAnswer::Skipped("HTTP authentication failed: the answer cannot be read".to_owned());
        };
        let result = answer.result.as_deref().unwrap_or("success").to_ascii_lowercase();
        match result.as_str() {
            "success" => {
                // Rules that cannot be used are no reason to permit more than them.
                let rules = match &answer.auth_rules {
                    Value::Null => Some(self.rules.clone()),
                    given => rules(given),
                };
                let Some(rules) = rules else {
                    return HttpAnswer::Skipped(
                        "HTTP authentication failed: the authRules of the answer cannot be used".to_owned(),
                    );
                };
                HttpAnswer::Granted(ClientGrant {
                    client_type: client_type(&answer.client_type)
                        .unwrap_or(self.configuration.default_client_type)
                        .into(),
                    rules: Some(rules),
                })
            }
            "failure" => {
                HttpAnswer::Refused("HTTP authentication failed: the server refuses the client".to_owned())
            }
            _ => HttpAnswer::Skipped(
                "HTTP authentication failed: the server does not know the client".to_owned(),
            ),
        }
    }
}

fn client_type(given: &Value) -> Option<MqttClientType> {
    let name = given.as_str()?;
    [MqttClientType::Device, MqttClientType::Application]
        .into_iter()
        .find(|kind| kind.name().eq_ignore_ascii_case(name))
}

/// The rules of an answer; `None` if it has none that can be used.
fn rules(given: &Value) -> Option<Arc<CompiledRules>> {
    let lists = given
        .is_object()
        .then(|| TopicRuleLists::deserialize(given).ok())
        .flatten()?;
    check_rules(Some(&lists), None).ok()?;
    CompiledRules::new(&[&lists], None).ok().map(Arc::new)
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use super::super::fake_server::{FakeAnswer, FakeServer};
    use super::*;

    fn server_of(configuration: Value, server: &FakeServer) -> HttpAuthenticator {
        let configuration: HttpConfiguration = serde_json::from_value(configuration).expect("settings");
        configuration.check().expect("settings");
        HttpAuthenticator::new(&configuration, server).expect("an authenticator")
    }

    async fn answer_to(authenticator: &HttpAuthenticator) -> HttpAnswer {
        let common_names = |_: bool| -> Result<Vec<String>, String> { Ok(Vec::new()) };
        let login = ClientLogin {
            client_id: "c",
            username: Some("a&b"),
            password: Some(b"p"),
            address: IpAddr::from([127, 0, 0, 1]),
            is_tls: false,
            has_certificate: false,
            common_names: &common_names,
        };
        authenticator.ask(&login).await
    }

    #[tokio::test]
    async fn an_answer_that_is_no_object_grants_nothing() {
        let server = FakeServer::default();
        let authenticator = server_of(json!({}), &server);
        for granted in [
            "",
            " ",
            "null",
            "{}",
            r#"{"result":null}"#,
            r#"{"result":"Success"}"#,
        ] {
            server.set_answer(FakeAnswer::Body(granted.to_owned()));
            let answer = answer_to(&authenticator).await;
            assert!(matches!(answer, HttpAnswer::Granted(_)), "{granted}");
        }
        for skipped in [
            "[]",
            r#"["success"]"#,
            "7",
            "true",
            r#""success""#,
            "no JSON",
            r#"{"result":7}"#,
            r#"{"result":"who"}"#,
            r#"{"authRules":[]}"#,
        ] {
            server.set_answer(FakeAnswer::Body(skipped.to_owned()));
            let answer = answer_to(&authenticator).await;
            assert!(matches!(answer, HttpAnswer::Skipped(_)), "{skipped}");
        }
        server.set_answer(FakeAnswer::Body(r#"{"result":"failure"}"#.to_owned()));
        assert!(matches!(answer_to(&authenticator).await, HttpAnswer::Refused(_)));
        server.set_answer(FakeAnswer::Failure);
        assert!(matches!(answer_to(&authenticator).await, HttpAnswer::Unknown(_)));
    }

    #[tokio::test(start_paused = true)]
    async fn nobody_waits_for_longer_than_the_settings_say() {
        let server = FakeServer::default();
        server.set_answer(FakeAnswer::Silence);
        for (ms, waited) in [
            (json!(500), Duration::from_millis(500)),
            (json!(0), USUAL_WAIT),
            (json!(null), USUAL_WAIT),
            (json!(u32::MAX), LONGEST_WAIT),
        ] {
            let authenticator = server_of(json!({ "readTimeoutMs": ms }), &server);
            let before = tokio::time::Instant::now();
            let answer = answer_to(&authenticator).await;
            assert!(matches!(answer, HttpAnswer::Unknown(_)), "{ms}");
            assert_eq!(before.elapsed().as_secs(), waited.as_secs(), "{ms}");
        }
    }

    #[tokio::test]
    async fn what_a_client_says_is_in_the_body_or_in_the_query() {
        for (method, body) in [("POST", "u=a%26b"), ("GET", ""), ("DELETE", "")] {
            let server = FakeServer::answering("");
            let form = json!({ "content-type": "application/x-www-form-urlencoded; charset=utf-8" });
            let settings =
                json!({ "requestMethod": method, "headers": form, "requestBody": "u=${username}" });
            answer_to(&server_of(settings, &server)).await;
            let calls = server.calls();
            assert_eq!(
                (calls[0].body.as_str(), calls[0].query.len()),
                (body, 0),
                "{method}"
            );
        }
        for method in ["GET", "DELETE"] {
            let server = FakeServer::answering("");
            let template = json!({ "u": "${username}" }).to_string();
            let settings = json!({ "requestMethod": method, "requestBody": template });
            answer_to(&server_of(settings, &server)).await;
            let calls = server.calls();
            assert_eq!(calls[0].query, [("u".to_owned(), "a&b".to_owned())], "{method}");
            assert!(calls[0].body.is_empty(), "{method}");
        }
    }

    #[test]
    fn no_credentials_are_those_of_nobody_and_headers_can_be_sent() {
        let none: HttpConfiguration =
            serde_json::from_value(json!({ "credentials": null })).expect("settings");
        assert_eq!(none.credentials, anonymous());
        for wrong in [json!({ "a b": "x" }), json!({ "": "x" }), json!({ "a": "x\ny" })] {
            let settings: HttpConfiguration =
                serde_json::from_value(json!({ "headers": wrong })).expect("settings");
            assert!(settings.check().is_err(), "{wrong}");
        }
    }
}
