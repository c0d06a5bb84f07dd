//! Lets a client in, or not: first it must not be blocked, then each provider is asked until one knows the client.

use std::net::IpAddr;

use fieldline_core::logging::LogGate;
use fieldline_core::ports::{BrokerRefusal, ClientGrant, StoreError, StoreResult};
use fieldline_model::entity::UnauthorizedClient;
use tracing::warn;

use super::http_provider::HttpAnswer;
use super::jwt::TokenError;
use super::prepared::{PreparedCredentials, PreparedKind};
use super::prepared_providers::{PreparedProviders, disabled};
use super::provider_settings::{BasicStrategy, ClientCertificates};
use super::providers::AuthProviderType;
use super::values::{certificate_id, client_id, is_storable, mixed_id, username_id};
use super::{AccessState, BrokerAccessService};

static STORE_GATE: LogGate = LogGate::new(2);

/// Most certificates of a chain that are looked at.
const MAX_CHAIN: usize = 8;
/// Longest password that is checked, bytes; the hash would have to read all of it.
const MAX_PASSWORD: usize = 16 << 10;

/// Reads the common names of the certificates that a client has proven to be its own, leaf first, or says why it has none.
/// The flag says whether their time of validity does not matter.
pub type CommonNames<'a> = dyn Fn(bool) -> Result<Vec<String>, String> + Send + Sync + 'a;

/// A client that wants to connect.
#[derive(Clone, Copy)]
pub struct ClientLogin<'a> {
    /// The client identifier.
    pub client_id: &'a str,
    /// The user name.
    pub username: Option<&'a str>,
    /// The password.
    pub password: Option<&'a [u8]>,
    /// Where it comes from.
    pub address: IpAddr,
    /// Whether it uses TLS.
    pub is_tls: bool,
    /// Whether it has shown a certificate.
    pub has_certificate: bool,
    /// Its common names.
    pub common_names: &'a CommonNames<'a>,
}

/// What a provider says.
enum Answer {
    Granted(ClientGrant),
    /// It does not know the client, for this reason; the next one is asked.
    Skipped(String),
    /// It knows the client, whose password is another; the next one is asked. Unless that one lets the client in, it counts as
    /// wrong credentials, whatever others cannot tell.
    Wrong(String),
    /// It cannot tell now, for this reason; the next one is asked. If nobody knows the client, it may come again.
    Unknown(String),
    /// It knows that the client must not connect; nobody else is asked.
    Refused(String),
    /// It cannot tell now.
    Busy,
}

/// What all providers say.
enum Decision {
    Granted(ClientGrant),
    Refused(BrokerRefusal, String),
    /// Too many passwords are being checked, which says nothing of the client.
    Busy,
}

impl BrokerAccessService {
    /// Lets a client in or not. One that is refused is remembered until it is let in.
    ///
    /// # Errors
    /// Why it is refused.
    pub async fn log_in(&self, login: ClientLogin<'_>) -> Result<ClientGrant, BrokerRefusal> {
        let state = &self.0;
        let decided = state.decide(&login).await;
        state.conclude(decided, &login)
    }
}

/// Why a client is refused that has to show a certificate.
pub(super) const NO_CERTIFICATE: &str = "A client certificate is required";
/// Why a client is refused where the order of providers is empty.
const NOBODY_IS_ASKED: &str = "No provider is in the order in which they are asked";
/// Why a blocked client is refused.
pub(super) const BLOCKED: &str = "Client is blocked";

/// The store has failed.
pub(super) fn unavailable(error: &StoreError) -> BrokerRefusal {
    if let Some(suppressed) = STORE_GATE.open() {
        warn!(%error, suppressed, "cannot look up a client of the broker");
    }
    BrokerRefusal::Unavailable
}

/// Whether the password is longer than any that is checked.
fn is_long(login: &ClientLogin<'_>) -> bool {
    login
        .password
        .is_some_and(|password| password.len() > MAX_PASSWORD)
}

