//! Keys that a server publishes (RFC 7517), fetched once in a while.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use fieldline_core::logging::LogGate;
use fieldline_core::ports::{RestEndpoint, RestEndpointCall, RestEndpointSettings, RestEndpoints};
use fieldline_core::web_url::is_web_url;
use fieldline_model::entity::null_as_default;
use jsonwebtoken::jwk::{Jwk, PublicKeyUse};
use jsonwebtoken::{Algorithm, Header};
use parking_lot::Mutex;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};
use tracing::warn;

use super::http_provider::{
    anonymous, check_credentials, check_headers, hide_headers, hide_secrets, keep_headers, keep_secrets,
    null_as_anonymous,
};
use super::jwt::TokenError;
use super::token_keys::VerifyingKey;
use crate::services::{ServiceError, ServiceResult};

static FETCH_GATE: LogGate = LogGate::new(2);
static UNUSABLE_GATE: LogGate = LogGate::new(2);

/// Shortest time between two fetches, seconds.
const LEAST_REFRESH_S: u32 = 300;
/// How long keys count beyond their time of a server that does not answer, milliseconds.
const OUTAGE_MS: i64 = 24 * 3_600_000;
/// Pause after a fetch that has failed, and before one for a key that is not known, milliseconds: whoever shows made-up tokens
/// must not make the server work. Keys that are older than they should be by so much are not taken before the server was asked.
const PAUSE_MS: i64 = 30_000;
/// How long a fetch may take, and how long a log-in waits for it: less than the 10 seconds that `broker.connect-timeout` leaves a
/// client at first.
const WAIT: Duration = Duration::from_secs(8);
/// Largest answer, KiB, and most keys of it that are looked at.
const MAX_ANSWER_KIB: u32 = 512;
const MAX_KEYS: usize = 50;
/// Most keys that the signature of a token is checked with: one that names none is of any of them.
const MAX_TRIED: usize = 5;

/// Where the keys are.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct KeySetConfiguration {
    #[serde(deserialize_with = "null_as_default")]
    pub(super) endpoint: String,
    #[serde(deserialize_with = "null_as_default")]
    pub(super) headers: BTreeMap<String, String>,
    /// Seconds after which they are fetched again.
    #[serde(deserialize_with = "refresh_interval")]
    pub(super) refresh_interval: u32,
    /// How to prove who asks.
    #[serde(deserialize_with = "null_as_anonymous")]
    pub(super) credentials: Value,
}

fn refresh_interval<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    let given = Option::<u32>::deserialize(deserializer)?;
    Ok(given.unwrap_or_default().max(LEAST_REFRESH_S))
}

impl Default for KeySetConfiguration {
    fn default() -> Self {
        Self {
            endpoint: "http://127.0.0.1:8080".to_owned(),
            headers: BTreeMap::from([("Content-Type".to_owned(), "application/json".to_owned())]),
            refresh_interval: LEAST_REFRESH_S,
            credentials: anonymous(),
        }
    }
}

impl KeySetConfiguration {
    pub(super) fn check(&self) -> ServiceResult<()> {
        if !is_web_url(&self.endpoint) {
            return Err(ServiceError::invalid("JWKS endpoint should be a valid URL!"));
        }
        check_credentials(&self.credentials)?;
        check_headers(&self.headers)
    }

    pub(super) fn keep_secrets(&mut self, before: &Self) {
        // Secrets go to the server that they were given for.
        if self.endpoint == before.endpoint {
            keep_secrets(&mut self.credentials, &before.credentials);
            keep_headers(&mut self.headers, &before.headers);
        }
    }

    pub(super) fn hide_secrets(&mut self) {
        hide_secrets(&mut self.credentials);
        hide_headers(&mut self.headers);
    }
}

/// A key that tokens may be signed with.
struct PublishedKey {
    jwk: Jwk,
    /// The algorithm that it is for, where that is said.
    algorithm: Option<String>,
    key: VerifyingKey,
}

/// Keys that were fetched.
struct FetchedKeys {
    keys: Vec<PublishedKey>,
    at_ms: i64,
}

