//! State that few connections need, boxed so that the others do not spend memory on it.

use std::time::Duration;

use super::firmware::ConnectionDownloads;
use super::gateway::GatewaySessions;

/// Takes the room of one pointer until it is used.
#[derive(Default)]
pub(super) struct ColdState(Option<Box<ColdParts>>);

#[derive(Default)]
struct ColdParts {
    gateway: Option<GatewaySessions>,
    downloads: ConnectionDownloads,
}

impl ColdState {
    /// The devices behind this one, once it has sent a gateway message.
    pub(super) fn gateway(&self) -> Option<&GatewaySessions> {
        self.0.as_ref()?.gateway.as_ref()
    }

    pub(super) fn gateway_mut(&mut self) -> Option<&mut GatewaySessions> {
        self.0.as_mut()?.gateway.as_mut()
    }

    /// Returns the same state, created if the device sends its first gateway message now.
    pub(super) fn gateway_or_new(&mut self) -> &mut GatewaySessions {
        self.0.get_or_insert_default().gateway.get_or_insert_default()
    }

    /// The OTA downloads of the device.
    pub(super) fn downloads(&mut self) -> &mut ConnectionDownloads {
        &mut self.0.get_or_insert_default().downloads
    }

    /// The time limit for writing the current message, if it is a large one.
    pub(super) fn time_to_write(&self) -> Option<Duration> {
        self.0.as_ref()?.downloads.time_to_write()
    }

    /// Releases the memory of a large message that was written.
    pub(super) fn finish_write(&mut self) {
        if let Some(parts) = &mut self.0 {
            parts.downloads.finish_write();
        }
    }
}
