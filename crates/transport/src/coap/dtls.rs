//! DTLS 1.2 for CoAP: sessions by address, their handshakes, and the identity of the peer.
//!
//! Client certificates are requested but not required, and any certificate is accepted if the peer has its key; a
//! look-up decides to which device it belongs, as with MQTT. Each session is a state machine of its own, so a failure,
//! a panic included, ends only that session. A peer must prove that it receives datagrams at its address
//! (HelloVerifyRequest, RFC 6347 §4.2.1) before it is sent anything larger than what it has sent.

mod datagram_filter;
mod sessions;
#[cfg(test)]
mod tests;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bytes::BytesMut;
use fieldline_core::options::HumanDuration;
use parking_lot::Mutex;
use rtc_dtls::cipher_suite::CipherSuiteId;
use rtc_dtls::config::{ClientAuthType, ConfigBuilder, HandshakeConfig};
use rtc_dtls::crypto::Certificate;
use rtc_dtls::crypto_provider::{self, SignatureScheme};
use rtc_dtls::endpoint::{Endpoint, EndpointEvent};
use rtc_shared::TransportProtocol;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::net::UdpSocket;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tracing::debug;

use self::datagram_filter::DatagramContent;
use self::sessions::{DtlsLink, DtlsSessions};
use super::admission::CertificateOwner;
use super::exchanges::CoapPeer;
use crate::metrics::ConnectionMetrics;

/// Most datagrams accepted from one peer during a handshake, repetitions included.
const HANDSHAKE_DATAGRAMS: u32 = 64;
/// Most bytes of those datagrams: the library buffers records that arrive too early.
const HANDSHAKE_BYTES: usize = 64 << 10;
/// Most handshake datagrams accepted after the handshake, for repetitions of its last messages.
const REPEATED_DATAGRAMS: u32 = 16;
/// A session that was silent for this long may be evicted to make room for others.
const IDLE: Duration = Duration::from_secs(60);

/// Settings of CoAP over DTLS.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Options {
    /// UDP address that devices send to with DTLS, usually port 5684. Not set: no DTLS.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub listen: Option<SocketAddr>,
    /// File with the server's certificate chain in PEM, leaf first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub certificate: Option<PathBuf>,
    /// File with the key of the certificate in PEM, PKCS#8: ECDSA on P-256 or P-384, or RSA.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub private_key: Option<PathBuf>,
    /// Most sessions at a time. When its handshake is done, a further one replaces a session that was silent for a
    /// minute, or is refused if there is none.
    pub max_sessions: usize,
    /// Most sessions of one address at a time, handshakes included; further ones are refused.
    pub max_sessions_per_address: usize,
    /// Most handshakes at a time over all addresses, an eighth of them from one IP address; a further one ends the
    /// oldest whose address has not proven itself.
    pub max_handshakes: usize,
    /// Time for a handshake; one that takes longer is given up.
    pub handshake_timeout: HumanDuration,
    /// Longest silence of a session; then it is dropped.
    pub inactivity_timeout: HumanDuration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            listen: None,
            certificate: None,
            private_key: None,
            max_sessions: 50_000,
            max_sessions_per_address: 1_024,
            max_handshakes: 1_024,
            handshake_timeout: HumanDuration::secs(30),
            inactivity_timeout: HumanDuration::secs(86_400),
        }
    }
}

/// Why DTLS cannot be set up.
#[derive(Debug, thiserror::Error)]
#[error("cannot use the certificate and key of `coaps`: {0}")]
pub struct DtlsSetupError(String);

/// Certificate and key, read and found to match.
#[derive(Clone)]
pub struct DtlsCredentials(Arc<HandshakeConfig>);

