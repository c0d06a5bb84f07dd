//! DTLS 1.2 under CoAP: sessions by address, their handshakes, and who is at the other end.
//!
//! Client certificates are asked for but not required, and any is let through whose key the peer has: which device it belongs
//! to is decided by looking it up, as for MQTT. Each session is a state machine of its own, so that whatever goes wrong in one,
//! a panic included, ends that one. An address proves that it receives what is sent to it (HelloVerifyRequest, RFC 6347 §4.2.1)
//! before it is sent anything larger than what it has sent.

mod guard;

use std::collections::{BTreeMap, HashMap};
use std::net::{IpAddr, SocketAddr};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bytes::BytesMut;
use fieldline_core::devices::DeviceHandle;
use fieldline_core::options::Span;
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

use self::guard::Content;
use super::exchanges::Peer;
use crate::metrics::ConnectionMetrics;

/// Datagrams of a handshake in the clear that are taken of one peer, repetitions included.
const HANDSHAKE_DATAGRAMS: u32 = 64;
/// Their bytes: what comes too early is kept by the library until it can be read.
const HANDSHAKE_BYTES: usize = 64 << 10;
/// The same once the session is there, for repetitions of the last of them.
const REPEATED_DATAGRAMS: u32 = 16;
/// A session that was silent for so long may make room for others.
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
    /// Sessions at a time; a further one takes the place of one that has been silent for a minute, or is turned away.
    pub max_sessions: usize,
    /// Sessions of one address at a time, handshakes included; further ones are turned away.
    pub max_sessions_per_address: usize,
    /// Handshakes at a time, over all addresses; a further one ends the oldest whose address has not proven itself.
    pub max_handshakes: usize,
    /// A handshake that is not done by then is given up.
    pub handshake_timeout: Span,
    /// A session that was silent for this long is forgotten.
    pub inactivity_timeout: Span,
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
            handshake_timeout: Span::secs(30),
            inactivity_timeout: Span::secs(86_400),
        }
    }
}

/// Why DTLS cannot be set up.
#[derive(Debug, thiserror::Error)]
#[error("cannot use the certificate and key of `coaps`: {0}")]
pub struct SecureError(String);

/// Certificate and key, read and found to fit.
#[derive(Clone)]
pub struct Credentials(Arc<HandshakeConfig>);

