//! Who asks: devices are known by the certificate that they have shown, or by the token in the path.

use std::sync::Arc;
use std::time::Duration;

use fieldline_codec::coap::Code;
use fieldline_core::devices::{DeviceHandle, Refused as Limited};
use fieldline_core::logging::LogGate;
use fieldline_core::ports::StoreResult;
use parking_lot::Mutex;
use tokio::time::Instant;
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
    // Before anything is read: what changes while that goes on counts the next time.
    let changes = shared.services.directory.changes();
    let look_up = || x509::by_certificate(&shared.services, &identity.chain);
    identity.owner.find(changes, look_up).await
}

/// It is more than the device may send.
pub(super) fn limited(shared: &Shared, device: &DeviceHandle, why: &Limited) -> Reply {
    shared.metrics.limited(device.id, why);
    Reply::refusal(Code::INTERNAL_SERVER_ERROR, why.to_string())
}

/// How long a certificate that belongs to no device is not looked up again.
const NOBODY_FOR: Duration = Duration::from_secs(30);

/// Whose certificate it is that a peer has shown.
#[derive(Default)]
pub(super) struct Owner(Mutex<Known>);

/// What is known of that.
#[derive(Default, Clone)]
enum Known {
    #[default]
    Nothing,
    Device(Arc<DeviceHandle>),
    /// It was nobody's then, after so many changes of devices.
    Nobody(Instant, u64),
}

impl Owner {
    /// The device that it belongs to, after so many changes of devices. It is looked up where that is not known: a device that
    /// is there is known until it is revoked, and that there is none for a while, unless something changes.
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
            Known::Device(device) if !device.is_revoked() => return Ok(Some(device)),
            Known::Nobody(at, then) if then == changes && at.elapsed() < NOBODY_FOR => return Ok(None),
            _ => {}
        }
        let found = look_up().await?;
        *self.0.lock() = match &found {
            Some(device) => Known::Device(device.clone()),
            None => Known::Nobody(Instant::now(), changes),
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
        let (owner, asked) = (Owner::default(), Cell::new(0));
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
        tokio::time::advance(NOBODY_FOR).await;
        let _ = owner.find(8, look_up).await;
        assert_eq!(asked.get(), 3, "time has passed");
    }
}
