//! Devices whose certificate comes from an authority that a device profile names: they are created, or get their new
//! certificate, when they connect.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use fieldline_core::devices::certificate_credentials_id;
use fieldline_core::ports::StoreResult;
use tokio_rustls::rustls::RootCertStore;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::{CertificateDer, UnixTime};
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tracing::debug;
use x509_parser::prelude::{FromDer as _, X509Certificate};

use super::connection::Shared;

/// Certificates of a chain that are looked at.
const MAX_CHAIN: usize = 8;

/// Provisions the device of a chain, leaf first, whose leaf belongs to no device yet. Returns whether it does now.
///
/// The handshake has proven nothing about any certificate but the leaf: that the authority has issued it is proven here.
pub(super) async fn provision(shared: &Shared, chain: &[Vec<u8>]) -> StoreResult<bool> {
    let Some((leaf, issuers)) = chain.split_first() else {
        return Ok(false);
    };
    let provisioning = &shared.services.onboarding.provisioning;
    for authority in issuers.iter().take(MAX_CHAIN) {
        let key = certificate_credentials_id(&STANDARD.encode(authority));
        let Some(profile) = provisioning.profile_of_authority(&key).await? else {
            continue;
        };
        let now_s = shared.services.clock.now_ms() / 1_000;
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

/// Whether the authority has issued the leaf, by way of the other certificates.
fn verify(leaf: &[u8], issuers: &[Vec<u8>], authority: &[u8], now_s: i64) -> Result<(), String> {
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

fn common_name(leaf: &[u8]) -> Option<String> {
    let (_, certificate) = X509Certificate::from_der(leaf).ok()?;
    let mut names = certificate.subject().iter_common_name();
    names.next()?.as_str().ok().map(str::to_owned)
}
