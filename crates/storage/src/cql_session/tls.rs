//! TLS to Cassandra: rustls with ring.

use std::error::Error;
use std::path::Path;
use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::ring;
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};

use crate::series::CassandraOptions;

/// Why the settings make no TLS.
#[derive(Debug, thiserror::Error)]
enum CqlTlsError {
    #[error("`cassandra.{setting}`, {path}: {cause}")]
    File {
        setting: &'static str,
        path: String,
        cause: rustls_pki_types::pem::Error,
    },
    #[error("`cassandra.{setting}`, {path}: has no certificate that can be used")]
    Empty { setting: &'static str, path: String },
    #[error("the system has no certificates of authorities: name those of the cluster with `cassandra.ca`")]
    NoSystemRoots,
}

/// The configuration of connections, of settings that ask for TLS.
pub(super) fn client_config(
    options: &CassandraOptions,
) -> Result<Arc<ClientConfig>, Box<dyn Error + Send + Sync>> {
    let provider = Arc::new(ring::default_provider());
    let roots = Arc::new(roots(options.ca.as_deref())?);
    let webpki = WebPkiServerVerifier::builder_with_provider(roots, provider.clone()).build()?;
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
    let builder = match options.verify_hostname {
        true => builder.with_webpki_verifier(webpki),
        false => builder
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(AnyNameVerifier { webpki })),
    };
    let config = match (&options.certificate, &options.private_key) {
        (Some(certificate), Some(key)) => {
            let chain = certificates("certificate", certificate)?;
            let key = PrivateKeyDer::from_pem_file(key).map_err(|cause| CqlTlsError::File {
                setting: "private-key",
                path: key.display().to_string(),
                cause,
            })?;
            builder.with_client_auth_cert(chain, key)?
        }
        _ => builder.with_no_client_auth(),
    };
    Ok(Arc::new(config))
}

fn roots(ca: Option<&Path>) -> Result<RootCertStore, CqlTlsError> {
    let mut roots = RootCertStore::empty();
    let Some(path) = ca else {
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        return match roots.is_empty() {
            true => Err(CqlTlsError::NoSystemRoots),
            false => Ok(roots),
        };
    };
    let (added, _) = roots.add_parsable_certificates(certificates("ca", path)?);
    match added {
        0 => Err(empty("ca", path)),
        _ => Ok(roots),
    }
}

fn certificates(setting: &'static str, path: &Path) -> Result<Vec<CertificateDer<'static>>, CqlTlsError> {
    let failed = |cause| CqlTlsError::File {
        setting,
        path: path.display().to_string(),
        cause,
    };
    let certificates: Vec<_> = CertificateDer::pem_file_iter(path)
        .map_err(failed)?
        .collect::<Result<_, _>>()
        .map_err(failed)?;
    match certificates.is_empty() {
        true => Err(empty(setting, path)),
        false => Ok(certificates),
    }
}

fn empty(setting: &'static str, path: &Path) -> CqlTlsError {
    CqlTlsError::Empty {
        setting,
        path: path.display().to_string(),
    }
}

/// Checks the chain of a certificate, but not whom it names: the nodes that a cluster tells of are addresses, which their
/// certificates seldom have.
#[derive(Debug)]
struct AnyNameVerifier {
    webpki: Arc<WebPkiServerVerifier>,
}

impl ServerCertVerifier for AnyNameVerifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let verified =
            self.webpki
                .verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now);
        match verified {
            // The name is looked at last.
            Err(rustls::Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) => Ok(ServerCertVerified::assertion()),
            verified => verified,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.webpki.verify_tls12_signature(message, cert, dss)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.webpki.verify_tls13_signature(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.webpki.supported_verify_schemes()
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::CassandraOptions;
    use crate::cql_session::connect;

    fn named(name: &str) -> String {
        std::env::var(name).unwrap_or_else(|_| panic!("{name} is set by tests/services/with-cassandra.sh"))
    }

    #[tokio::test]
    #[ignore = "needs Cassandra with TLS"]
    async fn nodes_are_reached_behind_certificates_users_and_passwords() {
        let certificates = PathBuf::from(named("FIELDLINE_TEST_CASSANDRA_TLS"));
        let right = CassandraOptions {
            nodes: named("FIELDLINE_TEST_CASSANDRA_NODES"),
            user: Some("cassandra".to_owned()),
            password: Some("cassandra".to_owned()),
            tls: true,
            ca: Some(certificates.join("ca.pem")),
            certificate: Some(certificates.join("client.pem")),
            private_key: Some(certificates.join("client.key")),
            ..CassandraOptions::default()
        };
        assert_eq!(right.problem(), None);
        let session = connect(&right).await.unwrap();
        session
            .query_unpaged("SELECT cluster_name FROM system.local", ())
            .await
            .unwrap();
        let wrong = [
            CassandraOptions {
                password: Some("wrong".to_owned()),
                ..right.clone()
            },
            CassandraOptions {
                certificate: None,
                private_key: None,
                ..right.clone()
            },
            // What signs itself, and not the node.
            CassandraOptions {
                ca: Some(certificates.join("client.pem")),
                ..right.clone()
            },
            CassandraOptions {
                ca: Some(certificates.join("ca.key")),
                ..right.clone()
            },
            CassandraOptions {
                tls: false,
                ca: None,
                certificate: None,
                private_key: None,
                ..right.clone()
            },
        ];
        for options in wrong {
            assert!(connect(&options).await.is_err(), "{options:?}");
        }
    }
}
