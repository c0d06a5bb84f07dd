//! Who may connect to the publish/subscribe broker: devices of the platform, or clients with credentials of their own.

use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use fieldline_core::address_guard::AddressGuard;
use fieldline_core::logging::LogGate;
use fieldline_core::ports::{
    AuthExchange, AuthStep, BegunExchange, BrokerLogin, BrokerRefusal, ClientAuthenticator, ClientGrant,
    StoreResult,
};
use fieldline_devices::directory::{DeviceHandle, MqttLogin};
use fieldline_entities::broker_access::{BrokerAccessService, ClientLogin, CommonNames, ScramExchange};
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tracing::warn;

use crate::mqtts::TlsError;
use crate::{TransportServices, x509};

static STORE_GATE: LogGate = LogGate::new(2);

/// Lets those in who have the credentials of a device.
pub struct DeviceAccess(pub Arc<TransportServices>);

/// Returns the device of an MQTT log-in: that of the certificates if there are any, else of name and password.
pub(crate) async fn device_of(
    services: &TransportServices,
    login: MqttLogin<'_>,
    certificates: Option<&[Vec<u8>]>,
) -> StoreResult<Option<Arc<DeviceHandle>>> {
    match certificates {
        Some(chain) => x509::by_certificate(services, chain).await,
        None => services.directory.by_mqtt_login(login).await,
    }
}

#[async_trait]
impl ClientAuthenticator for DeviceAccess {
    async fn authenticate(&self, login: BrokerLogin<'_>) -> Result<ClientGrant, BrokerRefusal> {
        let guard = &self.0.guard;
        if !guard.try_admit(login.address) {
            return Err(BrokerRefusal::Banned);
        }
        let device = MqttLogin {
            client_id: login.client_id,
            username: login.username,
            password: login.password,
        };
        match device_of(&self.0, device, login.certificates).await {
            Ok(Some(_)) => {
                guard.record_success(login.address);
                Ok(ClientGrant::default())
            }
            Ok(None) => {
                guard.record_failure(login.address);
                Err(BrokerRefusal::Unknown)
            }
            Err(error) => {
                if let Some(suppressed) = STORE_GATE.open() {
                    warn!(%error, suppressed, "cannot look up a client of the broker");
                }
                Err(BrokerRefusal::Unavailable)
            }
        }
    }
}

/// The authorities whose certificates let clients in.
#[derive(Debug, Default)]
pub struct ClientAuthorities(Vec<Vec<u8>>);

impl ClientAuthorities {
    /// Reads certificates in PEM.
    ///
    /// # Errors
    /// The file cannot be read, or has none.
    pub fn read(path: &Path) -> Result<Self, TlsError> {
        let failed = |cause: String| TlsError::File {
            what: "certificates of authorities",
            path: path.to_owned(),
            cause,
        };
        let certificates: Vec<CertificateDer<'static>> = CertificateDer::pem_file_iter(path)
            .and_then(Iterator::collect)
            .map_err(|error| failed(error.to_string()))?;
        if certificates.is_empty() {
            return Err(failed("there is none".to_owned()));
        }
        let certificates = certificates.iter().map(|certificate| certificate.to_vec());
        Ok(Self(certificates.collect()))
    }

    /// The common names of a chain, leaf first. Behind the leaf come only those authorities that have issued it: what else
    /// a client presents is not proven by anything.
    fn common_names(&self, chain: &[Vec<u8>], now_s: i64, ignores_time: bool) -> Result<Vec<String>, String> {
        let Some((leaf, issuers)) = chain.split_first() else {
            return Err("There are no certificates in the chain".to_owned());
        };
        if self.0.is_empty() {
            return Err("`broker.client-authorities` names no authority".to_owned());
        }
        let now_s = if ignores_time {
            x509::within_validity(leaf, now_s).unwrap_or(now_s)
        } else {
            now_s
        };
        let own = x509::common_name(leaf).ok_or("Could not get Common Name from certificate")?;
        let mut failure = None;
        let mut proven = Vec::new();
        for authority in &self.0 {
            match x509::verify(leaf, issuers, authority, now_s) {
                Ok(()) => proven.push(authority),
                Err(error) => failure = Some(error),
            }
        }
        if let Some(error) = failure.filter(|_| proven.is_empty()) {
            return Err(error);
        }
        let mut names = vec![own];
        let above = issuers.iter().filter(|shown| proven.contains(shown));
        names.extend(above.filter_map(|issuer| x509::common_name(issuer)));
        Ok(names)
    }
}

