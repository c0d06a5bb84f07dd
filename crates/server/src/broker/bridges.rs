//! The broker as bridges see it.

use std::io;
use std::sync::Arc;

use fieldline_bridge::LocalBroker;
use fieldline_broker::{BRIDGE_PREFIX, BrokerServer};
use tokio::net::UnixStream;

/// See the module.
pub(super) struct BridgedBroker {
    pub(super) server: Arc<BrokerServer>,
    /// The largest packet of a client, bytes.
    pub(super) max_packet: usize,
}

impl LocalBroker for BridgedBroker {
    fn connect(&self) -> io::Result<UnixStream> {
        self.server.connect_bridge()
    }

    fn client_id(&self, bridge: &str) -> String {
        format!("{BRIDGE_PREFIX}{bridge}")
    }

    fn filters(&self, client_id: &str) -> Vec<String> {
        let subscriptions = self.server.admin().subscriptions_of(client_id).into_iter();
        subscriptions
            .map(|subscription| subscription.filter.into())
            .collect()
    }

    fn max_packet(&self) -> usize {
        self.max_packet
    }
}
