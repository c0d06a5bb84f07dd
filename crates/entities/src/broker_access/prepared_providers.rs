//! The ways in which clients show who they are, as log-ins use them: read, and ready to be asked.

use std::sync::Arc;

use fieldline_core::logging::LogGate;
use fieldline_core::ports::RestEndpoints;
use tracing::warn;

use super::http_provider::HttpAuthenticator;
use super::jwt::JwtVerifier;
use super::login::ClientLogin;
use super::provider_settings::{AuthProviders, ClientCertificates};
use super::providers::AuthProviderType;

static UNUSABLE_GATE: LogGate = LogGate::new(2);

/// One that cannot be used says why.
type Prepared<T> = Result<Arc<T>, Arc<str>>;

/// See the module.
#[derive(Clone)]
pub(super) struct PreparedProviders {
    pub(super) settings: Arc<AuthProviders>,
    /// The order in which they are asked. Those that are not in it are not.
    pub(super) order: Arc<[AuthProviderType]>,
    pub(super) jwt: Prepared<JwtVerifier>,
    pub(super) http: Prepared<HttpAuthenticator>,
}

impl PreparedProviders {
    /// Makes them ready. What is ready in `last` and works by the same settings stays.
    pub(super) fn new(
        settings: AuthProviders,
        order: Vec<AuthProviderType>,
        last: Option<&Self>,
        endpoints: &dyn RestEndpoints,
    ) -> Self {
        let last_jwt = last.and_then(|last| Some((&last.settings.jwt, last.jwt.as_ref().ok()?)));
        let jwt = match last_jwt {
            Some((before, ready)) if before.works_as(&settings.jwt) => Ok(ready.clone()),
            _ => prepared(settings.jwt.enabled, AuthProviderType::Jwt, || {
                let last = last_jwt.map(|(_, ready)| &**ready);
                JwtVerifier::new(&settings.jwt.configuration, last, endpoints)
            }),
        };
        let last_http = last.and_then(|last| Some((&last.settings.http, last.http.as_ref().ok()?)));
        let http = match last_http {
            Some((before, ready)) if before.works_as(&settings.http) => Ok(ready.clone()),
            _ => prepared(settings.http.enabled, AuthProviderType::Http, || {
                HttpAuthenticator::new(&settings.http.configuration, endpoints)
            }),
        };
        Self {
            settings: Arc::new(settings),
            order: order.into(),
            jwt,
            http,
        }
    }

    /// Whether nobody is asked about clients: every client may connect then.
    pub(super) fn are_all_off(&self) -> bool {
        AuthProviderType::ALL
            .into_iter()
            .all(|kind| !self.settings.is_enabled(kind))
    }

    /// Whether a client has to prove that a certificate is its own, and has not.
    pub(super) fn misses_certificate(&self, login: &ClientLogin<'_>) -> bool {
        let certificates = &self.settings.certificates;
        let configuration = certificates.configuration;
        // The handshake takes certificates of anybody.
        let is_proven = || {
            let ignores_time = configuration.skip_validity_check_for_client_cert;
            login.has_certificate && (login.common_names)(ignores_time).is_ok()
        };
        certificates.enabled
            && configuration.client_auth_type == ClientCertificates::Required
            && login.is_tls
            && !is_proven()
    }
}

/// Why a provider is not asked that is off.
pub(super) fn disabled(kind: AuthProviderType) -> String {
    format!("{} authentication is disabled", kind.title())
}