/// Lets those in who have credentials for the broker.
pub struct CredentialsAccess {
    /// Turns away addresses that keep sending wrong credentials, and knows the time.
    pub services: Arc<TransportServices>,
    /// The credentials.
    pub access: BrokerAccessService,
    /// Who has issued the certificates of clients.
    pub authorities: ClientAuthorities,
}

impl CredentialsAccess {
    /// What the access to the broker has to know of a client.
    fn client<'a>(login: &BrokerLogin<'a>, common_names: &'a CommonNames<'a>) -> ClientLogin<'a> {
        ClientLogin {
            client_id: login.client_id,
            username: login.username,
            password: login.password,
            address: login.address,
            is_tls: login.is_tls,
            has_certificate: login.certificates.is_some_and(|chain| !chain.is_empty()),
            common_names,
        }
    }

    /// Reads the common names of a client's certificates.
    fn common_names<'a>(
        &'a self,
        login: &BrokerLogin<'a>,
    ) -> impl Fn(bool) -> Result<Vec<String>, String> + Send + Sync + 'a {
        let now_s = self.services.clock.now_ms() / 1_000;
        let chain = login.certificates.unwrap_or_default();
        move |ignores_time| self.authorities.common_names(chain, now_s, ignores_time)
    }
}

/// Counts wrong credentials of an address.
fn record<T>(guard: &AddressGuard, address: IpAddr, outcome: &Result<T, BrokerRefusal>) {
    match outcome {
        Ok(_) => guard.record_success(address),
        Err(BrokerRefusal::Unknown) => guard.record_failure(address),
        Err(BrokerRefusal::Banned | BrokerRefusal::Unavailable | BrokerRefusal::UnknownMethod) => {}
    }
}

/// An exchange whose failure counts for the client's address.
struct GuardedExchange {
    exchange: Option<ScramExchange>,
    services: Arc<TransportServices>,
    address: IpAddr,
}

impl AuthExchange for GuardedExchange {
    fn receive(&mut self, message: &[u8]) -> Result<AuthStep, BrokerRefusal> {
        let exchange = self.exchange.take().ok_or(BrokerRefusal::Unknown)?;
        let finished = exchange.finish(message);
        record(&self.services.guard, self.address, &finished);
        finished.map(|(grant, message)| AuthStep::Granted(grant, message))
    }
}

#[async_trait]
impl ClientAuthenticator for CredentialsAccess {
    async fn authenticate(&self, login: BrokerLogin<'_>) -> Result<ClientGrant, BrokerRefusal> {
        let guard = &self.services.guard;
        if !guard.try_admit(login.address) {
            return Err(BrokerRefusal::Banned);
        }
        let common_names = self.common_names(&login);
        let granted = self.access.log_in(Self::client(&login, &common_names)).await;
        record(guard, login.address, &granted);
        granted
    }

    async fn begin_exchange(
        &self,
        login: BrokerLogin<'_>,
        method: &str,
        message: &[u8],
    ) -> Result<BegunExchange, BrokerRefusal> {
        let guard = &self.services.guard;
        if !guard.try_admit(login.address) {
            return Err(BrokerRefusal::Banned);
        }
        let common_names = self.common_names(&login);
        let client = Self::client(&login, &common_names);
        let begun = self.access.begin_exchange(client, method, message).await;
        if begun.is_err() {
            record(guard, login.address, &begun);
        }
        let (exchange, answer) = begun?;
        let exchange = GuardedExchange {
            exchange: Some(exchange),
            services: self.services.clone(),
            address: login.address,
        };
        Ok((Box::new(exchange), answer))
    }
}