impl Credentials {
    /// Reads certificate and key of the options.
    ///
    /// # Errors
    /// A file cannot be read, or its content cannot be used.
    pub fn read(options: &Options) -> Result<Self, SecureError> {
        let failed = |error: &dyn std::fmt::Display| SecureError(error.to_string());
        let (Some(certificate), Some(key)) = (&options.certificate, &options.private_key) else {
            return Err(SecureError(
                "`certificate` and `private-key` are needed".to_owned(),
            ));
        };
        let of = |path: &std::path::Path, error: &dyn std::fmt::Display| {
            SecureError(format!("cannot read {}: {error}", path.display()))
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
            // What RFC 7252 §9.1.3.3 wants of every device.
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

/// Who is at the other end of a session.
pub(super) struct Identity {
    /// The certificates that it has shown, leaf first; none where it has none.
    pub(super) chain: Vec<Vec<u8>>,
    /// The device of the leaf, once it was looked up.
    pub(super) device: Mutex<Option<Arc<DeviceHandle>>>,
}

/// One session, or the handshake of one.
struct Link {
    endpoint: Endpoint,
    session: u64,
    since: tokio::time::Instant,
    heard: tokio::time::Instant,
    /// Who it is; `None` while hands are shaken.
    identity: Option<Arc<Identity>>,
    /// How many datagrams of handshakes it may still send.
    allowance: u32,
    /// Bytes that are still taken of it until the handshake is done.
    room: usize,
    /// Whether the address has shown that it receives what is sent to it.
    is_proven: bool,
    /// What the peer has chosen at random for this handshake, which tells a repetition from another one.
    random: Vec<u8>,
}

/// What there is of one address: a session, and one that may take its place, as after a restart of the device. Until the
/// second is there, the first goes on: anybody can send the beginning of a handshake with a false address.
#[derive(Default)]
struct Slot {
    current: Option<Link>,
    next: Option<Link>,
}

#[derive(Default)]
struct Sessions {
    slots: HashMap<SocketAddr, Slot>,
    of_address: HashMap<IpAddr, usize>,
    /// The addresses of handshakes, the oldest first.
    handshakes: BTreeMap<u64, SocketAddr>,
    last: u64,
}

impl Sessions {
    /// Gives up the handshake of an address, if there is one.
    fn end_handshake(&mut self, address: SocketAddr) {
        let next = self.slots.get_mut(&address).and_then(|slot| slot.next.take());
        if let Some(link) = next {
            self.handshakes.remove(&link.session);
        }
    }

    fn oldest_unproven(&self) -> Option<SocketAddr> {
        let is_unproven = |address: &&SocketAddr| {
            let next = self.slots.get(*address).and_then(|slot| slot.next.as_ref());
            next.is_some_and(|link| !link.is_proven)
        };
        self.handshakes.values().find(is_unproven).copied()
    }

    /// Forgets an address of which there is nothing.
    fn tidy(&mut self, address: SocketAddr) {
        let is_empty = |slot: &Slot| slot.next.is_none() && slot.current.is_none();
        if !self.slots.get(&address).is_some_and(is_empty) {
            return;
        }
        self.slots.remove(&address);
        if let Some(count) = self.of_address.get_mut(&address.ip()) {
            *count -= 1;
            if *count == 0 {
                self.of_address.remove(&address.ip());
            }
        }
    }
}

/// See the module.
pub(super) struct Secure {
    socket: Arc<UdpSocket>,
    config: Arc<HandshakeConfig>,
    options: Options,
    local: SocketAddr,
    sessions: Mutex<Sessions>,
    metrics: ConnectionMetrics,
}

/// What has come of a datagram.
#[derive(Default)]
pub(super) struct Received {
    /// Messages, with whom they come from.
    pub(super) messages: Vec<(Peer, BytesMut)>,
    /// Sessions that have ended.
    pub(super) ended: Vec<Peer>,
}

impl Secure {
    pub(super) fn new(
        socket: Arc<UdpSocket>,
        credentials: Credentials,
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

    /// Takes what has come from an address.
    pub(super) fn receive(&self, address: SocketAddr, datagram: &[u8]) -> Received {
        let mut received = Received::default();
        let Some(content) = guard::inspect(datagram) else {
            return received;
        };
        let now = tokio::time::Instant::now();
        let mut sessions = self.sessions.lock();
        if content == Content::Begins {
            let random = guard::random(datagram).unwrap_or_default();
            if !self.make_room(&mut sessions, (address, random), now, &mut received) {
                return received;
            }
        }
        let Some(slot) = sessions.slots.get_mut(&address) else {
            return received;
        };
        let (is_next, link) = match (&mut slot.next, &mut slot.current) {
            (Some(next), _) if content != Content::Session => (true, next),
            (_, Some(current)) => (false, current),
            (Some(next), None) => (true, next),
            (None, None) => return received,
        };
        let shakes_hands = link.identity.is_none();
        if shakes_hands || content != Content::Session {
            let Some(left) = link.allowance.checked_sub(1) else {
                return received;
            };
            link.allowance = left;
        }
        if shakes_hands {
            let Some(room) = link.room.checked_sub(datagram.len()) else {
                return received;
            };
            link.room = room;
        }
        let peer = Peer {
            address,
            session: link.session,
        };
        let fed = catch_unwind(AssertUnwindSafe(|| {
            link.endpoint
                .read(now.into_std(), address, None, BytesMut::from(datagram))
        }));
        self.flush(address, link);
        let mut is_over = false;
        match fed {
            Ok(Ok(events)) => {
                link.heard = now;
                for event in events {
                    match event {
                        EndpointEvent::HandshakeComplete => self.complete(link, address),
                        EndpointEvent::ApplicationData(data) if link.identity.is_some() => {
                            received.messages.push((peer, data));
                        }
                        EndpointEvent::PeerClosed => is_over = true,
                        _ => {}
                    }
                }
            }
            Ok(Err(error)) => {
                debug!(%address, %error, "a DTLS session has failed");
                is_over = true;
            }
            Err(_) => is_over = true,
        }
        let is_complete = link.identity.is_some();
        if is_over {
            let ended = if is_next {
                slot.next.take()
            } else {
                slot.current.take()
            };
            self.end(ended, address, &mut received.ended);
        } else if is_next && is_complete {
            let before = slot.current.take();
            slot.current = slot.next.take();
            self.end(before, address, &mut received.ended);
        }
        if is_over || is_complete {
            sessions.handshakes.remove(&peer.session);
        }
        sessions.tidy(address);
        received
    }

    /// Makes room for a handshake that begins. Returns whether there is some.
    fn make_room(
        &self,
        sessions: &mut Sessions,
        (address, random): (SocketAddr, &[u8]),
        now: tokio::time::Instant,
        received: &mut Received,
    ) -> bool {
        if let Some(slot) = sessions.slots.get(&address) {
            // Once more, as the answer was lost.
            if slot.next.as_ref().is_some_and(|link| link.random == random) {
                return true;
            }
        } else {
            let of_address = sessions.of_address.get(&address.ip()).copied().unwrap_or(0);
            if of_address >= self.options.max_sessions_per_address {
                return false;
            }
            if sessions.slots.len() >= self.options.max_sessions
                && !self.forget_most_idle(sessions, now, received)
            {
                return false;
            }
        }
        sessions.end_handshake(address);
        if sessions.handshakes.len() >= self.options.max_handshakes {
            let Some(address) = sessions.oldest_unproven() else {
                sessions.tidy(address);
                return false;
            };
            sessions.end_handshake(address);
            sessions.tidy(address);
        }
        sessions.last += 1;
        let link = Link {
            endpoint: Endpoint::new(self.local, TransportProtocol::UDP, Some(self.config.clone())),
            session: sessions.last,
            since: now,
            heard: now,
            identity: None,
            allowance: HANDSHAKE_DATAGRAMS,
            room: HANDSHAKE_BYTES,
            is_proven: false,
            random: random.to_vec(),
        };
        if !sessions.slots.contains_key(&address) {
            *sessions.of_address.entry(address.ip()).or_default() += 1;
        }
        sessions.handshakes.insert(link.session, address);
        sessions.slots.entry(address).or_default().next = Some(link);
        true
    }

    fn forget_most_idle(
        &self,
        sessions: &mut Sessions,
        now: tokio::time::Instant,
        received: &mut Received,
    ) -> bool {
        let current = |slot: &Slot| slot.current.as_ref().map(|link| link.heard);
        let silent = sessions
            .slots
            .iter()
            .filter(|(_, slot)| slot.next.is_none())
            .filter_map(|(address, slot)| Some((current(slot)?, *address)))
            .min()
            .filter(|(heard, _)| now.saturating_duration_since(*heard) >= IDLE);
        let Some((_, address)) = silent else {
            return false;
        };
        if let Some(slot) = sessions.slots.get_mut(&address) {
            let current = slot.current.take();
            self.end(current, address, &mut received.ended);
        }
        sessions.tidy(address);
        true
    }

    /// Hands have been shaken.
    fn complete(&self, link: &mut Link, address: SocketAddr) {
        let state = link.endpoint.get_connection_state(address);
        let chain = state.map(|state| state.peer_certificates.clone());
        link.identity = Some(Arc::new(Identity {
            chain: chain.unwrap_or_default(),
            device: Mutex::default(),
        }));
        link.allowance = REPEATED_DATAGRAMS;
        self.metrics.accepted.increment(1);
        self.metrics.open.increment(1);
    }

    /// A session, or the handshake of one, has ended.
    fn end(&self, link: Option<Link>, address: SocketAddr, ended: &mut Vec<Peer>) {
        let Some(mut link) = link else { return };
        if link.identity.is_some() {
            self.metrics.open.decrement(1);
            ended.push(Peer {
                address,
                session: link.session,
            });
        }
        link.endpoint.stop(std::time::Instant::now(), address);
        self.flush(address, &mut link);
    }

    fn flush(&self, address: SocketAddr, link: &mut Link) {
        while let Some(out) = link.endpoint.poll_transmit() {
            // To whoever has sent the cookie back that went to its address, and to nobody else.
            link.is_proven |= guard::is_server_hello(&out.message);
            // What the system does not take is lost, as any datagram may be.
            let _ = self.socket.try_send_to(&out.message, address);
        }
    }

    /// Sends a message over a session. Returns whether there is that session.
    pub(super) fn send(&self, peer: Peer, message: &[u8]) -> bool {
        let mut sessions = self.sessions.lock();
        let link = sessions
            .slots
            .get_mut(&peer.address)
            .and_then(|slot| slot.current.as_mut())
            .filter(|link| link.session == peer.session);
        let Some(link) = link else { return false };
        let written = link
            .endpoint
            .write(std::time::Instant::now(), peer.address, message);
        self.flush(peer.address, link);
        written.is_ok()
    }

    /// Who is at the other end of a session.
    pub(super) fn identity(&self, peer: Peer) -> Option<Arc<Identity>> {
        let sessions = self.sessions.lock();
        let link = sessions.slots.get(&peer.address)?.current.as_ref()?;
        (link.session == peer.session)
            .then(|| link.identity.clone())
            .flatten()
    }

    /// Repeats what handshakes wait for, and gives up those that take too long.
    pub(super) fn tick(&self, now: tokio::time::Instant) {
        let mut sessions = self.sessions.lock();
        let shaking: Vec<_> = sessions.handshakes.values().copied().collect();
        for address in shaking {
            let next = sessions
                .slots
                .get_mut(&address)
                .and_then(|slot| slot.next.as_mut());
            let Some(link) = next else { continue };
            let is_late = now.saturating_duration_since(link.since) >= self.options.handshake_timeout.0;
            let has_failed = link.endpoint.handle_timeout(address, now.into_std()).is_err();
            self.flush(address, link);
            if is_late || has_failed {
                sessions.end_handshake(address);
                sessions.tidy(address);
            }
        }
    }

    /// Forgets sessions that have been silent for too long; returns them.
    pub(super) fn forget_silent(&self, now: tokio::time::Instant) -> Vec<Peer> {
        let mut sessions = self.sessions.lock();
        let allowed = self.options.inactivity_timeout.0;
        let is_silent = |slot: &Slot| {
            let current = slot.current.as_ref();
            current.is_some_and(|link| now.saturating_duration_since(link.heard) >= allowed)
        };
        let silent: Vec<_> = sessions
            .slots
            .iter()
            .filter(|(_, slot)| is_silent(slot))
            .map(|(address, _)| *address)
            .collect();
        let mut ended = Vec::new();
        for address in silent {
            let current = sessions
                .slots
                .get_mut(&address)
                .and_then(|slot| slot.current.take());
            self.end(current, address, &mut ended);
            sessions.tidy(address);
        }
        ended
    }

    /// Ends all sessions.
    pub(super) fn close(&self) {
        let mut sessions = self.sessions.lock();
        let mut ended = Vec::new();
        for (address, slot) in std::mem::take(&mut sessions.slots) {
            self.end(slot.current, address, &mut ended);
        }
        sessions.of_address.clear();
        sessions.handshakes.clear();
    }
}