impl DtlsCredentials {
    /// Reads the certificate and key of the options.
    ///
    /// # Errors
    /// A file cannot be read, or its content cannot be used.
    pub fn read(options: &Options) -> Result<Self, DtlsSetupError> {
        let failed = |error: &dyn std::fmt::Display| DtlsSetupError(error.to_string());
        let (Some(certificate), Some(key)) = (&options.certificate, &options.private_key) else {
            return Err(DtlsSetupError(
                "`certificate` and `private-key` are needed".to_owned(),
            ));
        };
        let of = |path: &std::path::Path, error: &dyn std::fmt::Display| {
            DtlsSetupError(format!("cannot read {}: {error}", path.display()))
        };
        let chain: Vec<_> = CertificateDer::pem_file_iter(certificate)
            .and_then(Iterator::collect)
            .map_err(|error| of(certificate, &error))?;
        if chain.is_empty() {
            return Err(of(certificate, &"it holds no certificate"));
        }
        let PrivateKeyDer::Pkcs8(pkcs8) =
            PrivateKeyDer::from_pem_file(key).map_err(|error| of(key, &error))?
        else {
            return Err(of(key, &"the key has to be in PKCS#8 (`BEGIN PRIVATE KEY`)"));
        };
        let provider = crypto_provider::default_provider().map_err(|error| failed(&error))?;
        let schemes = [
            SignatureScheme::EcdsaP256Sha256,
            SignatureScheme::EcdsaP384Sha384,
            SignatureScheme::RsaPkcs1Sha256,
        ];
        let signing_key = schemes
            .into_iter()
            .find_map(|scheme| {
                let imported = provider
                    .crypto()
                    .import_signing_key(scheme, pkcs8.secret_pkcs8_der());
                imported.ok()
            })
            .ok_or_else(|| of(key, &"the key is of a kind that is not supported"))?;
        let suites = [
            CipherSuiteId::Tls_Ecdhe_Ecdsa_With_Aes_128_Gcm_Sha256,
            CipherSuiteId::Tls_Ecdhe_Ecdsa_With_ChaCha20_Poly1305_Sha256,
            // Mandatory for every device by RFC 7252 §9.1.3.3.
            CipherSuiteId::Tls_Ecdhe_Ecdsa_With_Aes_128_Ccm_8,
            CipherSuiteId::Tls_Ecdhe_Ecdsa_With_Aes_128_Ccm,
            CipherSuiteId::Tls_Ecdhe_Rsa_With_Aes_128_Gcm_Sha256,
            CipherSuiteId::Tls_Ecdhe_Rsa_With_ChaCha20_Poly1305_Sha256,
        ];
        let config = ConfigBuilder::default()
            .with_crypto_provider(provider)
            .with_certificates(vec![Certificate::from_signing_key(chain, signing_key)])
            .with_cipher_suites(suites.to_vec())
            .with_client_auth(ClientAuthType::RequestClientCert)
            .build(false, None)
            .map_err(|error| failed(&error))?;
        Ok(Self(Arc::new(config)))
    }
}

/// The identity of the peer of a session.
pub(super) struct DtlsIdentity {
    /// The certificates that the peer presented, leaf first; empty if it presented none.
    pub(super) chain: Vec<Vec<u8>>,
    /// The device that owns the leaf certificate.
    pub(super) owner: CertificateOwner,
}

/// The DTLS sessions of one socket; see the module.
pub(super) struct DtlsServer {
    socket: Arc<UdpSocket>,
    config: Arc<HandshakeConfig>,
    options: Options,
    local: SocketAddr,
    sessions: Mutex<DtlsSessions>,
    metrics: ConnectionMetrics,
}

/// The outcome of one datagram.
#[derive(Default)]
pub(super) struct DatagramOutcome {
    /// Decrypted messages, with their peers.
    pub(super) messages: Vec<(CoapPeer, BytesMut)>,
    /// Sessions that have ended.
    pub(super) ended: Vec<CoapPeer>,
}