/// A text of a client in the reason of a refusal.
fn shown(text: Option<&str>) -> String {
    text.map_or_else(|| "null".to_owned(), |text| text.chars().take(255).collect())
}

/// What `MQTT_BASIC` credentials of a client may be found by, in the order in which they are tried. Names that are never stored
/// are not looked for, nor kept in the cache.
pub(super) fn candidate_ids(strategy: BasicStrategy, client: &str, username: Option<&str>) -> Vec<String> {
    let client = Some(client).filter(|client| !client.is_empty() && is_storable(client));
    let user = username.filter(|user| !user.is_empty() && is_storable(user));
    let by_client = client.map(client_id);
    let by_user = user.map(username_id);
    match strategy {
        BasicStrategy::ClientId => by_client.into_iter().collect(),
        BasicStrategy::Username => by_user.into_iter().collect(),
        BasicStrategy::ClientIdAndUsername => {
            let by_both = user.zip(client).map(|(user, client)| mixed_id(user, client));
            [by_user, by_client, by_both].into_iter().flatten().collect()
        }
    }
}

impl AccessState {
    /// Remembers a client that is refused, until it is let in.
    fn conclude(
        &self,
        decided: StoreResult<Decision>,
        login: &ClientLogin<'_>,
    ) -> Result<ClientGrant, BrokerRefusal> {
        match decided {
            Ok(Decision::Granted(grant)) => {
                self.unauthorized.forget(login.client_id);
                Ok(grant)
            }
            Ok(Decision::Refused(refusal, reason)) => {
                self.unauthorized.note(self.refused(login, reason));
                Err(refusal)
            }
            Ok(Decision::Busy) => Err(BrokerRefusal::Unavailable),
            Err(error) => Err(unavailable(&error)),
        }
    }

    /// The record of a client that is refused.
    pub(super) fn refused(&self, login: &ClientLogin<'_>, reason: String) -> UnauthorizedClient {
        UnauthorizedClient {
            client_id: login.client_id.to_owned(),
            ip_address: login.address.to_canonical().to_string(),
            ts: self.now(),
            username: login.username.map(str::to_owned),
            password_provided: login.password.is_some(),
            tls_used: login.is_tls,
            reason,
        }
    }

    /// Whether a client is blocked.
    pub(super) async fn is_blocked(&self, login: &ClientLogin<'_>) -> StoreResult<bool> {
        let blocked = self.blocked().await?;
        Ok(blocked.has(login.client_id, login.username, login.address, self.now()))
    }

    async fn decide(&self, login: &ClientLogin<'_>) -> StoreResult<Decision> {
        if self.is_blocked(login).await? {
            return Ok(Decision::Refused(BrokerRefusal::Banned, BLOCKED.to_owned()));
        }
        let providers = self.auth_providers().await?;
        if providers.are_all_off() {
            return Ok(Decision::Granted(ClientGrant::default()));
        }
        let refused = |reason| Ok(Decision::Refused(BrokerRefusal::Unknown, reason));
        if providers.misses_certificate(login) {
            return refused(NO_CERTIFICATE.to_owned());
        }
        let mut is_wrong = false;
        let mut may_be_known = false;
        let mut reasons = Vec::with_capacity(providers.order.len());
        for &kind in &*providers.order {
            if !providers.settings.is_enabled(kind) {
                reasons.push(disabled(kind));
                continue;
            }
            match self.ask(kind, &providers, login).await? {
                Answer::Granted(grant) => return Ok(Decision::Granted(grant)),
                Answer::Skipped(reason) => reasons.push(reason),
                Answer::Unknown(reason) => {
                    may_be_known = true;
                    reasons.push(reason);
                }
                Answer::Wrong(reason) => {
                    is_wrong = true;
                    reasons.push(reason);
                }
                Answer::Refused(reason) => {
                    is_wrong = true;
                    reasons.push(reason);
                    break;
                }
                Answer::Busy => return Ok(Decision::Busy),
            }
        }
        let refusal = match may_be_known && !is_wrong {
            true => BrokerRefusal::Unavailable,
            false => BrokerRefusal::Unknown,
        };
        if reasons.is_empty() {
            reasons.push(NOBODY_IS_ASKED.to_owned());
        }
        Ok(Decision::Refused(refusal, reasons.join(" | ")))
    }

