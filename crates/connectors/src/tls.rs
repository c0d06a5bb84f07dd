//! The client's side of TLS: rustls with ring.

use std::sync::{Arc, OnceLock};

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, ServerName, UnixTime};

use crate::config::ConnectorConfigError;
use crate::secret::Secret;

/// The certificate and key of a client, in PEM.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TlsIdentity<'a> {
    pub(crate) cert: &'a str,
    pub(crate) private_key: &'a Secret,
    pub(crate) password: &'a Secret,
}

fn provider() -> Arc<CryptoProvider> {
    static PROVIDER: OnceLock<Arc<CryptoProvider>> = OnceLock::new();
    Arc::clone(PROVIDER.get_or_init(|| Arc::new(ring::default_provider())))
}

/// The authorities of the system, or those of Mozilla where the system has none.
fn system_roots() -> Arc<RootCertStore> {
    static ROOTS: OnceLock<Arc<RootCertStore>> = OnceLock::new();
    Arc::clone(ROOTS.get_or_init(|| {
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        if roots.is_empty() {
            roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
        }
        Arc::new(roots)
    }))
}

/// Makes a configuration that trusts the authorities in `ca_pem`, or those of the system if it is empty.
///
/// The error names `caCert`, `cert` or `privateKey`.
pub(crate) fn client_config(
    ca_pem: &str,
    identity: Option<TlsIdentity<'_>>,
) -> Result<ClientConfig, ConnectorConfigError> {
    let (roots, pinned) = if ca_pem.trim().is_empty() {
        (system_roots(), Vec::new())
    } else {
        own_roots(ca_pem)?
    };
    let webpki = WebPkiServerVerifier::builder_with_provider(roots, provider())
        .build()
        .map_err(|error| ConnectorConfigError::new("caCert", error.to_string()))?;
    let builder = ClientConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .map_err(|error| ConnectorConfigError::new("caCert", error.to_string()))?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(PinnedCertVerifier { webpki, pinned }));
    let Some(identity) = identity else {
        return Ok(builder.with_no_client_auth());
    };
    let chain = certificates("cert", identity.cert)?;
    let key = private_key(identity.private_key, identity.password)?;
    builder
        .with_client_auth_cert(chain, key)
        .map_err(|error| ConnectorConfigError::new("privateKey", error.to_string()))
}

type TrustedRoots = (Arc<RootCertStore>, Vec<CertificateDer<'static>>);

fn own_roots(ca_pem: &str) -> Result<TrustedRoots, ConnectorConfigError> {
    let pinned = certificates("caCert", ca_pem)?;
    let mut roots = RootCertStore::empty();
    let (added, _) = roots.add_parsable_certificates(pinned.iter().cloned());
    if added == 0 {
        return Err(ConnectorConfigError::new(
            "caCert",
            "no certificate in it can be trusted",
        ));
    }
    Ok((Arc::new(roots), pinned))
}

fn certificates(field: &str, pem: &str) -> Result<Vec<CertificateDer<'static>>, ConnectorConfigError> {
    let certificates: Vec<_> = CertificateDer::pem_slice_iter(pem.as_bytes())
        .collect::<Result<_, _>>()
        .map_err(|error| ConnectorConfigError::new(field, format!("is not PEM: {error}")))?;
    if certificates.is_empty() {
        return Err(ConnectorConfigError::new(field, "has no certificate in PEM"));
    }
    Ok(certificates)
}

fn private_key(pem: &Secret, password: &Secret) -> Result<PrivateKeyDer<'static>, ConnectorConfigError> {
    const FIELD: &str = "privateKey";
    let pem = pem.expose();
    if pem.contains("-----BEGIN ENCRYPTED PRIVATE KEY-----") {
        return decrypt_key(pem, password);
    }
    if pem.contains("Proc-Type: 4,ENCRYPTED") {
        return Err(ConnectorConfigError::new(
            FIELD,
            "is encrypted in the way before PKCS #8; convert it with: openssl pkcs8 -topk8",
        ));
    }
    PrivateKeyDer::from_pem_slice(pem.as_bytes())
        .map_err(|_| ConnectorConfigError::new(FIELD, "is not a private key in PEM"))
}

fn decrypt_key(pem: &str, password: &Secret) -> Result<PrivateKeyDer<'static>, ConnectorConfigError> {
    const FIELD: &str = "privateKey";
    let body: String = pem
        .lines()
        .map(str::trim)
        .skip_while(|line| *line != "-----BEGIN ENCRYPTED PRIVATE KEY-----")
        .skip(1)
        .take_while(|line| !line.starts_with("-----END"))
        .collect();
    let der = base64::Engine::decode(&base64::engine::general_purpose::STANDARD, body)
        .map_err(|_| ConnectorConfigError::new(FIELD, "is not a private key in PEM"))?;
    let info = pkcs8::EncryptedPrivateKeyInfo::try_from(der.as_slice())
        .map_err(|_| ConnectorConfigError::new(FIELD, "is encrypted in a way that is not supported"))?;
    let key = info
        .decrypt(password.expose())
        .map_err(|_| ConnectorConfigError::new("password", "does not open the private key"))?;
    Ok(PrivatePkcs8KeyDer::from(key.as_bytes().to_vec()).into())
}

/// Checks the chain as everybody does, and takes a certificate that is named as an authority for what it is.
///
/// Private servers often have a certificate that signs itself, and people hand that to the client as the authority.
#[derive(Debug)]
struct PinnedCertVerifier {
    webpki: Arc<WebPkiServerVerifier>,
    pinned: Vec<CertificateDer<'static>>,
}

impl ServerCertVerifier for PinnedCertVerifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        if self.pinned.iter().any(|pinned| pinned == end_entity) {
            return Ok(ServerCertVerified::assertion());
        }
        self.webpki
            .verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now)
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