impl DtlsServer {
    pub(super) fn new(
        socket: Arc<UdpSocket>,
        credentials: DtlsCredentials,
        options: Options,
    ) -> std::io::Result<Self> {
        Ok(Self {
            local: socket.local_addr()?,
            socket,
            config: credentials.0,
            options,
            sessions: Mutex::default(),
            metrics: ConnectionMetrics::of("coaps"),
        })
    }

    /// Handles a datagram from an address.
    pub(super) fn receive(&self, address: SocketAddr, datagram: &[u8]) -> DatagramOutcome {
        let mut received = DatagramOutcome::default();
        let Some(content) = datagram_filter::inspect(datagram) else {
            return received;
        };
        let now = tokio::time::Instant::now();
        let mut sessions = self.sessions.lock();
        if content == DatagramContent::Begins {
            let random = datagram_filter::random(datagram).unwrap_or_default();
            let endpoint = || Endpoint::new(self.local, TransportProtocol::UDP, Some(self.config.clone()));
            if !sessions.begin((address, random), &self.options, now, endpoint) {
                return received;
            }
        }
        let Some(slot) = sessions.slot(address) else {
            return received;
        };
        let (is_next, link) = match (&mut slot.next, &mut slot.current) {
            (Some(next), _) if content != DatagramContent::Session => (true, next),
            (_, Some(current)) => (false, current),
            (Some(next), None) => (true, next),
            (None, None) => return received,
        };
        if !try_consume_allowance(link, content, datagram.len()) {
            return received;
        }
        let peer = CoapPeer {
            address,
            session: link.session,
        };
        let bytes = BytesMut::from(datagram);
        let fed = link.guarded(|endpoint| endpoint.read(now.into_std(), address, None, bytes));
        self.flush(address, link);
        let mut is_over = false;
        let mut was_heard = false;
        match fed {
            Some(Ok(events)) => {
                was_heard = true;
                for event in events {
                    match event {
                        EndpointEvent::HandshakeComplete => finish_handshake(link, address),
                        EndpointEvent::ApplicationData(data) if link.identity.is_some() => {
                            received.messages.push((peer, data));
                        }
                        EndpointEvent::PeerClosed => is_over = true,
                        _ => {}
                    }
                }
            }
            Some(Err(error)) => {
                debug!(%address, %error, "a DTLS session has failed");
                is_over = true;
            }
            None => is_over = true,
        }
        is_over |= link.is_broken;
        let is_complete = link.identity.is_some();
        if was_heard {
            sessions.mark_heard(address, is_next, now);
        }
        let mut ended = Vec::new();
        if is_over && is_next {
            // The handshake is not registered as a session yet, even if it was completed.
            received.messages.clear();
            if let Some(mut link) = sessions.end_handshake(address) {
                self.send_close_notify(address, &mut link);
            }
        } else if is_over {
            ended.extend(sessions.take_session(address).map(|link| (address, link)));
        } else if is_next && is_complete {
            self.count_opened();
            ended = sessions.promote(address, self.options.max_sessions, now);
            if ended.iter().any(|(_, link)| link.session == peer.session) {
                received.messages.clear();
            }
        }
        received.ended = self.end(ended);
        sessions.tidy(address);
        received
    }

    fn count_opened(&self) {
        self.metrics.accepted.increment(1);
        self.metrics.open.increment(1);
    }

    /// Closes sessions that were removed already. Returns their peers.
    fn end(&self, ended: Vec<(SocketAddr, DtlsLink)>) -> Vec<CoapPeer> {
        let mut peers = Vec::new();
        for (address, mut link) in ended {
            self.metrics.open.decrement(1);
            peers.push(CoapPeer {
                address,
                session: link.session,
            });
            self.send_close_notify(address, &mut link);
        }
        peers
    }

    fn send_close_notify(&self, address: SocketAddr, link: &mut DtlsLink) {
        link.guarded(|endpoint| drop(endpoint.stop(std::time::Instant::now(), address)));
        self.flush(address, link);
    }

