//! How devices come to the platform by themselves: provisioned, claimed by a customer, or brought along by a gateway.

mod claims;
mod gateways;
mod guesses;
mod provisioning;

use std::sync::Arc;

use fieldline_model::DeviceId;
use parking_lot::Mutex;
use rustc_hash::FxHashSet;

pub use claims::{ClaimOptions, Claimed, Claims};
pub use gateways::Gateways;
pub(super) use gateways::LAST_GATEWAY;
pub use provisioning::{ProvisionRequest, ProvisionStatus, Provisioned, Provisioning};

use super::{Actions, Context, Devices};

/// See the module.
pub struct Onboarding {
    /// Devices that let a customer claim them.
    pub claims: Claims,
    /// Devices that introduce themselves.
    pub provisioning: Provisioning,
    /// Devices behind gateways.
    pub gateways: Gateways,
}

impl Onboarding {
    /// Of one context; there is one of it in the program, for it remembers who may be claimed.
    pub fn new(context: Context) -> Arc<Self> {
        Self::with_options(context, &ClaimOptions::default())
    }

    /// The same with other settings.
    pub fn with_options(context: Context, claiming: &ClaimOptions) -> Arc<Self> {
        let context = Arc::new(context);
        let (devices, actions) = (Devices::new(&context), Actions::new(&context));
        Arc::new(Self {
            claims: Claims::new(&context, &devices, claiming),
            provisioning: Provisioning::new(&context, &devices, &actions),
            gateways: Gateways::new(&context, &devices, &actions),
        })
    }
}

/// Devices with which somebody is doing what must not be done twice.
#[derive(Default)]
struct Turns(Mutex<FxHashSet<DeviceId>>);

/// The turn of one who does; ends when dropped.
struct Turn<'a> {
    turns: &'a Turns,
    device: DeviceId,
}

impl Turns {
    /// `None` while it is somebody else's turn.
    fn take(&self, device: DeviceId) -> Option<Turn<'_>> {
        let is_free = self.0.lock().insert(device);
        is_free.then_some(Turn { turns: self, device })
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.turns.0.lock().remove(&self.device);
    }
}
