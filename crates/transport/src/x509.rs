//! Devices that authenticate with a certificate. If a device profile names the authority that issued the certificate,
//! the device is created, or gets its new certificate, when it connects.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use fieldline_core::ports::StoreResult;
use fieldline_devices::directory::{DeviceHandle, certificate_credentials_id};
use tokio_rustls::rustls::RootCertStore;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::{CertificateDer, UnixTime};
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tracing::debug;
use x509_parser::prelude::{FromDer as _, X509Certificate};

use crate::TransportServices;

/// Most certificates of a chain that are examined.
const MAX_CHAIN: usize = 8;

/// Returns the device of the leaf certificate, if the certificate is valid today. The handshake has proven that the
/// peer has the key of the leaf, but not that of any other certificate in the chain: those prove nothing by themselves.
/// If no device has the leaf, a profile may name the authority that issued it.
pub(crate) async fn by_certificate(
    services: &TransportServices,
    chain: &[Vec<u8>],
) -> StoreResult<Option<Arc<DeviceHandle>>> {
    let Some(leaf) = chain.first() else {
        return Ok(None);
    };
    let now = services.clock.now_ms() / 1_000;
    let is_valid = X509Certificate::from_der(leaf).is_ok_and(|(_, certificate)| {
        let validity = certificate.validity();
        validity.not_before.timestamp() <= now && now <= validity.not_after.timestamp()
    });
    if !is_valid {
        return Ok(None);
    }
    let (directory, certificate) = (&services.directory, STANDARD.encode(leaf));
    let found = directory.by_certificate(&certificate).await?;
    if found.is_some() || !provision(services, chain).await? {
        return Ok(found);
    }
    directory.by_certificate(&certificate).await
}

/// Provisions the device of a chain, leaf first, whose leaf belongs to no device yet. Returns whether a device has it
/// now.
///
/// The handshake has proven nothing about the certificates above the leaf; [`verify`] proves that the authority issued
/// it.
async fn provision(services: &TransportServices, chain: &[Vec<u8>]) -> StoreResult<bool> {
    let Some((leaf, issuers)) = chain.split_first() else {
        return Ok(false);
    };
    let provisioning = &services.onboarding.provisioning;
    for authority in issuers.iter().take(MAX_CHAIN) {
        let key = certificate_credentials_id(&STANDARD.encode(authority));
        let Some(profile) = provisioning.profile_of_authority(&key).await? else {
            continue;
        };
        let now_s = services.clock.now_ms() / 1_000;
        if let Err(error) = verify(leaf, issuers, authority, now_s) {
            debug!(profile = %profile.name, error, "a device's certificate is not of the profile's authority");
            return Ok(false);
        }
        let Some(name) = common_name(leaf) else {
            return Ok(false);
        };
        return provisioning
            .provision_by_chain(&profile, &name, &STANDARD.encode(leaf))
            .await;
    }
    Ok(false)
}

/// Checks that the authority has issued the leaf, directly or through the other certificates.
pub(crate) fn verify(leaf: &[u8], issuers: &[Vec<u8>], authority: &[u8], now_s: i64) -> Result<(), String> {
    let mut roots = RootCertStore::empty();
    roots
        .add(CertificateDer::from(authority.to_vec()))
        .map_err(|error| error.to_string())?;
    let provider = Arc::new(ring::default_provider());
    let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider)
        .build()
        .map_err(|error| error.to_string())?;
    let others: Vec<_> = issuers
        .iter()
        .take(MAX_CHAIN)
        .map(|issuer| CertificateDer::from(issuer.as_slice()))
        .collect();
    let now = UnixTime::since_unix_epoch(Duration::from_secs(now_s.max(0).unsigned_abs()));
    verifier
        .verify_client_cert(&CertificateDer::from(leaf), &others, now)
        .map(drop)
        .map_err(|error| error.to_string())
}

/// Returns the first common name of a certificate.
pub(crate) fn common_name(leaf: &[u8]) -> Option<String> {
    let (_, certificate) = X509Certificate::from_der(leaf).ok()?;
    let mut names = certificate.subject().iter_common_name();
    names.next()?.as_str().ok().map(str::to_owned)
}

/// Returns the time at which a certificate is valid that is closest to another, both in seconds.
pub(crate) fn within_validity(leaf: &[u8], now_s: i64) -> Option<i64> {
    let (_, certificate) = X509Certificate::from_der(leaf).ok()?;
    let validity = certificate.validity();
    let (from, until) = (validity.not_before.timestamp(), validity.not_after.timestamp());
    Some(now_s.min(until).max(from))
}