#[derive(Default)]
struct KeySetState {
    fetched: Option<Arc<FetchedKeys>>,
    /// When the server was asked last.
    asked_ms: Option<i64>,
    /// Whether that has failed.
    failed: bool,
}

/// The keys of a server. Clones share them.
#[derive(Clone)]
pub(super) struct KeySet(Arc<KeySetSource>);

struct KeySetSource {
    endpoint: Arc<dyn RestEndpoint>,
    url: String,
    headers: Vec<(String, String)>,
    refresh_ms: i64,
    state: Mutex<KeySetState>,
    /// Held by the fetch that runs.
    fetching: Arc<tokio::sync::Mutex<()>>,
}

impl KeySet {
    pub(super) fn new(
        configuration: &KeySetConfiguration,
        endpoints: &dyn RestEndpoints,
    ) -> Result<Self, String> {
        let endpoint = endpoints.open(&RestEndpointSettings {
            method: "GET".to_owned(),
            credentials: configuration.credentials.clone(),
            read_timeout: WAIT,
            max_parallel: 1,
            max_answer_kib: MAX_ANSWER_KIB,
        })?;
        let headers: Vec<(String, String)> = configuration.headers.clone().into_iter().collect();
        endpoint.check(RestEndpointCall {
            url: &configuration.endpoint,
            query: &[],
            headers: &headers,
            body: "",
        })?;
        Ok(Self(Arc::new(KeySetSource {
            endpoint,
            url: configuration.endpoint.clone(),
            headers,
            refresh_ms: i64::from(configuration.refresh_interval) * 1_000,
            state: Mutex::default(),
            fetching: Arc::default(),
        })))
    }

    /// The claims of a token, or what is wrong with it.
    pub(super) async fn claims(
        &self,
        token: &str,
        header: &Header,
        now_ms: i64,
    ) -> Result<Map<String, Value>, TokenError> {
        let keys = self.keys(now_ms).await?;
        if let Some(outcome) = keys.claims(token, header) {
            return outcome.map_err(TokenError::Refused);
        }
        // The server may have a new key.
        let source = &self.0;
        source.try_begin(now_ms);
        source.fetch_ended().await;
        let keys = source.held(now_ms).ok_or_else(no_keys)?;
        match keys.claims(token, header) {
            Some(outcome) => outcome.map_err(TokenError::Refused),
            None if keys.age_ms(now_ms) < PAUSE_MS => {
                Err(TokenError::Refused("No published key is for this JWT".to_owned()))
            }
            // The token may be right: nobody knows which keys the server has now.
            None => Err(no_keys()),
        }
    }

    /// The keys that count.
    async fn keys(&self, now_ms: i64) -> Result<Arc<FetchedKeys>, TokenError> {
        let source = &self.0;
        let held = source.held(now_ms);
        let age_ms = held.as_ref().map(|held| held.age_ms(now_ms));
        if age_ms.is_none_or(|age_ms| age_ms >= source.refresh_ms) {
            source.try_begin(now_ms);
        }
        // Nobody waits while there are keys, unless nobody has asked for them for so long that the server may have withdrawn some.
        let is_overdue = age_ms.is_some_and(|age_ms| age_ms >= source.refresh_ms + PAUSE_MS);
        if let Some(held) = held
            && (!is_overdue || source.has_failed())
        {
            return Ok(held);
        }
        source.fetch_ended().await;
        source.held(now_ms).ok_or_else(no_keys)
    }
}

/// How long something is ago. Log-ins that read the clock at about the same time see each other's doings as of this moment; it is
/// negative only where the clock was set back.
fn age_ms(at_ms: i64, now_ms: i64) -> i64 {
    match now_ms.saturating_sub(at_ms) {
        age if (-PAUSE_MS..0).contains(&age) => 0,
        age => age,
    }
}

fn no_keys() -> TokenError {
    TokenError::NoKeys("The JWKS endpoint does not answer".to_owned())
}

