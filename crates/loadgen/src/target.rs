//! From options to addresses, TLS and devices.

use std::net::{SocketAddr, ToSocketAddrs as _};
use std::path::Path;
use std::sync::Arc;

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tempfile::TempDir;

use crate::child::{OwnServer, own_server};
use crate::cli::TargetArgs;
use crate::engine::Tls;
use crate::error::{LoadError, LoadResult};
use crate::process::pid_listening_on;
use crate::rest::{RestClient, RestTarget};

/// The server under load.
pub(crate) struct Target {
    pub(crate) client: RestClient,
    /// Address of REST and of HTTP devices, without a slash at the end.
    pub(crate) url: String,
    pub(crate) mqtt: SocketAddr,
    pub(crate) tls: Option<Tls>,
    /// Its process, if it runs on this machine.
    pub(crate) pid: Option<u32>,
    /// Where servers that were started for this run keep their files.
    pub(crate) home: TempDir,
    own: Option<OwnServer>,
}

impl Target {
    /// Finds the server, or starts one.
    pub(crate) fn find(args: &TargetArgs) -> LoadResult<Self> {
        let home = TempDir::with_prefix("fieldline-bench-").map_err(|error| LoadError::Io {
            path: std::env::temp_dir(),
            error,
        })?;
        let own = args.own_server.then(|| own_server(home.path())).transpose()?;
        let (url, mqtt) = match &own {
            Some(own) => (own.url.clone(), own.mqtt),
            None => (
                args.rest_url.trim_end_matches('/').to_owned(),
                resolve(&args.mqtt_host, args.mqtt_port)?,
            ),
        };
        let tls = (args.mqtt_tls && own.is_none())
            .then(|| tls(&args.mqtt_host, args.mqtt_ca.as_deref()))
            .transpose()?;
        let pid = match &own {
            Some(own) => Some(own.process.pid()),
            None if args.server_pid.is_some() => args.server_pid,
            None if mqtt.ip().is_loopback() => pid_listening_on(mqtt.port()),
            None => None,
        };
        let client = RestClient::new(RestTarget {
            url: url.clone(),
            username: args.username.clone(),
            password: args.password.clone(),
            pool_size: args.rest_pool_size.clamp(1, 64),
        })?;
        Ok(Self {
            client,
            url,
            mqtt,
            tls,
            pid,
            home,
            own,
        })
    }

    /// Whether it was started for this run.
    pub(crate) fn is_own(&self) -> bool {
        self.own.is_some()
    }

    /// Address of HTTP devices.
    pub(crate) fn http(&self) -> LoadResult<(SocketAddr, String)> {
        let Some(host) = self.url.strip_prefix("http://") else {
            return Err(LoadError::InvalidOption(
                "HTTP devices need a --rest-url that begins with http://".to_owned(),
            ));
        };
        let (name, port) = host.rsplit_once(':').unwrap_or((host, "80"));
        let port = port
            .parse()
            .map_err(|_| LoadError::InvalidOption(format!("--rest-url: `{port}` is no port")))?;
        Ok((resolve(name, port)?, host.to_owned()))
    }
}

/// The first address of a host, IPv4 before IPv6 since servers listen there at least.
fn resolve(host: &str, port: u16) -> LoadResult<SocketAddr> {
    let name = host.trim_start_matches('[').trim_end_matches(']');
    let addresses: Vec<_> = (name, port)
        .to_socket_addrs()
        .map_err(|error| LoadError::InvalidOption(format!("host `{host}`: {error}")))?
        .collect();
    addresses
        .iter()
        .find(|address| address.is_ipv4())
        .or(addresses.first())
        .copied()
        .ok_or_else(|| LoadError::InvalidOption(format!("host `{host}` has no address")))
}

fn tls(host: &str, ca: Option<&Path>) -> LoadResult<Tls> {
    let Some(ca) = ca.filter(|path| !path.as_os_str().is_empty()) else {
        return Err(LoadError::InvalidOption(
            "--mqtt-tls needs --mqtt-ca (MQTT_SSL_KEY_STORE), a PEM file of certificates to trust".to_owned(),
        ));
    };
    let refuse = |reason: String| LoadError::InvalidOption(format!("--mqtt-ca {}: {reason}", ca.display()));
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(ca).map_err(|error| refuse(error.to_string()))? {
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
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| refuse(error.to_string()))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = ServerName::try_from(host.to_owned()).map_err(|_| {
        LoadError::InvalidOption(format!(
            "--mqtt-host `{host}` cannot be the name of a certificate"
        ))
    })?;
    Ok(Tls {
        config: Arc::new(config),
        name,
    })
}