    /// Asks a provider that is enabled.
    async fn ask(
        &self,
        kind: AuthProviderType,
        providers: &PreparedProviders,
        login: &ClientLogin<'_>,
    ) -> StoreResult<Answer> {
        let settings = &providers.settings;
        match kind {
            AuthProviderType::MqttBasic => {
                let strategy = settings.basic.configuration.auth_strategy;
                self.by_password(login, strategy).await
            }
            AuthProviderType::X509 => {
                let configuration = settings.certificates.configuration;
                if configuration.client_auth_type == ClientCertificates::None {
                    return Ok(Answer::Skipped(
                        "Client certificates are not looked at".to_owned(),
                    ));
                }
                self.by_certificate(login, configuration.skip_validity_check_for_client_cert)
                    .await
            }
            AuthProviderType::Jwt => Ok(match &providers.jwt {
                _ if is_long(login) => {
                    Answer::Skipped("JWT authentication failed: the token is too long".to_owned())
                }
                Ok(verifier) => match verifier.grant(login, self.now()).await {
                    Ok(grant) => Answer::Granted(grant),
                    Err(TokenError::Refused(reason)) => Answer::Skipped(reason),
                    Err(TokenError::NoKeys(reason)) => Answer::Unknown(reason),
                },
                Err(reason) => Answer::Skipped(reason.to_string()),
            }),
            AuthProviderType::Http => Ok(match &providers.http {
                _ if is_long(login) => {
                    Answer::Skipped("HTTP authentication failed: the password is too long".to_owned())
                }
                Ok(server) => match server.ask(login).await {
                    HttpAnswer::Granted(grant) => Answer::Granted(grant),
                    HttpAnswer::Skipped(reason) => Answer::Skipped(reason),
                    HttpAnswer::Unknown(reason) => Answer::Unknown(reason),
                    HttpAnswer::Refused(reason) => Answer::Refused(reason),
                },
                Err(reason) => Answer::Skipped(reason.to_string()),
            }),
            // It is asked by the client's own choice.
            AuthProviderType::Scram => Ok(Answer::Skipped(String::new())),
        }
    }

    async fn by_password(&self, login: &ClientLogin<'_>, strategy: BasicStrategy) -> StoreResult<Answer> {
        let ids = candidate_ids(strategy, login.client_id, login.username);
        let mut found = self.credentials(&ids).await?;
        found.retain(|credentials| credentials.are_for(login.client_id, login.username));
        let whose = || {
            format!(
                "clientId: {}, username: {}",
                shown(Some(login.client_id)),
                shown(login.username)
            )
        };
        if found.is_empty() {
            return Ok(Answer::Skipped(format!(
                "Basic authentication failed: no credentials found matching {}",
                whose()
            )));
        }
        for credentials in found {
            match self.is_password_of(&credentials, login).await {
                Ok(Some(grant)) => return Ok(Answer::Granted(grant)),
                Ok(None) => {}
                Err(_) => return Ok(Answer::Busy),
            }
        }
        let what = match login.password {
            Some(_) => "provided password does not match",
            None => "password not provided to match",
        };
        let reason = format!(
            "Basic authentication failed: {what} the credentials found by {}",
            whose()
        );
        // Nothing was compared where there is no password, or one that is longer than any.
        Ok(match login.password.is_some() && !is_long(login) {
            true => Answer::Wrong(reason),
            false => Answer::Skipped(reason),
        })
    }