impl KeySetState {
    fn may_ask(&self, now_ms: i64) -> bool {
        self.asked_ms
            .is_none_or(|asked_ms| !(0..PAUSE_MS).contains(&age_ms(asked_ms, now_ms)))
    }
}

impl KeySetSource {
    /// The keys that were fetched, as long as they count.
    fn held(&self, now_ms: i64) -> Option<Arc<FetchedKeys>> {
        let fetched = self.state.lock().fetched.clone();
        fetched.filter(|fetched| (0..self.refresh_ms + OUTAGE_MS).contains(&fetched.age_ms(now_ms)))
    }

    fn has_failed(&self) -> bool {
        self.state.lock().failed
    }

    /// Begins to fetch the keys, unless somebody does, or has a moment ago. On a task of its own: a client that goes away does
    /// not take the keys of the others with it.
    fn try_begin(self: &Arc<Self>, now_ms: i64) {
        let Ok(turn) = self.fetching.clone().try_lock_owned() else {
            return;
        };
        {
            let mut state = self.state.lock();
            if !state.may_ask(now_ms) {
                return;
            }
            state.asked_ms = Some(now_ms);
        }
        let source = self.clone();
        tokio::spawn(async move {
            source.fetch(now_ms).await;
            drop(turn);
        });
    }

    /// Waits until no fetch runs, as long as a log-in waits.
    async fn fetch_ended(&self) {
        drop(tokio::time::timeout(WAIT, self.fetching.lock()).await);
    }

    async fn fetch(&self, now_ms: i64) {
        let call = RestEndpointCall {
            url: &self.url,
            query: &[],
            headers: &self.headers,
            body: "",
        };
        let answer = match tokio::time::timeout(WAIT, self.endpoint.call(call)).await {
            Ok(answer) => answer.map_err(|error| error.message),
            Err(_) => Err("no answer in time".to_owned()),
        };
        match answer.and_then(|answer| read_keys(&answer)) {
            Ok(keys) => {
                let mut state = self.state.lock();
                state.fetched = Some(Arc::new(FetchedKeys { keys, at_ms: now_ms }));
                state.failed = false;
            }
            Err(error) => {
                self.state.lock().failed = true;
                if let Some(suppressed) = FETCH_GATE.open() {
                    warn!(error, suppressed, "cannot fetch the keys of tokens (JWKS)");
                }
            }
        }
    }
}

/// The keys of an answer that tokens may be signed with; what else it has is passed over.
fn read_keys(answer: &str) -> Result<Vec<PublishedKey>, String> {
    #[derive(Deserialize)]
    struct Answer {
        keys: Vec<Value>,
    }
    let answer: Answer =
        serde_json::from_str(answer).map_err(|_| "the answer is no set of keys".to_owned())?;
    let keys = answer.keys.into_iter().take(MAX_KEYS);
    Ok(keys
        .filter_map(|key| {
            let algorithm = key.get("alg").and_then(Value::as_str).map(str::to_owned);
            let jwk: Jwk = serde_json::from_value(key).ok()?;
            let key = VerifyingKey::published(&jwk).unwrap_or_else(|reason| {
                if let Some(suppressed) = UNUSABLE_GATE.open() {
                    let name = jwk.common.key_id.as_deref();
                    warn!(name, reason, suppressed, "a published key (JWKS) cannot be used");
                }
                None
            })?;
            Some(PublishedKey { jwk, algorithm, key })
        })
        .collect())
}

impl PublishedKey {
    /// Whether a token may be signed with it, by its name.
    fn is_for(&self, header: &Header) -> bool {
        let common = &self.jwk.common;
        let has_name = match (&header.kid, &common.key_id) {
            (Some(asked), Some(own)) => asked == own,
            (Some(_), None) => false,
            (None, _) => true,
        };
        has_name && !matches!(common.public_key_use, Some(PublicKeyUse::Encryption))
    }

    /// Whether tokens may be signed so with it.
    fn fits(&self, algorithm: Algorithm) -> bool {
        let is_own = |own: &String| *own == format!("{algorithm:?}");
        self.key.is_for(algorithm) && self.algorithm.as_ref().is_none_or(is_own)
    }