/// What is off needs no keys and no connections.
fn prepared<T>(
    is_enabled: bool,
    kind: AuthProviderType,
    prepare: impl FnOnce() -> Result<T, String>,
) -> Prepared<T> {
    if !is_enabled {
        return Err(disabled(kind).into());
    }
    prepare().map(Arc::new).map_err(|error| {
        if let Some(suppressed) = UNUSABLE_GATE.open() {
            warn!(
                provider = kind.name(),
                error, suppressed, "an MQTT auth provider cannot be used"
            );
        }
        format!("{} authentication cannot be used: {error}", kind.title()).into()
    })
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use serde_json::{Value, json};

    use super::super::fake_server::FakeServer;
    use super::*;

    fn settings(document: Value) -> AuthProviders {
        serde_json::from_value(document).expect("settings")
    }

    #[test]
    fn a_certificate_that_is_required_has_to_be_proven() {
        let misses = |kind: &str, skips: bool, is_tls: bool, proven: Option<bool>| {
            let configuration = json!({ "clientAuthType": kind, "skipValidityCheckForClientCert": skips });
            let certificates = json!({ "X_509": { "enabled": true, "configuration": configuration } });
            let endpoints = FakeServer::default();
            let providers = PreparedProviders::new(settings(certificates), Vec::new(), None, &endpoints);
            // One that has expired is proven where its time does not matter.
            let common_names = move |ignores_time: bool| -> Result<Vec<String>, String> {
                match proven {
                    Some(in_time) if in_time || ignores_time => Ok(vec!["name".to_owned()]),
                    _ => Err("of nobody who is known".to_owned()),
                }
            };
            providers.misses_certificate(&ClientLogin {
                client_id: "c",
                username: None,
                password: None,
                address: IpAddr::from([127, 0, 0, 1]),
                is_tls,
                has_certificate: true,
                common_names: &common_names,
            })
        };
        let required = "CLIENT_AUTH_REQUIRED";
        assert!(!misses(required, false, true, Some(true)));
        assert!(!misses(required, true, true, Some(false)));
        assert!(misses(required, false, true, Some(false)), "it has expired");
        assert!(misses(required, true, true, None), "anybody can make one");
        assert!(!misses(required, false, false, None), "there is no TLS");
        assert!(!misses("CLIENT_AUTH_REQUESTED", false, true, None));
    }

    #[test]
    fn what_works_by_the_same_settings_stays_ready() {
        let server = FakeServer::default();
        let both = |url: &str, claim: &str, note: &str| {
            let key_set = json!({ "jwtVerifierType": "JWKS", "endpoint": url });
            let jwt = json!({ "jwtVerifierConfiguration": key_set, "authClaims": { "a": claim } });
            settings(json!({
                "JWT": { "enabled": true, "configuration": jwt, "additionalInfo": note },
                "HTTP": { "enabled": true, "configuration": { "restEndpointUrl": url }, "additionalInfo": note },
            }))
        };
        let made = |settings: AuthProviders, last: Option<&PreparedProviders>| {
            PreparedProviders::new(settings, Vec::new(), last, &server)
        };
        let first = made(both("http://one", "x", "a"), None);
        assert_eq!(server.opened().len(), 2);
        let second = made(both("http://one", "x", "b"), Some(&first));
        assert_eq!(server.opened().len(), 2);
        let is_same_jwt = |a: &PreparedProviders, b: &PreparedProviders| match (&a.jwt, &b.jwt) {
            (Ok(a), Ok(b)) => Arc::ptr_eq(a, b),
            _ => false,
        };
        assert!(is_same_jwt(&first, &second));
        // The fetched keys stay although the claims are others.
        let third = made(both("http://one", "y", "b"), Some(&second));
        assert!(!is_same_jwt(&second, &third));
        assert_eq!(server.opened().len(), 2);
        let fourth = made(both("http://two", "y", "b"), Some(&third));
        assert_eq!(server.opened().len(), 4);

        let off = made(AuthProviders::default(), Some(&fourth));
        assert!(off.jwt.is_err() && off.http.is_err());
        let on = made(both("http://two", "y", "b"), Some(&off));
        assert!(on.jwt.is_ok() && on.http.is_ok());
        // What could not be made ready may be so now.
        let nowhere = fieldline_core::ports::NoRestEndpoints;
        let unusable = PreparedProviders::new(both("http://two", "y", "b"), Vec::new(), None, &nowhere);
        assert!(unusable.jwt.is_err() && unusable.http.is_err());
        let usable = made(both("http://two", "y", "b"), Some(&unusable));
        assert!(usable.jwt.is_ok() && usable.http.is_ok());
    }
}