    /// What a client may do whose password is that of credentials; `None` if it is another.
    async fn is_password_of(
        &self,
        credentials: &PreparedCredentials,
        login: &ClientLogin<'_>,
    ) -> Result<Option<ClientGrant>, crate::password::PasswordError> {
        let PreparedKind::Basic {
            password_hash,
            right,
            rules,
            ..
        } = &credentials.kind
        else {
            return Ok(None);
        };
        let is_right = match (password_hash, login.password) {
            (None, _) => true,
            (Some(_), None) => false,
            (Some(_), Some(password)) if password.len() > MAX_PASSWORD => false,
            (Some(hash), Some(password)) => {
                let digest = self.cache.digester.digest(password);
                let was_right = *right.lock() == Some(digest);
                if was_right {
                    true
                } else {
                    let password = String::from_utf8_lossy(password);
                    let from = Some(login.address.to_canonical());
                    let is_right = self
                        .passwords
                        .verify_from(from, &password, Some(hash.as_str()))
                        .await?;
                    if is_right {
                        *right.lock() = Some(digest);
                    }
                    is_right
                }
            }
        };
        Ok(is_right.then(|| ClientGrant {
            client_type: credentials.stored.client_type.into(),
            rules: Some(rules.clone()),
        }))
    }

    async fn by_certificate(&self, login: &ClientLogin<'_>, ignores_time: bool) -> StoreResult<Answer> {
        const UNKNOWN: &str = "Failed to authenticate client using X_509_CERTIFICATE_CHAIN credentials! No \
                               X_509_CERTIFICATE_CHAIN matching credentials were found!";
        if !login.is_tls {
            let reason = "Could not authenticate client using X_509_CERTIFICATE_CHAIN credentials since SSL handler is \
                          not constructed!";
            return Ok(Answer::Skipped(reason.to_owned()));
        }
        if !login.has_certificate {
            let reason = "Peer's identity has not been verified";
            return Ok(Answer::Skipped(reason.to_owned()));
        }
        let names = match (login.common_names)(ignores_time) {
            Ok(names) => names,
            Err(error) => return Ok(Answer::Skipped(format!("X509 auth failure: {error}"))),
        };
        let Some(own) = names.first() else {
            return Ok(Answer::Skipped(UNKNOWN.to_owned()));
        };
        let patterns = self.certificate_patterns().await?;
        for name in names.iter().take(MAX_CHAIN) {
            let by_pattern = patterns.iter().find(|credentials| credentials.finds(name));
            let found = match by_pattern {
                Some(credentials) => Some(credentials.clone()),
                None if is_storable(name) => {
                    let found = self.credentials(&[certificate_id(name)]).await?.pop();
                    found.filter(|credentials| credentials.are_for_a_name())
                }
                None => None,
            };
            let Some(credentials) = found else { continue };
            // Whatever certificate has let it in, the client is that of the leaf.
            return Ok(match credentials.certificate_grant(own) {
                Some(grant) => Answer::Granted(grant),
                None => Answer::Skipped(format!(
                    "Cannot find authorization rules for common name [{}] from credentials [{}]",
                    shown(Some(own)),
                    credentials.stored.name
                )),
            });
        }
        Ok(Answer::Skipped(UNKNOWN.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_looked_up_as_the_strategy_says() {
        let by = |strategy, client, user| candidate_ids(strategy, client, user).join(" ");
        let both = BasicStrategy::ClientIdAndUsername;
        assert_eq!(by(both, "c", Some("u")), "username|u client_id|c mixed|u|c");
        assert_eq!(by(both, "c", None), "client_id|c");
        assert_eq!(by(both, "", Some("u")), "username|u");
        assert_eq!(by(both, "c", Some("")), "client_id|c");
        assert_eq!(by(BasicStrategy::ClientId, "c", Some("u")), "client_id|c");
        assert_eq!(by(BasicStrategy::Username, "c", Some("u")), "username|u");
        assert_eq!(by(BasicStrategy::Username, "c", None), "");
        let (longest, long) = ("é".repeat(255), "é".repeat(256));
        assert_eq!(by(both, &longest, None), format!("client_id|{longest}"));
        assert_eq!(by(both, &long, Some("u")), "username|u");
        assert_eq!(by(both, "c", Some(&long)), "client_id|c");
        assert_eq!(by(both, "a\0", Some(&long)), "");
    }
}