    fn claims(&self, token: &str, header: &Header) -> Result<Map<String, Value>, String> {
        let algorithm = format!("{:?}", header.alg);
        match &self.algorithm {
            Some(own) if *own != algorithm => Err(format!(
                "JWT is signed with {algorithm}, which the published key is not for"
            )),
            _ => self.key.claims(token, header.alg),
        }
    }
}

impl FetchedKeys {
    fn age_ms(&self, now_ms: i64) -> i64 {
        age_ms(self.at_ms, now_ms)
    }

    /// The claims of a token by the first key that takes it, or what is wrong with it; `None` if no key is for it.
    fn claims(&self, token: &str, header: &Header) -> Option<Result<Map<String, Value>, String>> {
        let mut refusal = None;
        let mut tried = 0;
        for key in self.keys.iter().filter(|key| key.is_for(header)) {
            // To find that it is for other algorithms costs nothing.
            if key.fits(header.alg) {
                tried += 1;
                if tried > MAX_TRIED {
                    break;
                }
            }
            match key.claims(token, header) {
                Ok(claims) => return Some(Ok(claims)),
                Err(error) => refusal = Some(Err(error)),
            }
        }
        refusal
    }
}

#[cfg(test)]
mod tests {
    use futures::future::join_all;
    use serde_json::json;

    use super::super::fake_server::{FakeAnswer, FakeServer};
    use super::super::token_keys::header_of;
    use super::super::token_keys::samples::{OTHER_X, PUBLIC_X, TOKEN_ONE, TOKEN_TWO, TOKEN_WITHOUT_NAME};
    use super::*;

    const REFRESH_MS: i64 = LEAST_REFRESH_S as i64 * 1_000;

    /// A set with the same key under each name.
    fn published(names: &[&str]) -> FakeAnswer {
        let key = |name: &&str| json!({ "kty": "OKP", "crv": "Ed25519", "x": PUBLIC_X, "kid": name });
        let keys: Vec<Value> = names.iter().map(key).collect();
        FakeAnswer::Body(json!({ "keys": keys }).to_string())
    }

    fn keys_of(server: &FakeServer) -> KeySet {
        KeySet::new(&KeySetConfiguration::default(), server).expect("keys")
    }

    /// Whether a token is right: `None` where nobody can tell.
    async fn takes(keys: &KeySet, token: &str, now_ms: i64) -> Option<bool> {
        let header = header_of(token).expect("a header");
        match keys.claims(token, &header, now_ms).await {
            Ok(_) => Some(true),
            Err(TokenError::Refused(_)) => Some(false),
            Err(TokenError::NoKeys(_)) => None,
        }
    }

    #[tokio::test]
    async fn a_key_that_is_not_known_is_asked_for_after_a_pause() {
        let server = FakeServer::default();
        server.set_answer(published(&["one"]));
        let keys = keys_of(&server);
        assert_eq!(takes(&keys, TOKEN_ONE, 0).await, Some(true));
        // The keys have just been fetched, and there is none of this name.
        for now_ms in [0, 1, PAUSE_MS - 1] {
            assert_eq!(takes(&keys, TOKEN_TWO, now_ms).await, Some(false));
        }
        assert_eq!(server.calls().len(), 1);
        // Where the server does not answer, the token may be right.
        server.set_answer(FakeAnswer::Failure);
        for now_ms in [PAUSE_MS, PAUSE_MS + 1] {
            assert_eq!(takes(&keys, TOKEN_TWO, now_ms).await, None);
            assert_eq!(takes(&keys, TOKEN_ONE, now_ms).await, Some(true));
        }
        assert_eq!(server.calls().len(), 2, "it is not asked again at once");
        server.set_answer(published(&["two"]));
        assert_eq!(takes(&keys, TOKEN_TWO, 2 * PAUSE_MS).await, Some(true));
        assert_eq!(
            takes(&keys, TOKEN_ONE, 2 * PAUSE_MS).await,
            Some(false),
            "it is not published any more"
        );
        assert_eq!(server.calls().len(), 3);
    }

