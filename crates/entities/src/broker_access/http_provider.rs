//! A server of the operator's own that is asked whether a client may connect.

mod credentials;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use fieldline_core::ports::{
    ClientGrant, RestEndpoint, RestEndpointCall, RestEndpointSettings, RestEndpoints,
};
use fieldline_core::web_url::is_web_url;
use fieldline_model::entity::{MqttClientType, null_as_default};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::address_turns::AddressTurns;
use super::http_body::{BodyTemplate, ClientFields, ContentType};
use super::login::ClientLogin;
use super::rules::CompiledRules;
use super::values::{TopicRuleLists, check_rules};
use crate::services::{ServiceError, ServiceResult};

pub(super) use credentials::{
    anonymous, check_credentials, check_headers, hide_headers, hide_secrets, keep_headers, keep_secrets,
    null_as_anonymous,
};

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
/// Stands for the common name of a client's certificate.
const COMMON_NAME: &str = "${commonName}";

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
        check_credentials(&self.credentials)?;
        check_headers(&self.headers)?;
        self.template()
            .map_err(|error| ServiceError::invalid(format!("Validation error: {error}")))?;
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
            count => count.min(RestEndpointSettings::MOST_PARALLEL),
        }
    }

    /// Whether requests have a body; what a client says is in the query of others.
    fn has_body(&self) -> bool {
        matches!(self.request_method.as_str(), "POST" | "PUT" | "PATCH")
    }

    /// What is sent of a client.
    ///
    /// # Errors
    /// It would not be what it is said to be, or nothing at all.
    fn template(&self) -> Result<BodyTemplate, &'static str> {
        let mut types = self
            .headers
            .iter()
            .filter(|(name, _)| name.eq_ignore_ascii_case("content-type"))
            .map(|(_, value)| ContentType::named(value));
        match self.has_body() {
            true => BodyTemplate::of_body(&self.request_body, types.next().unwrap_or(ContentType::Other)),
            false => BodyTemplate::of_query(&self.request_body),
        }
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
    template: BodyTemplate,
    /// Whether it has the common name of a certificate.
    names_certificate: bool,
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
        let template = configuration.template()?;
        let endpoint = configuration.open(&configuration.request_method, endpoints)?;
        let headers = configuration.headers();
        endpoint.check(RestEndpointCall {
            url: &configuration.rest_endpoint_url,
            query: &[],
            headers: &headers,
            body: "",
        })?;
        Ok(Self {
            endpoint,
            headers,
            names_certificate: template.has(COMMON_NAME),
            template,
            // Half of the requests are for others than those who ask most.
            turns: AddressTurns::new(configuration.parallel() as usize / 2),
            rules: Arc::new(CompiledRules::new(&[&lists], None)?),
            configuration: configuration.clone(),
        })
    }

    /// Asks about a client.
    pub(super) async fn ask(&self, login: &ClientLogin<'_>) -> HttpAnswer {
        // A server that is slow keeps nobody waiting for longer, not even for the requests of others to end.
        let called = async {
            let _turn = self.turns.take(login.address).await;
            let (query, body) = self.filled_in(login);
            let call = RestEndpointCall {
                url: &self.configuration.rest_endpoint_url,
                query: &query,
                headers: &self.headers,
                body: &body,
            };
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

    /// The query and the body for a client.
    fn filled_in(&self, login: &ClientLogin<'_>) -> (Vec<(String, String)>, String) {
        let password = String::from_utf8_lossy(login.password.unwrap_or_default());
        // To read it costs a check of the certificate.
        let common_name = match self.names_certificate && login.has_certificate {
            true => (login.common_names)(false)
                .ok()
                .and_then(|names| names.into_iter().next()),
            false => None,
        };
        let fields: ClientFields<'_> = [
            ("${clientId}", login.client_id),
            ("${username}", login.username.unwrap_or_default()),
            ("${password}", &password),
            (COMMON_NAME, common_name.as_deref().unwrap_or_default()),
        ];
        match self.configuration.has_body() {
            true => (Vec::new(), self.template.filled_in(&fields)),
            false => (self.template.query(&fields), String::new()),
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
    use std::sync::atomic::{AtomicUsize, Ordering};

    use futures::future::join_all;

    use super::super::fake_server::{FakeAnswer, FakeServer, UNUSABLE_URL};
    use super::super::login::CommonNames;
    use super::*;

    fn server_of(configuration: Value, server: &FakeServer) -> HttpAuthenticator {
        let configuration: HttpConfiguration = serde_json::from_value(configuration).expect("settings");
        configuration.check().expect("settings");
        HttpAuthenticator::new(&configuration, server).expect("an authenticator")
    }

    async fn answer_to(authenticator: &HttpAuthenticator) -> HttpAnswer {
        let common_names = |_: bool| -> Result<Vec<String>, String> { Ok(Vec::new()) };
        authenticator.ask(&login_with(&common_names)).await
    }

    fn login_with<'a>(common_names: &'a CommonNames<'a>) -> ClientLogin<'a> {
        ClientLogin {
            client_id: "c",
            username: Some("a&b"),
            password: Some(b"p"),
            address: IpAddr::from([127, 0, 0, 1]),
            is_tls: false,
            has_certificate: false,
            common_names,
        }
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
            let elapsed = before.elapsed();
            assert!(
                elapsed >= waited && elapsed < waited + Duration::from_millis(10),
                "{ms}: {elapsed:?}"
            );
        }
    }

    #[tokio::test]
    async fn what_a_client_says_is_in_the_body_or_in_the_query() {
        let form = json!({ "content-type": "application/x-www-form-urlencoded; charset=utf-8" });
        for (template, body) in [
            ("u=${username}", "u=a%26b"),
            (r#"{"u":"${username}"}"#, r#"{"u":"a%26b"}"#),
        ] {
            let server = FakeServer::answering("");
            let settings = json!({ "headers": form, "requestBody": template });
            answer_to(&server_of(settings, &server)).await;
            let calls = server.calls();
            assert_eq!(
                (calls[0].body.as_str(), calls[0].query.len()),
                (body, 0),
                "{template}"
            );
        }
        for method in ["GET", "DELETE"] {
            let server = FakeServer::answering("");
            let template = json!({ "u": "${username}" }).to_string();
            let settings = json!({ "requestMethod": method, "requestBody": template, "headers": form });
            answer_to(&server_of(settings, &server)).await;
            let calls = server.calls();
            assert_eq!(calls[0].query, [("u".to_owned(), "a&b".to_owned())], "{method}");
            assert!(calls[0].body.is_empty(), "{method}");
        }
    }

    #[tokio::test]
    async fn a_certificate_is_read_only_for_its_name() {
        for (template, times) in [
            ("${commonName}", 1),
            (r"\u0024{commonName}", 1),
            ("${clientId}", 0),
        ] {
            let server = FakeServer::answering("");
            let settings = json!({ "requestBody": format!("{{\"a\":\"{template}\"}}") });
            let authenticator = server_of(settings, &server);
            let read = AtomicUsize::new(0);
            let common_names = |_: bool| -> Result<Vec<String>, String> {
                read.fetch_add(1, Ordering::Relaxed);
                Ok(vec!["pump".to_owned(), "authority".to_owned()])
            };
            let login = ClientLogin {
                has_certificate: true,
                ..login_with(&common_names)
            };
            authenticator.ask(&login).await;
            assert_eq!(read.load(Ordering::Relaxed), times, "{template}");
            assert_eq!(server.calls()[0].body.contains("pump"), times == 1, "{template}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn one_address_has_half_of_the_requests_that_really_run() {
        const MOST: usize = RestEndpointSettings::MOST_PARALLEL as usize;
        let server = FakeServer::default();
        server.set_answer(FakeAnswer::Silence);
        let authenticator = server_of(json!({ "maxParallelRequestsCount": 10 * MOST }), &server);
        let all = join_all((0..MOST).map(|_| answer_to(&authenticator)));
        assert!(tokio::time::timeout(Duration::from_millis(1), all).await.is_err());
        assert_eq!(server.calls().len(), MOST / 2);
        assert_eq!(server.opened()[0].max_parallel as usize, MOST);
    }

    #[test]
    fn settings_that_cannot_work_are_refused() {
        let check = |settings: Value| -> Result<(), String> {
            let settings: HttpConfiguration = serde_json::from_value(settings).expect("settings");
            settings.check().map_err(|error| error.message().to_owned())?;
            HttpAuthenticator::new(&settings, &FakeServer::default()).map(drop)
        };
        assert_eq!(check(json!({ "credentials": null })), Ok(()));
        let text = json!({ "Content-Type": "text/plain" });
        for right in [
            json!({ "requestBody": "${username} ${", "headers": text }),
            json!({ "requestBody": "${username}", "headers": {} }),
            json!({ "requestBody": "[\"${username}\"]" }),
            json!({ "requestBody": "{\"a\":1}", "requestMethod": "GET", "headers": text }),
        ] {
            assert_eq!(check(right.clone()), Ok(()), "{right}");
        }
        let json_of_others = json!({ "content-type": "application/problem+JSON; charset=utf-8" });
        for wrong in [
            json!({ "headers": { "a b": "x" } }),
            json!({ "headers": { "": "x" } }),
            json!({ "headers": { "a": "x\ny" } }),
            json!({ "credentials": { "type": "sas", "sasKey": "a2V5" } }),
            json!({ "credentials": {} }),
            json!({ "restEndpointUrl": UNUSABLE_URL }),
            // What a client says would be more than a text.
            json!({ "requestBody": "{\"a\":${username}}" }),
            json!({ "requestBody": "u=${username}", "headers": json_of_others }),
            // The server would not be told who asks.
            json!({ "requestBody": "u=${username}", "requestMethod": "GET", "headers": text }),
            json!({ "requestBody": "[\"${username}\"]", "requestMethod": "DELETE" }),
            json!({ "requestBody": "{}", "requestMethod": "GET" }),
        ] {
            assert!(check(wrong.clone()).is_err(), "{wrong}");
        }
    }
}