    fn flush(&self, address: SocketAddr, link: &mut DtlsLink) {
        while let Some(out) = link.guarded(Endpoint::poll_transmit).flatten() {
            // The server hello goes only to a peer that has returned the cookie sent to its address.
            link.is_proven |= datagram_filter::is_server_hello(&out.message);
            // A datagram that the system refuses is lost, as any datagram may be.
            let _ = self.socket.try_send_to(&out.message, address);
        }
    }

    /// Sends a message over a session. Returns whether the session exists and the message was written.
    pub(super) fn send(&self, peer: CoapPeer, message: &[u8]) -> bool {
        let mut sessions = self.sessions.lock();
        let Some(link) = sessions.session(peer).filter(|link| !link.is_broken) else {
            return false;
        };
        let now = std::time::Instant::now();
        let written = link.guarded(|endpoint| endpoint.write(now, peer.address, message));
        self.flush(peer.address, link);
        if link.is_broken {
            sessions.note_broken(peer);
        }
        written.is_some_and(|written| written.is_ok())
    }

    /// Returns the identity of the peer of a session.
    pub(super) fn identity(&self, peer: CoapPeer) -> Option<Arc<DtlsIdentity>> {
        self.sessions.lock().session(peer)?.identity.clone()
    }

    /// Retransmits messages of handshakes, and gives up handshakes that take too long. Returns sessions that have ended
    /// by themselves.
    pub(super) fn tick(&self, now: tokio::time::Instant) -> Vec<CoapPeer> {
        let mut sessions = self.sessions.lock();
        for address in sessions.shaking() {
            let next = sessions.slot(address).and_then(|slot| slot.next.as_mut());
            let Some(link) = next else { continue };
            let is_late = now.saturating_duration_since(link.since) >= self.options.handshake_timeout.0;
            let moved = link.guarded(|endpoint| endpoint.handle_timeout(address, now.into_std()));
            self.flush(address, link);
            let has_failed = link.is_broken || moved.is_none_or(|moved| moved.is_err());
            if is_late || has_failed {
                sessions.end_handshake(address);
                sessions.tidy(address);
            }
        }
        let broken = sessions.take_broken();
        self.end(broken)
    }

    /// Drops sessions that were silent for too long, and returns them.
    pub(super) fn forget_silent(&self, now: tokio::time::Instant) -> Vec<CoapPeer> {
        let mut sessions = self.sessions.lock();
        let mut ended = Vec::new();
        for address in sessions.silent_for(self.options.inactivity_timeout.0, now) {
            ended.extend(sessions.take_session(address).map(|link| (address, link)));
            sessions.tidy(address);
        }
        self.end(ended)
    }

    /// Ends all sessions.
    pub(super) fn close(&self) {
        let all = self.sessions.lock().take_all();
        self.end(all);
    }
}

/// Whether the library may get a datagram: handshake datagrams are limited in number and bytes.
fn try_consume_allowance(link: &mut DtlsLink, content: DatagramContent, length: usize) -> bool {
    let shakes_hands = link.identity.is_none();
    if shakes_hands || content != DatagramContent::Session {
        let Some(left) = link.allowance.checked_sub(1) else {
            return false;
        };
        link.allowance = left;
    }
    if shakes_hands {
        let Some(room) = link.room.checked_sub(length) else {
            return false;
        };
        link.room = room;
    }
    true
}

/// Records the peer's certificates when the handshake is complete.
fn finish_handshake(link: &mut DtlsLink, address: SocketAddr) {
    let chain = |endpoint: &mut Endpoint| {
        let state = endpoint.get_connection_state(address);
        state.map(|state| state.peer_certificates.clone())
    };
    link.identity = Some(Arc::new(DtlsIdentity {
        chain: link.guarded(chain).flatten().unwrap_or_default(),
        owner: CertificateOwner::default(),
    }));
    link.allowance = REPEATED_DATAGRAMS;
}
