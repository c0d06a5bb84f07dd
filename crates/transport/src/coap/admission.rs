//! Who asks: devices are known by the certificate that they have shown, or by the token in the path.

use std::sync::Arc;

use fieldline_codec::coap::Code;
use fieldline_core::devices::{DeviceHandle, Refused as Limited};
use fieldline_core::logging::LogGate;
use fieldline_core::ports::StoreResult;
use tracing::info;

use super::reply::Reply;
use super::request::Request;
use super::resources::store_failed;
use super::server::Shared;
use crate::intake::Refused;
use crate::x509;

static REFUSED_GATE: LogGate = LogGate::new(5);

/// Whether the address of a request is that of who sent it. Without DTLS anybody could have wrong credentials come from the
/// address of somebody else.
pub(super) const fn is_proven(request: &Request) -> bool {
    request.peer.session > 0
}

/// The device that asks: that of the certificate which it has shown, else that of the token.
pub(super) async fn identify(
    shared: &Shared,
    request: &Request,
    token: Option<&str>,
) -> Result<Arc<DeviceHandle>, Reply> {
    let services = &shared.services;
    let address = request.peer.address.ip();
    if !services.guard.admits(address) {
        return Err(Reply::empty(Code::UNAUTHORIZED));
    }
    let is_proven = is_proven(request);
    let found = match by_certificate(shared, request).await {
        Ok(None) => match token {
            Some(token) => services.directory.by_token(token).await,
            None => Ok(None),
        },
        found => found,
    };
    let device = match found {
        Ok(Some(device)) => {
            if is_proven {
                services.guard.was_right(address);
            }
            device
        }
        Ok(None) => {
            shared.metrics.refused_logins.increment(1);
            if is_proven {
                services.guard.was_wrong(address);
            }
            if let Some(suppressed) = REFUSED_GATE.open() {
                info!(peer = %request.peer.address, suppressed, "refused a device's request over CoAP");
            }
            return Err(Reply::empty(Code::UNAUTHORIZED));
        }
        Err(error) => return Err(store_failed(&error)),
    };
    crate::intake::check(services, &device)
        .await
        .map_err(|refused| match refused {
            Refused::Revoked => Reply::empty(Code::UNAUTHORIZED),
            Refused::UsedUp => limited(shared, &device, &Limited::UsedUp),
            Refused::Store(error) => store_failed(&error),
        })?;
    shared.observers.heard(device.id);
    Ok(device)
}

async fn by_certificate(shared: &Shared, request: &Request) -> StoreResult<Option<Arc<DeviceHandle>>> {
    let Some(identity) = shared.identity(request.peer) else {
        return Ok(None);
    };
    let known = identity.device.lock().clone();
    if let Some(known) = known.filter(|known| !known.is_revoked()) {
        return Ok(Some(known));
    }
    let found = x509::by_certificate(&shared.services, &identity.chain).await?;
    identity.device.lock().clone_from(&found);
    Ok(found)
}

/// It is more than the device may send.
pub(super) fn limited(shared: &Shared, device: &DeviceHandle, why: &Limited) -> Reply {
    shared.metrics.limited(device.id, why);
    Reply::refusal(Code::INTERNAL_SERVER_ERROR, why.to_string())
}
