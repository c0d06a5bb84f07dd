//! Resolves options into addresses, TLS configuration and a server.

use std::net::{SocketAddr, ToSocketAddrs as _};
use std::path::Path;
use std::sync::Arc;

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use ureq::http::Uri;

use crate::child::{OwnServer, own_server};
use crate::cleanup::CleanupPath;
use crate::cli::{MqttServerArgs, TargetArgs};
use crate::engine::ClientTls;
use crate::error::{LoadError, LoadResult};
use crate::process::pid_listening_on;
use crate::rest::{RestClient, RestTarget};

/// The demo's tenant administrator, which a server started here has.
const DEMO_TENANT: (&str, &str) = ("tenant@thingsboard.org", "tenant");

/// Paths where systems keep their trusted certificates.
const SYSTEM_CERTIFICATES: [&str; 3] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/cert.pem",
];

/// The server under load.
pub(crate) struct LoadTarget {
    pub(crate) client: RestClient,
    /// Base URL of REST and HTTP devices, without a trailing slash.
    pub(crate) url: String,
    pub(crate) mqtt: SocketAddr,
    pub(crate) tls: Option<ClientTls>,
    /// The server's process, if it runs on this machine.
    pub(crate) pid: Option<u32>,
    // Declared before `home`, so that the server ends before its files are removed.
    own: Option<OwnServer>,
    /// Directory of the servers that were started for this run.
    pub(crate) home: CleanupPath,
}

/// The target of HTTP devices.
pub(crate) struct HttpTarget {
    pub(crate) address: SocketAddr,
    /// Host and port as requests name them.
    pub(crate) host: String,
    /// Path before that of the API.
    pub(crate) prefix: String,
}

impl LoadTarget {
    /// Finds the server, or starts one.
    pub(crate) fn find(args: &TargetArgs) -> LoadResult<Self> {
        let home = CleanupPath::directory()?;
        let own = args.own_server.then(|| own_server(home.path())).transpose()?;
        let (url, mqtt, user) = match &own {
            Some(own) => (own.url.clone(), own.mqtt, DEMO_TENANT),
            None => (
                args.rest_url.trim_end_matches('/').to_owned(),
                resolve("--mqtt-host", &args.mqtt.mqtt_host, args.mqtt.mqtt_port)?,
                (args.username.as_str(), args.password.as_str()),
            ),
        };
        let tls = args.mqtt.tls(&args.mqtt.mqtt_host)?;
        let pid = match &own {
            Some(own) => Some(own.process.pid()),
            None => args.mqtt.server_pid.or_else(|| local_pid(mqtt)),
        };
        let client = RestClient::new(RestTarget {
            url: url.clone(),
            username: user.0.to_owned(),
            password: user.1.to_owned(),
            pool_size: args.rest_pool_size,
        })
        .map_err(|error| match error {
            LoadError::InvalidOption(reason) => LoadError::InvalidOption(format!("--rest-url: {reason}")),
            other => other,
        })?;
        Ok(Self {
            client,
            url,
            mqtt,
            tls,
            pid,
            own,
            home,
        })
    }

    /// Whether the server was started for this run.
    pub(crate) fn is_own(&self) -> bool {
        self.own.is_some()
    }

    /// Returns the target of HTTP devices.
    pub(crate) fn http(&self) -> LoadResult<HttpTarget> {
        http_target(&self.url)
    }
}

impl MqttServerArgs {
    /// The TLS configuration for a host, if TLS is wanted.
    pub(crate) fn tls(&self, host: &str) -> LoadResult<Option<ClientTls>> {
        self.mqtt_tls
            .then(|| tls(host, self.mqtt_ca.as_deref()))
            .transpose()
    }
}

/// The process that listens on an address, if it is one of this machine.
pub(crate) fn local_pid(address: SocketAddr) -> Option<u32> {
    match address.ip().is_loopback() {
        true => pid_listening_on(address.port()),
        false => None,
    }
}

