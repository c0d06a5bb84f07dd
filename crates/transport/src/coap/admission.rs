//! Authentication: a device is identified by the certificate that it has presented, or by the token in the path.

use std::sync::Arc;
use std::time::Duration;

use fieldline_codec::coap::CoapCode;
use fieldline_core::logging::LogGate;
use fieldline_core::ports::StoreResult;
use fieldline_devices::directory::{DeviceHandle, MessageRefusal as Limited};
use parking_lot::Mutex;
use tokio::time::Instant;
use tracing::info;

use super::reply::CoapReply;
use super::request::CoapRequest;
use super::resources::store_failed;
use super::server::CoapShared;
use crate::intake::DeviceRefusal;
use crate::x509;

static REFUSED_GATE: LogGate = LogGate::new(5);

/// Whether the request proves its source address. Without DTLS, anybody could send wrong credentials from a forged
/// address.
pub(super) const fn is_proven(request: &CoapRequest) -> bool {
    request.peer.session > 0
}

/// Returns the device of a request: by its certificate, otherwise by the token.
pub(super) async fn identify(
    shared: &CoapShared,
    request: &CoapRequest,
    token: Option<&str>,
) -> Result<Arc<DeviceHandle>, CoapReply> {
    let services = &shared.services;
    let address = request.peer.address.ip();
    if !services.guard.try_admit(address) {
        return Err(CoapReply::empty(CoapCode::UNAUTHORIZED));
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
                services.guard.record_success(address);
            }
            device
        }
        Ok(None) => {
            shared.metrics.refused_logins.increment(1);
            if is_proven {
                services.guard.record_failure(address);
            }
            if let Some(suppressed) = REFUSED_GATE.open() {
                info!(peer = %request.peer.address, suppressed, "refused a device's request over CoAP");
            }
            return Err(CoapReply::empty(CoapCode::UNAUTHORIZED));
        }
        Err(error) => return Err(store_failed(&error)),
    };
    crate::intake::check(services, &device)
        .await
        .map_err(|refused| match refused {
            DeviceRefusal::Revoked => CoapReply::empty(CoapCode::UNAUTHORIZED),
            DeviceRefusal::UsedUp => limited(shared, &device, &Limited::UsedUp),
            DeviceRefusal::Store(error) => store_failed(&error),
        })?;
    shared.observers.mark_heard(device.id);
    Ok(device)
}

async fn by_certificate(
    shared: &CoapShared,
    request: &CoapRequest,
) -> StoreResult<Option<Arc<DeviceHandle>>> {
    let Some(identity) = shared.identity(request.peer) else {
        return Ok(None);
    };
    // Read before the look-up: a change during the look-up counts the next time.
    let changes = shared.services.directory.changes();
    let look_up = || x509::by_certificate(&shared.services, &identity.chain);
    identity.owner.find(changes, look_up).await
}

/// Counts a message that exceeds a limit of the device, and returns the refusal.
pub(super) fn limited(shared: &CoapShared, device: &DeviceHandle, why: &Limited) -> CoapReply {
    shared.metrics.count_limited(device.id, why);
    CoapReply::refusal(CoapCode::INTERNAL_SERVER_ERROR, why.to_string())
}

/// How long a certificate without a device is not looked up again.
const UNKNOWN_CERTIFICATE_TTL: Duration = Duration::from_secs(30);

/// The device that owns a peer's certificate, looked up when needed.
#[derive(Default)]
pub(super) struct CertificateOwner(Mutex<CertificateLookup>);

/// The result of the last look-up.
#[derive(Default, Clone)]
enum CertificateLookup {
    #[default]
    Nothing,
    Device(Arc<DeviceHandle>),
    /// No device had it at that time, with the directory's change counter at this value.
    Nobody(Instant, u64),
}

impl CertificateOwner {
    /// Returns the owner, given the directory's change counter. A known device counts until it is revoked; the result
    /// that there is none counts for a while, unless the counter changes. Otherwise the owner is looked up.
    async fn find<F>(
        &self,
        changes: u64,
        look_up: impl FnOnce() -> F,
    ) -> StoreResult<Option<Arc<DeviceHandle>>>
    where
        F: Future<Output = StoreResult<Option<Arc<DeviceHandle>>>>,
    {
        let known = self.0.lock().clone();
        match known {
            CertificateLookup::Device(device) if !device.is_revoked() => return Ok(Some(device)),
            CertificateLookup::Nobody(at, then)
                if then == changes && at.elapsed() < UNKNOWN_CERTIFICATE_TTL =>
            {
                return Ok(None);
            }
            _ => {}
        }
        let found = look_up().await?;
        *self.0.lock() = match &found {
            Some(device) => CertificateLookup::Device(device.clone()),
            None => CertificateLookup::Nobody(Instant::now(), changes),
        };
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_strangers_certificate_is_looked_up_again_when_something_has_changed_or_time_has_passed() {
        let (owner, asked) = (CertificateOwner::default(), Cell::new(0));
        let look_up = || {
            asked.set(asked.get() + 1);
            std::future::ready(Ok(None))
        };
        for _ in 0..100 {
            assert!(owner.find(7, look_up).await.is_ok_and(|found| found.is_none()));
        }
        assert_eq!(asked.get(), 1);
        let _ = owner.find(8, look_up).await;
        assert_eq!(asked.get(), 2, "a device was saved");
        tokio::time::advance(UNKNOWN_CERTIFICATE_TTL).await;
        let _ = owner.find(8, look_up).await;
        assert_eq!(asked.get(), 3, "time has passed");
    }
}
