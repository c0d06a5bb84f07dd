//! What few connections have, so that the many others do not pay for it with their memory.

use std::time::Duration;

use super::firmware::Downloads;
use super::gateway::Gateway;

/// Takes the room of a pointer until something is there.
#[derive(Default)]
pub(super) struct Rare(Option<Box<Parts>>);

#[derive(Default)]
struct Parts {
    gateway: Option<Gateway>,
    downloads: Downloads,
}

impl Rare {
    /// What is behind the device, once it has spoken as a gateway.
    pub(super) fn gateway(&self) -> Option<&Gateway> {
        self.0.as_ref()?.gateway.as_ref()
    }

    pub(super) fn gateway_mut(&mut self) -> Option<&mut Gateway> {
        self.0.as_mut()?.gateway.as_mut()
    }

    /// The same for a device that speaks as a gateway now.
    pub(super) fn gateway_or_new(&mut self) -> &mut Gateway {
        self.0.get_or_insert_default().gateway.get_or_insert_default()
    }

    /// What the device downloads.
    pub(super) fn downloads(&mut self) -> &mut Downloads {
        &mut self.0.get_or_insert_default().downloads
    }

    /// How long it may take to write what was sent, where it is large.
    pub(super) fn time_to_write(&self) -> Option<Duration> {
        self.0.as_ref()?.downloads.time_to_write()
    }

    /// What was sent is written.
    pub(super) fn written(&mut self) {
        if let Some(parts) = &mut self.0 {
            parts.downloads.written();
        }
    }
}
