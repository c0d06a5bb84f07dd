//! What few connections have, so that the many others do not pay for it with their memory.

use std::time::Duration;

use super::firmware::ConnectionDownloads;
use super::gateway::GatewaySessions;

/// Takes the room of a pointer until something is there.
#[derive(Default)]
pub(super) struct ColdState(Option<Box<ColdParts>>);

#[derive(Default)]
struct ColdParts {
    gateway: Option<GatewaySessions>,
    downloads: ConnectionDownloads,
}

impl ColdState {
    /// What is behind the device, once it has spoken as a gateway.
    pub(super) fn gateway(&self) -> Option<&GatewaySessions> {
        self.0.as_ref()?.gateway.as_ref()
    }

    pub(super) fn gateway_mut(&mut self) -> Option<&mut GatewaySessions> {
        self.0.as_mut()?.gateway.as_mut()
    }

    /// The same for a device that speaks as a gateway now.
    pub(super) fn gateway_or_new(&mut self) -> &mut GatewaySessions {
        self.0.get_or_insert_default().gateway.get_or_insert_default()
    }

    /// What the device downloads.
    pub(super) fn downloads(&mut self) -> &mut ConnectionDownloads {
        &mut self.0.get_or_insert_default().downloads
    }

    /// How long it may take to write what was sent, where it is large.
    pub(super) fn time_to_write(&self) -> Option<Duration> {
        self.0.as_ref()?.downloads.time_to_write()
    }

    /// What was sent is written.
    pub(super) fn finish_write(&mut self) {
        if let Some(parts) = &mut self.0 {
            parts.downloads.finish_write();
        }
    }
}
