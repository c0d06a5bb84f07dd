//! How devices come to the platform by themselves: provisioned, claimed by a customer, or brought along by a gateway.

mod claims;
mod gateways;
mod provisioning;

use std::sync::Arc;

pub use claims::{Claimed, Claims};
pub use gateways::Gateways;
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
        let context = Arc::new(context);
        let (devices, actions) = (Devices::new(&context), Actions::new(&context));
        Arc::new(Self {
            claims: Claims::new(&context, &devices),
            provisioning: Provisioning::new(&context, &devices, &actions),
            gateways: Gateways::new(&context, &devices, &actions),
        })
    }
}
