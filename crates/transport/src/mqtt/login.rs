//! Log-in: from the first byte to CONNACK.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use fieldline_codec::session::{ServerEvent, ServerSession, SessionLimits};
use fieldline_codec::{ConnackPacket, ConnectPacket, ReasonCode, decode_frame, peek_protocol};
use fieldline_core::logging::LogGate;
use fieldline_devices::directory::{DeviceHandle, MqttLogin};
use fieldline_devices::sessions::{SessionOrigin, SessionProtocol};
use fieldline_event_loop::TaskStream;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tracing::{info, warn};

use super::connection::MqttShared;
use super::downlink::InFlightRpc;
use super::provisioning::{self, ProvisioningClient};
use crate::broker_access::device_of;

static REFUSED_GATE: LogGate = LogGate::new(5);
static STORE_GATE: LogGate = LogGate::new(2);

/// Time for a refused client to leave, before the refusal is repeated.
const REFUSED_CLOSE_TIMEOUT: Duration = Duration::from_millis(100);
/// Size of the first read, bytes; a longer CONNECT makes the buffer grow up to the packet limit.
const FIRST_READ: usize = 1 << 10;

/// A device that has logged in.
pub(super) struct AuthenticatedDevice {
    pub(super) device: Arc<DeviceHandle>,
    pub(super) session: ServerSession<InFlightRpc>,
    pub(super) keep_alive_s: u16,
    pub(super) origin: SessionOrigin,
    /// CONNACK, not sent yet.
    pub(super) connack: Vec<u8>,
    /// Input that the device sent after CONNECT.
    pub(super) rest: Vec<u8>,
}

/// The result of a successful log-in.
pub(super) enum LoginOutcome {
    /// A device.
    Device(Box<AuthenticatedDevice>),
    /// A client that asks for credentials.
    Newcomer(Box<ProvisioningClient>),
}

/// The peer of a connection, as far as the network knows it.
#[derive(Clone, Copy)]
pub(super) struct MqttPeer<'a> {
    pub(super) address: SocketAddr,
    pub(super) protocol: SessionProtocol,
    /// The certificates it presented, leaf first.
    pub(super) certificates: Option<&'a [Vec<u8>]>,
}

/// Reads CONNECT and authenticates the device. Returns `None` if the connection must be closed; a refusal was sent
/// then.
pub(super) async fn log_in<S: TaskStream>(
    stream: &mut S,
    shared: &MqttShared,
    peer: MqttPeer<'_>,
) -> Option<LoginOutcome> {
    let mut input = Vec::with_capacity(FIRST_READ);
    let mut share = shared.partial_budget.share();
    let mut out = Vec::new();
    let mut session = ServerSession::<InFlightRpc>::new(SessionLimits {
        max_packet_size: shared.max_packet,
        ..SessionLimits::default()
    });
    let verdict = loop {
        if stream.read_buf(&mut input).await.ok()? == 0 {
            return None;
        }
        let (packet, used) = match decode_frame(&input, shared.max_packet, session.version()) {
            Ok(Some(decoded)) => decoded,
            Ok(None) if share.resize(input.capacity()) => continue,
            Ok(None) => break None,
            Err(error) => {
                if let Some(protocol) = peek_protocol(&input) {
                    // An answer that cannot be encoded is left out.
                    let _ =
                        ConnackPacket::new(error.reason_code(), false).encode(protocol.version(), &mut out);
                }
                break None;
            }
        };
        let Ok(ServerEvent::Connect(connect)) = session.receive(&packet, 0, &mut out) else {
            break None;
        };
        let connect = *connect;
        if connect.username == Some(provisioning::NAME) || connect.client_id == provisioning::NAME {
            let connack = ConnackPacket::new(ReasonCode::Success, !connect.clean_start);
            session.accept(&connack, &mut out).ok()?;
            input.drain(..used);
            return Some(LoginOutcome::Newcomer(Box::new(ProvisioningClient {
                session,
                out,
                input,
                address: peer.address.ip(),
            })));
        }
        let verdict = identify(shared, &connect, peer.certificates).await;
        let session_present = !connect.clean_start;
        let keep_alive_s = connect.keep_alive;
        break Some((verdict, session_present, keep_alive_s, used));
    };
    let Some((verdict, session_present, keep_alive_s, used)) = verdict else {
        let _ = stream.write_all(&out).await;
        return None;
    };
    match verdict {
        Ok(device) => {
            shared.services.guard.record_success(peer.address.ip());
            session
                .accept(
                    &ConnackPacket::new(ReasonCode::Success, session_present),
                    &mut out,
                )
                .ok()?;
            input.drain(..used);
            Some(LoginOutcome::Device(Box::new(AuthenticatedDevice {
                device,
                session,
                keep_alive_s,
                origin: SessionOrigin {
                    protocol: peer.protocol,
                    address: Some(peer.address.ip()),
                    ..SessionOrigin::default()
                },
                connack: out,
                rest: input,
            })))
        }
        Err(code) => {
            shared.metrics.refused_logins.increment(1);
            // If the server itself is at fault, the credentials may be right.
            if code != ReasonCode::ServerUnavailable {
                shared.services.guard.record_failure(peer.address.ip());
            }
            if let Some(suppressed) = REFUSED_GATE.open() {
                info!(peer = %peer.address, code = code.name(), suppressed, "refused a device's log-in");
            }
            session.refuse(code, &mut out);
            let _ = stream.write_all(&out).await;
            let _ = stream.flush().await;
            out.clear();
            session.repeat_refusal(code, &mut out);
            if !out.is_empty() && !has_left(stream).await {
                let _ = stream.write_all(&out).await;
            }
            let _ = stream.shutdown().await;
            None
        }
    }
}

/// Whether a refused client leaves by itself. Most do, and must not get more packets than the standard allows.
async fn has_left<S: TaskStream>(stream: &mut S) -> bool {
    let left = tokio::time::timeout(REFUSED_CLOSE_TIMEOUT, stream.read_u8()).await;
    matches!(left, Ok(Err(_)))
}

/// Returns the device, or the code of the refusal.
async fn identify(
    shared: &MqttShared,
    connect: &ConnectPacket<'_>,
    certificates: Option<&[Vec<u8>]>,
) -> Result<Arc<DeviceHandle>, ReasonCode> {
    if connect.properties.authentication_method().is_some() {
        return Err(ReasonCode::BadAuthenticationMethod);
    }
    let login = MqttLogin {
        client_id: connect.client_id,
        username: connect.username,
        password: connect.password,
    };
    match device_of(&shared.services, login, certificates).await {
        Ok(Some(device)) => Ok(device),
        Ok(None) if certificates.is_some() => Err(ReasonCode::NotAuthorized),
        Ok(None) => Err(refusal(connect)),
        Err(error) => {
            if let Some(suppressed) = STORE_GATE.open() {
                warn!(%error, suppressed, "cannot look a device up");
            }
            Err(ReasonCode::ServerUnavailable)
        }
    }
}

/// Returns the code for a wrong log-in. A field that is present counts, even if it is empty.
fn refusal(connect: &ConnectPacket<'_>) -> ReasonCode {
    let is_v5 = connect.version().is_v5();
    if connect.username.is_some() || connect.password.is_some() {
        // Version 3 has a code for this (4), but servers of this API answer with 5.
        return if is_v5 {
            ReasonCode::BadUserNameOrPassword
        } else {
            ReasonCode::NotAuthorized
        };
    }
    if connect.client_id.trim().is_empty() {
        ReasonCode::NotAuthorized
    } else {
        ReasonCode::ClientIdentifierNotValid
    }
}
