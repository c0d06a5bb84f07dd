//! How devices come to the platform by themselves: provisioned, claimed by a customer, or brought along by a gateway.

mod claims;
mod gateways;
mod guess_limiter;
mod provisioning;

use std::sync::Arc;

use fieldline_model::DeviceId;
use parking_lot::Mutex;
use rustc_hash::FxHashSet;

pub use claims::{ClaimDevicesService, ClaimOptions, ClaimOutcome};
pub use gateways::GatewayDeviceService;
pub(super) use gateways::LAST_GATEWAY;
pub use provisioning::{DeviceProvisionService, ProvisionRequest, ProvisionResponse, ProvisionStatus};

use super::ServiceContext;

/// See the module.
pub struct DeviceOnboarding {
    /// Devices that let a customer claim them.
    pub claims: ClaimDevicesService,
    /// Devices that introduce themselves.
    pub provisioning: DeviceProvisionService,
    /// Devices behind gateways.
    pub gateways: GatewayDeviceService,
}

impl DeviceOnboarding {
    /// Of one context; there is one of it in the program, for it remembers who may be claimed.
    pub fn new(context: impl Into<Arc<ServiceContext>>) -> Arc<Self> {
        Self::with_options(context, &ClaimOptions::default())
    }

    /// The same with other settings.
    pub fn with_options(context: impl Into<Arc<ServiceContext>>, claiming: &ClaimOptions) -> Arc<Self> {
        let context = context.into();
        Arc::new(Self {
            claims: ClaimDevicesService::new(&context, claiming),
            provisioning: DeviceProvisionService::new(&context),
            gateways: GatewayDeviceService::new(&context),
        })
    }
}

/// Devices with which somebody is doing what must not be done twice.
#[derive(Default)]
struct DeviceLocks(Mutex<FxHashSet<DeviceId>>);

/// The turn of one who does; ends when dropped.
struct DeviceLockGuard<'a> {
    locks: &'a DeviceLocks,
    device: DeviceId,
}

impl DeviceLocks {
    /// `None` while it is somebody else's turn.
    fn try_lock(&self, device: DeviceId) -> Option<DeviceLockGuard<'_>> {
        let is_free = self.0.lock().insert(device);
        is_free.then_some(DeviceLockGuard { locks: self, device })
    }
}

impl Drop for DeviceLockGuard<'_> {
    fn drop(&mut self) {
        self.locks.0.lock().remove(&self.device);
    }
}