    #[tokio::test]
    async fn keys_are_fetched_again_while_the_old_ones_count() {
        let server = FakeServer::default();
        server.set_answer(published(&["one"]));
        let keys = keys_of(&server);
        assert_eq!(takes(&keys, TOKEN_ONE, 0).await, Some(true));
        assert_eq!(takes(&keys, TOKEN_ONE, REFRESH_MS - 1).await, Some(true));
        assert_eq!(server.calls().len(), 1);
        server.set_answer(published(&["two"]));
        assert_eq!(
            takes(&keys, TOKEN_ONE, REFRESH_MS).await,
            Some(true),
            "nobody waits"
        );
        keys.0.fetch_ended().await;
        assert_eq!(server.calls().len(), 2);
        assert_eq!(takes(&keys, TOKEN_ONE, REFRESH_MS).await, Some(false));
        assert_eq!(takes(&keys, TOKEN_TWO, REFRESH_MS).await, Some(true));
    }

    #[tokio::test]
    async fn keys_for_which_nobody_has_asked_for_long_are_fetched_before_they_count() {
        let server = FakeServer::default();
        server.set_answer(published(&["one"]));
        let keys = keys_of(&server);
        assert_eq!(takes(&keys, TOKEN_ONE, 0).await, Some(true));
        server.set_answer(published(&["two"]));
        let overdue_ms = REFRESH_MS + PAUSE_MS;
        assert_eq!(
            takes(&keys, TOKEN_ONE, overdue_ms).await,
            Some(false),
            "it is withdrawn"
        );
        assert_eq!(takes(&keys, TOKEN_TWO, overdue_ms).await, Some(true));
        assert_eq!(server.calls().len(), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn nobody_waits_again_for_a_server_that_was_away() {
        let server = FakeServer::default();
        server.set_answer(published(&["one"]));
        let keys = keys_of(&server);
        assert_eq!(takes(&keys, TOKEN_ONE, 0).await, Some(true));
        server.set_answer(FakeAnswer::Silence);
        let overdue_ms = REFRESH_MS + PAUSE_MS;
        for (now_ms, waited) in [(overdue_ms, WAIT), (overdue_ms + PAUSE_MS, Duration::ZERO)] {
            let before = tokio::time::Instant::now();
            assert_eq!(takes(&keys, TOKEN_ONE, now_ms).await, Some(true));
            let elapsed = before.elapsed();
            assert!(
                elapsed >= waited && elapsed < waited + Duration::from_millis(10),
                "{elapsed:?}"
            );
            drop(keys.0.fetching.lock().await);
        }
        server.set_answer(published(&["two"]));
        let now_ms = overdue_ms + 2 * PAUSE_MS;
        assert_eq!(takes(&keys, TOKEN_ONE, now_ms).await, Some(true));
        drop(keys.0.fetching.lock().await);
        assert_eq!(takes(&keys, TOKEN_ONE, now_ms).await, Some(false));
    }

    #[tokio::test]
    async fn keys_of_the_future_are_fetched_again() {
        const LATER_MS: i64 = 10 * PAUSE_MS;
        let server = FakeServer::default();
        server.set_answer(published(&["one"]));
        let keys = keys_of(&server);
        assert_eq!(takes(&keys, TOKEN_ONE, LATER_MS).await, Some(true));
        // Others have read the clock a moment before.
        assert_eq!(takes(&keys, TOKEN_ONE, LATER_MS - 1).await, Some(true));
        assert_eq!(server.calls().len(), 1);
        server.set_answer(published(&["two"]));
        assert_eq!(takes(&keys, TOKEN_ONE, 0).await, Some(false));
        assert_eq!(takes(&keys, TOKEN_TWO, 0).await, Some(true));
        assert_eq!(server.calls().len(), 2);
    }

    #[tokio::test]
    async fn a_token_that_names_no_key_is_checked_with_a_few() {
        for others in [MAX_TRIED - 1, MAX_TRIED] {
            let key = |x: &str| json!({ "kty": "OKP", "crv": "Ed25519", "x": x });
            // What is for other algorithms does not count.
            let modulus = "t".repeat(344);
            let mut all = vec![json!({ "kty": "RSA", "n": modulus, "e": "AQAB" }); MAX_TRIED];
            all.extend((0..others).map(|_| key(PUBLIC_X)));
            all.push(key(OTHER_X));
            let server = FakeServer::answering(json!({ "keys": all }).to_string());
            let taken = takes(&keys_of(&server), TOKEN_WITHOUT_NAME, 0).await;
            assert_eq!(taken, Some(others < MAX_TRIED));
        }
    }

    #[tokio::test]
    async fn keys_count_for_a_day_more_while_the_server_is_away() {
        let server = FakeServer::default();
        server.set_answer(published(&["one"]));
        let keys = keys_of(&server);
        assert_eq!(takes(&keys, TOKEN_ONE, 0).await, Some(true));
        server.set_answer(FakeAnswer::Failure);
        let end_ms = REFRESH_MS + OUTAGE_MS;
        for (now_ms, taken) in [
            (REFRESH_MS, Some(true)),
            (end_ms - 1, Some(true)),
            (end_ms, None),
            (end_ms + 1, None),
        ] {
            assert_eq!(takes(&keys, TOKEN_ONE, now_ms).await, taken, "{now_ms}");
            keys.0.fetch_ended().await;
        }
        server.set_answer(published(&["one"]));
        assert_eq!(takes(&keys, TOKEN_ONE, end_ms + PAUSE_MS).await, Some(true));
    }

    #[tokio::test(start_paused = true)]
    async fn one_asks_for_all_and_none_waits_for_long() {
        let server = FakeServer::default();
        server.set_answer(published(&["one"]));
        let keys = keys_of(&server);
        let all = join_all((0..20).map(|_| takes(&keys, TOKEN_ONE, 0))).await;
        assert!(all.into_iter().all(|taken| taken == Some(true)));
        assert_eq!(server.calls().len(), 1);
        let settings = &server.opened()[0];
        assert_eq!(
            (settings.max_parallel, settings.max_answer_kib),
            (1, MAX_ANSWER_KIB)
        );

        server.set_answer(FakeAnswer::Silence);
        let keys = keys_of(&server);
        let before = tokio::time::Instant::now();
        let all = join_all((0..20).map(|_| takes(&keys, TOKEN_ONE, 0))).await;
        assert!(all.into_iter().all(|taken| taken.is_none()));
        assert!(before.elapsed() < 2 * WAIT);
        assert_eq!(server.calls().len(), 2);
    }

    #[tokio::test]
    async fn so_many_keys_of_an_answer_are_looked_at_and_those_that_are_none_are_not() {
        let server = FakeServer::default();
        let names: Vec<String> = (0..MAX_KEYS - 1).map(|number| number.to_string()).collect();
        let mut names: Vec<&str> = names.iter().map(String::as_str).collect();
        names.extend(["one", "two"]);
        server.set_answer(published(&names));
        let keys = keys_of(&server);
        assert_eq!(takes(&keys, TOKEN_ONE, 0).await, Some(true));
        assert_eq!(takes(&keys, TOKEN_TWO, 0).await, Some(false));

        let secret = json!({ "kty": "oct", "k": "eA", "kid": "one" });
        let other = json!({ "kty": "OKP", "crv": "Ed25519", "x": PUBLIC_X, "kid": "one", "alg": "RS256" });
        let encrypts = json!({ "kty": "OKP", "crv": "Ed25519", "x": PUBLIC_X, "kid": "one", "use": "enc" });
        for key in [secret, other, encrypts, json!(7)] {
            let server = FakeServer::answering(json!({ "keys": [key] }).to_string());
            assert_eq!(takes(&keys_of(&server), TOKEN_ONE, 0).await, Some(false), "{key}");
        }
        for answer in ["", "{}", "7", r#"{"keys":7}"#] {
            let server = FakeServer::answering(answer);
            assert_eq!(takes(&keys_of(&server), TOKEN_ONE, 0).await, None, "{answer}");
        }
    }
}