fn http_target(url: &str) -> LoadResult<HttpTarget> {
    let uri: Uri = url
        .parse()
        .map_err(|error| LoadError::InvalidOption(format!("--rest-url {url}: {error}")))?;
    let (Some("http"), Some(authority)) = (uri.scheme_str(), uri.authority()) else {
        return Err(LoadError::InvalidOption(format!(
            "--rest-url {url}: HTTP devices need one that begins with http://"
        )));
    };
    Ok(HttpTarget {
        address: resolve("--rest-url", authority.host(), authority.port_u16().unwrap_or(80))?,
        host: authority.to_string(),
        prefix: uri.path().trim_end_matches('/').to_owned(),
    })
}

/// Returns the first address of a host, IPv4 before IPv6, since servers listen at least on IPv4.
pub(crate) fn resolve(option: &str, host: &str, port: u16) -> LoadResult<SocketAddr> {
    let name = host.trim_start_matches('[').trim_end_matches(']');
    let addresses: Vec<_> = (name, port)
        .to_socket_addrs()
        .map_err(|error| LoadError::InvalidOption(format!("{option} {host}: {error}")))?
        .collect();
    addresses
        .iter()
        .find(|address| address.is_ipv4())
        .or(addresses.first())
        .copied()
        .ok_or_else(|| LoadError::InvalidOption(format!("{option} {host} has no address")))
}

fn tls(host: &str, ca: Option<&Path>) -> LoadResult<ClientTls> {
    let roots = match ca.filter(|path| !path.as_os_str().is_empty()) {
        Some(path) => trusted_in(path)?,
        None => system_roots()?,
    };
    let refuse = |reason: String| LoadError::InvalidOption(format!("--mqtt-tls: {reason}"));
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| refuse(error.to_string()))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = ServerName::try_from(host.to_owned())
        .map_err(|_| refuse(format!("--mqtt-host {host} cannot be the name of a certificate")))?;
    Ok(ClientTls {
        config: Arc::new(config),
        name,
    })
}

/// Loads the certificates of a file that the user has named: all of them must be valid.
fn trusted_in(path: &Path) -> LoadResult<RootCertStore> {
    let refuse = |reason: String| LoadError::InvalidOption(format!("--mqtt-ca {}: {reason}", path.display()));
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(path).map_err(|error| refuse(error.to_string()))? {
        let certificate = certificate.map_err(|error| refuse(error.to_string()))?;
        roots
            .add(certificate)
            .map_err(|error| refuse(error.to_string()))?;
    }
    if roots.is_empty() {
        return Err(refuse(
            "holds no PEM certificate; Java key stores are not read".to_owned(),
        ));
    }
    Ok(roots)
}

fn system_roots() -> LoadResult<RootCertStore> {
    let mut roots = RootCertStore::empty();
    for path in SYSTEM_CERTIFICATES {
        if let Ok(certificates) = CertificateDer::pem_file_iter(path) {
            roots.add_parsable_certificates(certificates.flatten());
        }
        if !roots.is_empty() {
            return Ok(roots);
        }
    }
    Err(LoadError::InvalidOption(
        "--mqtt-tls: this system has no certificates to trust; name a PEM file with --mqtt-ca (MQTT_SSL_KEY_STORE)"
            .to_owned(),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn http_devices_post_to_where_the_rest_api_is() {
        for (url, address, host, prefix) in [
            ("http://127.0.0.1:8080", "127.0.0.1:8080", "127.0.0.1:8080", ""),
            ("http://127.0.0.1", "127.0.0.1:80", "127.0.0.1", ""),
            ("http://[::1]:81/iot/tb", "[::1]:81", "[::1]:81", "/iot/tb"),
        ] {
            let target = http_target(url).expect(url);
            assert_eq!(target.address.to_string(), address);
            assert_eq!((target.host.as_str(), target.prefix.as_str()), (host, prefix));
        }
        for url in ["https://127.0.0.1:8080", "http://:80", "/x"] {
            assert!(
                matches!(http_target(url), Err(LoadError::InvalidOption(_))),
                "{url}"
            );
        }
    }

    #[test]
    fn a_file_without_certificates_is_refused_by_its_option() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("store.jks");
        std::fs::write(&path, b"\xfe\xed\xfe\xed").unwrap();
        for path in [path.as_path(), &directory.path().join("none")] {
            let error = trusted_in(path).unwrap_err().to_string();
            assert!(error.contains("--mqtt-ca"), "{error}");
        }
    }
}
